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


_NEAR_THE_BOUNDARY = Choice("projected-gradient", "fair", {"projected_gradient_margin": 0.1})
_CHOICES = {
    "bss-3": Choice("fwpo", "fair", {}),
    "nsfnet": Choice("nfwpo", "fair", {"actor_interval": 10, "critic_interval": 10}),
}


def recommended(task: Task, settings: Preset | None, changes: Mapping[str, Plain]) -> Choice:
    """What is recommended on a task, changed by what a person asks for beside it."""
    own = _CHOICES.get(task.name, _NEAR_THE_BOUNDARY)
    return Choice(own.algo, settings or own.settings, {**own.changes, **changes})
