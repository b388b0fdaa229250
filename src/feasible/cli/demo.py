"""`feasible demo`: two methods learn two tasks under a constraint, in minutes; then a table and a report.

The runs are ordinary ones, each a process of its own; a second call shows the result of the first.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from feasible.cli.running import one_thread

if TYPE_CHECKING:
    from rich.table import Table

    from feasible.report.groups import Group
    from feasible.run.config import RunConfig

ALGOS = ("nfwpo", "ddpg-projection")


@dataclass(frozen=True)
class Budget:
    """How long the demonstration trains on a task, and how often it looks."""

    task: str
    steps: int
    eval_every: int
    warmup: int


BUDGETS = (Budget("reacher", 20_000, 2_000, 1_000), Budget("bss-5", 40_000, 4_000, 5_000))


def demo(out: Path = Path("demo"), steps: int | None = None) -> None:
    """Train two methods on two tasks for a few minutes, compare them and draw the result.

    Args:
        out: Folder for the runs, the figures and the page.
        steps: Environment steps per run, instead of a budget for about five minutes in all.
    """
    one_thread()
    from rich.console import Console

    from feasible.report.writing import write_report
    from feasible.run.sweep.sweep import prepare, run_all

    console = Console()
    configs = [_config(budget, algo, steps) for budget in reversed(BUDGETS) for algo in ALGOS]
    folders = prepare(out / "runs", configs)
    failures = run_all(folders, console)
    if failures:
        raise RuntimeError(f"{failures[0].folder.path} failed: {failures[0].reason}")
    report = write_report(out / "runs", out, [folder.path for folder in folders], "Learning under a constraint")
    console.print(_comparison(report.groups))
    console.print(f"The page: {report.page}")


def _config(budget: Budget, algo: str, steps: int | None) -> "RunConfig":
    from feasible.run.launch import configure

    total = budget.steps if steps is None else steps
    return configure(
        budget.task,
        algo,
        0,
        steps=total,
        preset="fair",
        changes={"warmup": min(budget.warmup, total // 4)},
        variant=f"demo-{total}",
        eval_every=min(budget.eval_every, max(1, total // 4)),
    )


def _comparison(groups: "Sequence[Group]") -> "Table":
    from rich.table import Table

    table = Table(title="What they learned, in short runs of one seed", title_justify="left")
    for name in ("task", "method", "first return", "last return", "infeasible proposals", "executed violation"):
        table.add_column(name, justify="left" if name in ("task", "method") else "right")
    for group in groups:
        run = group.runs[0]
        returns, proposed = (run.series[name].values for name in ("eval/return", "violation/proposed_count"))
        numbers = f"{returns[0]:.1f}", f"{returns[-1]:.1f}", f"{proposed[-1]:.0f}", f"{run.executed_violation:.0e}"
        table.add_row(group.task, group.title, *numbers)
    return table
