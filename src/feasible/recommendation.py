"""`--algo recommended`: the method, preset and changes that we recommend on a task. `docs/beyond.md` says why."""

from collections.abc import Mapping
from dataclasses import dataclass

from feasible.algorithms.description import Plain
from feasible.tasks import Preset, Task

STEP = 0.05


@dataclass(frozen=True)
class Choice:
    """What is trained under the name `recommended`; runs are named after it."""

    algo: str
    settings: Preset
    changes: Mapping[str, Plain]


def recommended(task: Task, settings: Preset | None, changes: Mapping[str, Plain]) -> Choice:
    """FWPO for tables; for networks NFWPO with a Frank-Wolfe step of 0.05. What is given goes before it."""
    preset = settings or "fair"
    if task.paper.actor_output == "table":
        return Choice("fwpo", preset, changes)
    own = {} if task.settings(preset).frank_wolfe_step == STEP else {"frank_wolfe_step": STEP}
    return Choice("nfwpo", preset, {**own, **changes})
