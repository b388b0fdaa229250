"""`--algo recommended`: the method, preset and changes that we recommend on a task; `docs/beyond.md` says why."""

from collections.abc import Mapping
from dataclasses import dataclass

from feasible.algorithms.description import Plain
from feasible.tasks import Preset, Task


@dataclass(frozen=True)
class Choice:
    """What is trained under the name `recommended`; runs are named after it."""

    algo: str
    settings: Preset
    changes: Mapping[str, Plain]


_BY_THE_GAP = Choice("nfwpo", "fair", {"frank_wolfe_by": "gap", "frank_wolfe_step": 0.05})
_CHOICES = {
    "bss-3": Choice("fwpo", "fair", {}),
    "bss-5": Choice("projected-gradient", "fair", {}),
    "nsfnet": Choice("nfwpo", "fair", {"actor_interval": 10, "critic_interval": 10}),
    "reacher": Choice("nfwpo", "fair", {}),
    "halfcheetah": _BY_THE_GAP,
    "halfcheetah-box": _BY_THE_GAP,
}


def recommended(task: Task, settings: Preset | None, changes: Mapping[str, Plain]) -> Choice:
    """What is recommended on a task, changed by what a person asks for beside it."""
    own = _CHOICES[task.name]
    return Choice(own.algo, settings or own.settings, {**own.changes, **changes})
