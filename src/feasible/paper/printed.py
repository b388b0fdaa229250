"""What the paper prints: the values of Tables 1 and 2, and which of our figures stands for which of its own.

The paper's row "NFWPO" of BSS-3 is FWPO on a table, its "DDPG" rows there are the tabular baselines.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class PrintedTable:
    """A table of mean returns over the last 10 evaluations and five seeds: for each row our methods, by task."""

    name: str
    title: str
    tasks: tuple[str, ...]
    rows: Mapping[str, Mapping[str, tuple[str, float]]]


TABLES = (
    PrintedTable(
        "table-1",
        "Table 1: average return over the final 10 evaluations",
        ("bss-3", "bss-5", "nsfnet"),
        {
            "NFWPO": {
                "bss-3": ("fwpo", -1673.04),
                "bss-5": ("nfwpo", -15132.21),
                "nsfnet": ("nfwpo", 13770.67),
            },
            "DDPG+Projection": {
                "bss-3": ("tabular-projection", -2254.52),
                "bss-5": ("ddpg-projection", -16123.48),
                "nsfnet": ("ddpg-projection", 1514.44),
            },
            "DDPG+RewardShaping": {
                "bss-3": ("tabular-shaping", -2308.00),
                "bss-5": ("ddpg-shaping", -16123.48),
                "nsfnet": ("ddpg-shaping", 9010.46),
            },
            "DDPG+OptLayer": {
                "bss-5": ("ddpg-optlayer", -16686.04),
                "nsfnet": ("ddpg-optlayer", 1667.59),
            },
        },
    ),
    PrintedTable(
        "table-2",
        "Table 2: average return over the final 10 evaluations in the MuJoCo environments",
        ("reacher", "halfcheetah"),
        {
            "NFWPO": {"reacher": ("nfwpo", -4.76), "halfcheetah": ("nfwpo", 6513.26)},
            "DDPG+Projection": {"reacher": ("ddpg-projection", -11.15), "halfcheetah": ("ddpg-projection", 2746.72)},
            "DDPG+RewardShaping": {"reacher": ("ddpg-shaping", -8.66), "halfcheetah": ("ddpg-shaping", 3065.37)},
            "DDPG+OptLayer": {"reacher": ("ddpg-optlayer", -7.25), "halfcheetah": ("ddpg-optlayer", 1399.37)},
            "SAC+Projection": {"reacher": ("sac-projection", -10.50), "halfcheetah": ("sac-projection", 4874.45)},
            "TRPO+Projection": {"reacher": ("trpo-projection", -11.04), "halfcheetah": ("trpo-projection", 2247.82)},
            "PPO+Projection": {"reacher": ("ppo-projection", -10.68), "halfcheetah": ("ppo-projection", 1459.04)},
            "FOCOPS+Projection": {
                "reacher": ("focops-projection", -12.23),
                "halfcheetah": ("focops-projection", 1916.46),
            },
        },
    ),
)

PRINTED: Mapping[tuple[str, str], float] = {
    (task, algo): value for table in TABLES for row in table.rows.values() for task, (algo, value) in row.items()
}
"""By task and method."""

FIGURES: Mapping[tuple[str, str], str] = {
    ("bss-3", "return"): "Figure 1a",
    ("bss-3", "distance"): "Figure 1b",
    ("bss-5", "return"): "Figure 2a",
    ("bss-5", "violations"): "Figure 2b",
    ("bss-5", "gradients"): "Figure 2c",
    ("nsfnet", "return"): "Figure 3a",
    ("nsfnet", "violations"): "Figure 3b",
    ("reacher", "return"): "Figure 4a",
    ("reacher", "violations"): "Figure 4b",
    ("halfcheetah", "return"): "Figure 5a",
    ("halfcheetah", "violations"): "Figure 5b",
    ("halfcheetah-box", "return"): "Figure 6",
}
"""By task and kind of figure."""


REFERENCES: Mapping[str, tuple[tuple[str, float], ...]] = {
    "bss-3": (("staying put, the optimum", -1489.5),),
    "bss-5": (("staying put, the optimum", -14_312.0),),
    "nsfnet": (("10 on every path", 12_643.0), ("best fixed rates found", 13_541.0)),
}
"""By task: returns of policies that learn nothing, measured by `feasible.paper.references` and, for BSS-3,
computed by `feasible.paper.optimum`. That no policy has more on BSS-5 follows from `feasible.paper.price`."""


def normalised(task: str, score: float) -> float | None:
    """A score on the scale where the paper's DDPG+Projection is 0 and its (N)FWPO is 1; None where it prints none."""
    table = next((table for table in TABLES if task in table.tasks), None)
    if table is None:
        return None
    zero, one = table.rows["DDPG+Projection"][task][1], table.rows["NFWPO"][task][1]
    return (score - zero) / (one - zero)
