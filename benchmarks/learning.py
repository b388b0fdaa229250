"""Learning within a fixed budget: NFWPO and FWPO on the paper's tasks, three seeds, against a return to be reached.

    python -m benchmarks.learning [--tasks reacher bss-5 ...] [--out learning]

The runs are ordinary run folders: finished ones are not repeated, so an interrupted benchmark goes on.
"""

import argparse
import statistics
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from feasible.run.config import RunConfig
from feasible.run.folder import RunFolder, read_metrics
from feasible.run.launch import configure
from feasible.run.sweep.sweep import prepare, run_all

SEEDS = (0, 1, 2)


@dataclass(frozen=True)
class Goal:
    """The mean return over the seeds that is to be reached at the end of so many steps."""

    task: str
    algo: str
    preset: str
    steps: int
    better_than: float


GOALS = (
    Goal("reacher", "nfwpo", "paper", 50_000, -6.5),
    Goal("bss-5", "nfwpo", "fair", 30_000, -16_300.0),
    # Within 20% of the optimum, -1489.5 by dynamic programming (`feasible.paper.optimum`).
    Goal("bss-3", "fwpo", "paper", 200_000, -1489.5 * 1.2),
    Goal("halfcheetah", "nfwpo", "paper", 150_000, 3_000.0),
)


def configs(goal: Goal) -> list[RunConfig]:
    return [configure(goal.task, goal.algo, seed, steps=goal.steps, preset=goal.preset) for seed in SEEDS]


def last_return(folder: RunFolder) -> float:
    returns = [line["eval/return"] for line in read_metrics(folder.metrics) if "eval/return" in line]
    return float(returns[-1])  # pyright: ignore[reportArgumentType]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tasks", nargs="+", default=[goal.task for goal in GOALS])
    parser.add_argument("--out", type=Path, default=Path("learning"))
    options = parser.parse_args()
    console, goals = Console(), [goal for goal in GOALS if goal.task in options.tasks]
    folders = {goal: prepare(options.out, configs(goal)) for goal in goals}
    for failure in run_all([folder for group in folders.values() for folder in group], console):
        console.print(f"{failure.folder.path} failed: {failure.reason}")
    table = Table(title=f"Learning, seeds {', '.join(map(str, SEEDS))}")
    for column in ("task", "method", "settings", "steps", "returns at the end", "mean", "to reach", ""):
        table.add_column(column)
    for goal, group in folders.items():
        returns = [last_return(folder) for folder in group]
        mean = statistics.mean(returns)
        table.add_row(
            goal.task,
            goal.algo,
            goal.preset,
            f"{goal.steps:,}",
            ", ".join(f"{value:.1f}" for value in returns),
            f"{mean:.1f}",
            f"{goal.better_than:.1f}",
            "reached" if mean > goal.better_than else "missed",
        )
    console.print(table)


if __name__ == "__main__":
    main()
