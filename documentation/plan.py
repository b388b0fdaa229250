"""The field's benchmark as planned: which methods are trained on which tasks, with which seeds, and for how long.

Stage 1, the selection, and stage 2, the final, have the methods' own defaults. Candidates are methods in settings of
their own, for the one method to recommend: chosen with the seeds of stage 1, to be confirmed with those of stage 2.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from feasible.algorithms.description import Plain
from feasible.catalogue.recommended import CHOICES, IN_ACTION_UNITS, TUNED, TUNED_RAW
from feasible.catalogue.registry import TASKS as KNOWN_TASKS

METHODS = (
    "td3-projection",
    "td3-proposed",
    "td3-optlayer",
    "td3-nfwpo",
    "td3-alpha",
    "td3-radial",
    "sac-proposed",
    "sac-truncated",
    "aram",
    "ppo-truncated",
)
TASKS = (
    "reacher",
    "halfcheetah",
    "halfcheetah-ma",
    "hopper-power",
    "hopper-os",
    "walker-power",
    "ant-ball",
    "bss-5",
    "nsfnet",
    "portfolio",
)
SEEDS = (100, 101, 102)
STEPS = 300_000
PRESET = "default"
OTHERS = (
    "nfwpo",
    "ddpg-projection",
    "ddpg-shaping",
    "ddpg-optlayer",
    "projected-gradient",
    "sac-projection",
    "sac-alpha",
    "sac-radial",
    "ppo-projection",
    "ppo-radial",
    "ppo-sequential",
    "trpo-projection",
    "focops-projection",
)
"""All other methods but those for a table of bikes or for a box alone."""
REFUSED = {
    *(("bss-5", algo) for algo in ("sac-truncated", "ppo-truncated")),
    *((task, "ppo-sequential") for task in TASKS if task not in ("bss-5", "nsfnet")),
}
"""Tasks with algorithms that refuse them, in any setting: a restricted Gaussian has no density on integers, and entry
by entry takes linear sets only."""
DIVERGED = {("portfolio", "sac-truncated")}
"""Cells whose critics have all diverged, so that they were stopped or ended in numbers that are not finite."""


@dataclass(frozen=True)
class Entry:
    """A row: a method with its defaults, or with changes under the name of a variant."""

    algo: str
    variants: tuple[str, ...] = ("benchmark", "smoke")
    """Of the runs that count; new ones are named after the first."""
    changes: Mapping[str, Plain] = field(default_factory=dict)

    @property
    def settings(self) -> Mapping[str, Plain]:
        """What is not the default of today: critics that are asked about actions see them as they are, if nothing
        else is said, as all did when the plan was made."""
        blind = self.algo.startswith(("ppo-", "trpo-", "focops-"))
        return self.changes if blind else {**IN_ACTION_UNITS, **self.changes}


@dataclass(frozen=True)
class Stage:
    """Every entry on every task with every seed."""

    entries: Mapping[str, Entry]
    """By the name of the row."""
    tasks: Sequence[str]
    seeds: Sequence[int]
    steps: Mapping[str, int]
    """By task."""

    def refused(self, task: str, row: str) -> bool:
        """Whether that cell cannot be."""
        return (task, self.entries[row].algo) in REFUSED

    def cut(self, steps: int) -> "Stage":
        """The same, of which at most the first steps are looked at."""
        return replace(self, steps={task: min(own, steps) for task, own in self.steps.items()})


CHOSEN = "td3-radial, tuned"
"""The candidate that is recommended."""
RAW = "td3-radial, tuned, raw"
"""With raw observations."""
SHRUNK = "td3-radial, tuned, shrunk"
"""With observations that are made smaller only."""
SEEN = (CHOSEN, RAW, SHRUNK)
"""Candidates that differ in how they see observations, and the first also in critics that see actions as they are."""
CANDIDATES: Mapping[str, Entry] = {
    CHOSEN: Entry("td3-radial", ("tuned",), TUNED),
    "td3-projected-gradient, tuned": Entry(
        "td3-projected-gradient", ("tuned",), {**TUNED, "projected_gradient_margin": 0.1}
    ),
    RAW: Entry("td3-radial", ("tuned-raw",), {**TUNED_RAW, "critic_units": "box"}),
    SHRUNK: Entry("td3-radial", ("tuned-shrunk",), {**TUNED, "normalised": "shrunk", "critic_units": "box"}),
}
"""With a longer warm-up, an averaged policy, and normalised observations or critics in units of the action box."""
_SELECTED = {method: Entry(method) for method in METHODS}
SELECTION = Stage(_SELECTED, TASKS, SEEDS, dict.fromkeys(TASKS, STEPS))
CHOICE = replace(SELECTION, entries={**_SELECTED, **CANDIDATES})
"""Stage 1 with the candidates."""
_LEADING = ("td3-optlayer", "td3-nfwpo", "td3-alpha", "td3-radial", "sac-proposed", "aram")
_TELLING = ("reacher", "halfcheetah", "bss-5", "nsfnet", "portfolio")
FINAL = Stage(
    {
        **{method: Entry(method, ("final",)) for method in _LEADING},
        CHOSEN: replace(CANDIDATES[CHOSEN], variants=("tuned-final",)),
    },
    _TELLING,
    range(5),
    {task: KNOWN_TASKS[task].steps for task in _TELLING},
)
RELATIVE = Stage(
    {
        CHOSEN: FINAL.entries[CHOSEN],
        f"{CHOSEN}, relative to the bikes": Entry("td3-radial", ("tuned-relative",), CHOICES["bss-5"].changes),
    },
    ("bss-5",),
    FINAL.seeds,
    FINAL.steps,
)
"""The chosen one with outputs relative to the present allocation, beside the same without it."""
SEEN_RAW = Stage(
    {CHOSEN: FINAL.entries[CHOSEN], RAW: replace(CANDIDATES[RAW], variants=("tuned-raw-final",))},
    ("nsfnet", "portfolio"),
    FINAL.seeds,
    FINAL.steps,
)
"""The chosen one and that with raw observations, where observations hardly change."""
_BY_100 = "rewards by 100"
SCALED = Stage(
    {
        **{method: Entry(method, ("final",)) for method in ("ppo-sequential", "ppo-radial")},
        **{
            f"{method}, {_BY_100}": Entry(method, ("scaled",), {"reward_scale": 100.0})
            for method in ("ppo-sequential", "ppo-radial", "ppo-projection", "ppo-truncated")
        },
    },
    ("bss-5", "nsfnet"),
    FINAL.seeds,
    FINAL.steps,
)
"""Methods of PPO with rewards divided by 100, and two of them without."""
SMOKE = Stage(
    {name: Entry(name, ("smoke",)) for name in OTHERS},
    TASKS,
    SEEDS[:1],
    dict.fromkeys(TASKS, 100_000),
)
STUDY = Stage(
    {
        "td3-radial": Entry("td3-radial"),
        "td3-radial, warm-up of 10,000": Entry("td3-radial", ("warm-up",), {"warmup": 10_000}),
        "td3-radial, normalised": Entry("td3-radial", ("normalised",), {"normalised": True}),
        CHOSEN: CANDIDATES[CHOSEN],
        RAW: CANDIDATES[RAW],
    },
    ("halfcheetah-ma",),
    SEEDS,
    {"halfcheetah-ma": 100_000},
)
"""Which of the changes does it, where they do most."""
UNITS = Stage(
    {
        "td3-radial": Entry("td3-radial"),
        CHOSEN: CANDIDATES[CHOSEN],
        RAW: CANDIDATES[RAW],
    },
    ("nsfnet", "portfolio"),
    SEEDS,
    {"nsfnet": STEPS, "portfolio": 200_000},
)
"""What critics in units of the action box do where that is not -1 to 1, with raw observations."""
_FASTER: Mapping[str, Plain] = {"actor_rate": 1e-3, "target_ratio": 0.005}
_SLOWER: Mapping[str, Plain] = {"actor_rate": 1e-4, "target_ratio": 0.001}
BASE = Stage(
    {
        "nfwpo": Entry("nfwpo", ("smoke",)),
        "nfwpo, faster": Entry("nfwpo", ("faster",), _FASTER),
        "td3-nfwpo, slower": Entry("td3-nfwpo", ("slower",), _SLOWER),
        "td3-nfwpo": _SELECTED["td3-nfwpo"],
    },
    TASKS,
    SEEDS[:1],
    SMOKE.steps,
)
"""What NFWPO owes to TD3's rates and what to the rest of TD3: each with and without the other."""
STAGES: Mapping[str, Stage] = {
    "selection": SELECTION,
    "choice": CHOICE,
    "study": STUDY,
    "final": FINAL,
    "relative": RELATIVE,
    "raw": SEEN_RAW,
    "scaled": SCALED,
    "units": UNITS,
    "smoke": SMOKE,
    "base": BASE,
}
