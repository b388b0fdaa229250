"""The commands as functions, for programs and notebooks: `train`, `compare`, `write_report`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Unpack

from rich.console import Console

from feasible.algorithms.description import Plain
from feasible.catalogue.registry import known_as
from feasible.catalogue.task import Task
from feasible.report.writing import Report
from feasible.report.writing import write_report as write
from feasible.run.launch import configure, grid, new_run
from feasible.run.options import Options
from feasible.run.progress import ProgressBar
from feasible.run.sweep.anywhere import Device, bring_all
from feasible.run.sweep.remote import fetched
from feasible.run.train import train as train_run
from feasible.run.watch import Logged


def train(
    task: str | Task,
    algo: str,
    *,
    seed: int = 0,
    settings: Mapping[str, Plain] | None = None,
    out: str | Path = "runs",
    progress_bar: bool = False,
    **options: Unpack[Options],
) -> Path:
    """Train one agent on a task, as `feasible train` does, and return the run's folder.

    >>> run = feasible.train("mine:boat", "nfwpo", seed=0, steps=50_000, settings={"batch_size": 128})

    `settings` override hyper-parameters of the method. Ctrl-C writes a checkpoint, ends the run and raises.
    """
    folder = new_run(Path(out), configure(known_as(task), algo, seed, changes=settings, **options))
    with ProgressBar(Console()) if progress_bar else Logged() as watcher:
        outcome = train_run(folder, watcher)
    if not outcome.finished:
        raise KeyboardInterrupt
    return folder.path


def compare(
    tasks: Sequence[str | Task],
    algos: Sequence[str],
    *,
    seeds: Sequence[int] = (0, 1, 2, 3, 4),
    settings: Mapping[str, Plain] | None = None,
    out: str | Path = "runs",
    jobs: int | None = None,
    ray: str | None = None,
    device: Device = "cpu",
    **options: Unpack[Options],
) -> list[Path]:
    """Train every method on every task with every seed, as `feasible compare` does, and return the runs' folders.

    Finished runs are skipped and unfinished ones resumed. A run that fails stops no other; the reasons are raised at
    the end.
    """
    configs = grid([known_as(task) for task in tasks], algos, seeds, changes=settings, **options)
    failures = bring_all(configs, str(out), Console(), jobs, ray, device)
    if failures:
        reasons = "".join(f"\n  {failure.folder.path}: {failure.reason}" for failure in failures)
        raise RuntimeError(f"{len(failures)} of {len(configs)} runs failed; call again to go on with them:{reasons}")
    return [Path(out) / config.name for config in configs]


def write_report(runs: str | Path, out: str | Path = "report") -> Report:
    """Write a page, figures and tables from run folders, as `feasible report` does; nothing is trained."""
    with fetched(str(runs)) as folder:
        return write(folder, Path(out))
