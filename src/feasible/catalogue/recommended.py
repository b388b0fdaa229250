"""`--algo recommended`: the method and changes that we recommend on a task; `docs/beyond.md` says why."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from feasible.algorithms.description import Plain

PRESET = "fair"
"""In which the methods were compared, and what is recommended is trained."""


@dataclass(frozen=True)
class Choice:
    """What is trained under the name `recommended`; runs are named after it."""

    algo: str
    changes: Mapping[str, Plain] = field(default_factory=dict)


_BY_THE_GAP = Choice("nfwpo", {"frank_wolfe_by": "gap", "frank_wolfe_step": 0.05})
CHOICES: Mapping[str, Choice] = {
    "bss-3": Choice("fwpo"),
    "bss-5": Choice("projected-gradient", {"averaged": True, "discount": 0.9}),
    "nsfnet": Choice("nfwpo", {"actor_interval": 10, "averaged": True, "critic_interval": 10}),
    "reacher": Choice("nfwpo"),
    "halfcheetah": _BY_THE_GAP,
    "halfcheetah-box": _BY_THE_GAP,
}
"""By task."""
ELSEWHERE = _BY_THE_GAP
"""On a task that was not compared on."""
