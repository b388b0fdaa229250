"""`feasible demo`: two methods learn under a constraint in about a minute; then films of them, curves and a page.

The runs are ordinary ones, each a process of its own; a second call shows the result of the first.
"""

import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

from feasible.cli.running import one_thread

if TYPE_CHECKING:
    from rich.table import Table

    from feasible.algorithms.description import Plain
    from feasible.report.groups import Group
    from feasible.run.config import RunConfig

ALGOS = ("nfwpo", "ddpg-projection")


PRESET = "default"
SETTINGS: "Mapping[str, Plain]" = {
    "batch_size": 64,
    "hidden_layers": [64, 64],
    "actor_rate": 1e-3,
    "critic_rate": 1e-3,
    "target_ratio": 5e-3,
}
"""Small networks that learn fast: enough for tasks of this size."""
WARMUP = 1_000


@dataclass(frozen=True)
class Budget:
    """How long the demonstration trains on a task, how often it looks, and how many steps it films."""

    task: str
    extra: str | None
    """What the task needs besides the base installation."""
    steps: int
    eval_every: int
    frames: int


BUDGETS = (
    Budget("reacher", "mujoco", 12_000, 1_500, 50),
    Budget("feasible.cli.pendulum:pendulum", None, 10_000, 1_000, 100),
)
WIDTH = 300  # of a film in pixels
ONE_SEED = "One short run per method shows learning under a constraint; it does not compare the methods"
TOO_SHORT = "Runs of {steps:,} steps are a trial of the program; they are too short to compare the methods"
TRY_NEXT = (
    "Try next: `feasible train --task module:name --algo nfwpo` on a task of your own, for which the module "
    "feasible.cli.pendulum is an example."
)


def demo(out: Path = Path("demo"), steps: int | None = None) -> None:
    """Train two methods for about a minute and show them on a page.

    The demo trains on a pendulum, and also on a robot arm if the extra mujoco is installed.

    Args:
        out: Folder for the runs, the figures and the page.
        steps: Environment steps per run. Shorter runs show that everything works, not which method is better.
    """
    one_thread()
    from rich.console import Console

    from feasible.report.writing import write_report
    from feasible.run.sweep.sweep import prepare, run_all

    console = Console()
    budgets = shown()
    configs = [_config(budget, algo, steps) for budget in budgets for algo in ALGOS]
    folders = prepare(out / "runs", configs)
    failures = run_all(folders, console)
    if failures:
        raise RuntimeError(f"{failures[0].folder.path} failed: {failures[0].reason}")
    frames = {budget.task: budget.frames for budget in budgets}
    _film_all([(folder.path, frames[config.task]) for folder, config in zip(folders, configs, strict=True)])
    short = steps is not None and any(steps < budget.steps for budget in budgets)
    trial = TOO_SHORT.format(steps=steps) if short else ONE_SEED
    paths, title = [folder.path for folder in folders], "Learning under a constraint"
    report = write_report(out / "runs", out, paths, title, trial=trial, ahead=TRY_NEXT)
    console.print(_table(report.groups, trial, with_returns=not short))
    console.print(f"The page: {report.page}", markup=False, soft_wrap=True)
    console.print(TRY_NEXT, markup=False, highlight=False)


def shown() -> list[Budget]:
    """The tasks of a demonstration here."""
    from feasible.extras import installed

    return [budget for budget in BUDGETS if budget.extra is None or installed(budget.extra)]


def _config(budget: Budget, algo: str, steps: int | None) -> "RunConfig":
    from feasible.run.launch import configure

    total = budget.steps if steps is None else steps
    return configure(
        budget.task,
        algo,
        0,
        steps=total,
        preset=PRESET,
        changes={**SETTINGS, "warmup": min(WARMUP, total // 4)},
        variant=f"demo-{total}",
        eval_every=min(budget.eval_every, max(1, total // 4)),
    )


def _film_all(runs: Sequence[tuple[Path, int]]) -> None:
    """Films of all runs that have none yet, two at a time; a machine that cannot draw a task has none of it."""
    missing = [(run, frames) for run, frames in runs if not (run / "film.gif").exists()]
    if not missing:
        return
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        for (run, _), reason in zip(missing, pool.map(_film, missing), strict=True):
            if reason:
                print(f"No film of {run}: {reason}", file=sys.stderr)


def _film(run_and_frames: tuple[Path, int]) -> str:
    """Film the run's first evaluated episode into its folder; the reason if that is not possible."""
    from feasible.errors import sentence
    from feasible.run.showing import film_run

    run, frames = run_and_frames
    try:
        film_run(run, run / "film.gif", width=WIDTH, most=frames)
    except Exception as error:  # whatever drawing fails with: the demonstration goes on without this film
        return sentence(error)
    return ""


def _table(groups: "Sequence[Group]", title: str, *, with_returns: bool) -> "Table":
    from rich.table import Table

    table = Table(title=f"{title}.", title_justify="left")
    returns = ["first return", "last return"] if with_returns else []
    for name in ("task", "method", *returns, "infeasible proposals", "executed violation"):
        table.add_column(name, justify="left" if name in ("task", "method") else "right")
    for group in groups:
        run = group.runs[0]
        seen = run.series["eval/return"].values
        numbers = [f"{seen[0]:.1f}", f"{seen[-1]:.1f}"] if with_returns else []
        share = run.infeasible_share
        numbers += ["" if share is None else f"{100 * share:.0f}%", f"{run.executed_violation or 0.0:.0e}"]
        table.add_row(group.task.rpartition(":")[2], group.title, *numbers)
    return table
