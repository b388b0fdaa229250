"""`recommended`: the method and settings that we recommend on a task; `docs/recommended.md` says why."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from feasible.algorithms.description import Plain
from feasible.catalogue.task import DEFAULT


@dataclass(frozen=True)
class Choice:
    """What is trained under the name `recommended`; runs are named after it."""

    algo: str
    changes: Mapping[str, Plain] = field(default_factory=dict)
    preset: str = DEFAULT
    """In which it was compared; what is compared with it is trained in it, too."""


ELSEWHERE = Choice("td3-radial", {"averaged": True, "normalised": True, "warmup": 10_000})
"""On every task but those below, and on yours."""
RELATIVE_TO_BIKES = Choice(ELSEWHERE.algo, {**ELSEWHERE.changes, "relative_to": [5, 6, 7, 8, 9]})
"""The same, where the observation holds the present allocation: demand, bikes and the step."""
CHOICES: Mapping[str, Choice] = {
    "bss-3": Choice("fwpo", preset="fair"),
    "nsfnet": Choice("nfwpo", {"actor_interval": 10, "averaged": True, "critic_interval": 10}, preset="fair"),
    "portfolio": Choice("aram"),
}
"""By task: where networks are not needed, where the one method is not compared yet, and where it fails."""


def choice_on(task: str) -> Choice:
    return CHOICES.get(task, ELSEWHERE)
