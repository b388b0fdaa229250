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


IN_ACTION_UNITS: Mapping[str, Plain] = {"critic_units": "action"}
"""Critics see actions as they are, as in the runs of the field's benchmark."""
TUNED_RAW: Mapping[str, Plain] = {"averaged": True, "warmup": 10_000}
"""For observations that hardly change."""
ELSEWHERE = Choice("td3-radial", {"averaged": True, "normalised": True, "warmup": 10_000})
"""On every task but those below, and on yours."""
TUNED: Mapping[str, Plain] = {**ELSEWHERE.changes, **IN_ACTION_UNITS}
"""The same as compared with the methods of the field. In an action box of -1 to 1 the units make no difference."""
_ON_NSFNET: Mapping[str, Plain] = {
    "actor_interval": 10,
    "averaged": True,
    "batch_size": 256,
    "critic_interval": 10,
    "discount": 0.5,
    "noise": 1.0,
}
CHOICES: Mapping[str, Choice] = {
    "bss-3": Choice("fwpo", preset="fair"),
    "bss-5": Choice("td3-radial", {**TUNED, "relative_to": [5, 6, 7, 8, 9]}),
    "nsfnet": Choice("nfwpo", _ON_NSFNET, preset="fair"),
    "portfolio": Choice("td3-radial", TUNED_RAW),
}
"""By task: where networks are not needed, where it goes out from the present bikes (which follow the demand), where it
fails, and where it sees raw observations."""


def choice_on(task: str) -> Choice:
    return CHOICES.get(task, ELSEWHERE)
