"""The commands about many runs: compare, report, reproduce.

Like all commands they import what they need when they run.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

if TYPE_CHECKING:
    from feasible.report.writing import Report
    from feasible.run.config import RunConfig
    from feasible.run.folder import RunFolder
    from feasible.run.sweep.sweep import Crew, Failure

Device = Literal["cpu", "gpu"]
STUDIES = ("feasible.paper.as_authors",)  # their algorithms can be trained and loaded by name


def compare(
    tasks: tuple[str, ...],
    algos: tuple[str, ...],
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4),
    steps: int | None = None,
    preset: str | None = None,
    set: tuple[str, ...] = (),
    variant: str = "",
    jobs: int | None = None,
    ray: str | None = None,
    device: Device = "cpu",
    out: str = "runs",
    eval_every: int | None = None,
    episodes: int | None = None,
    checkpoint_every: int = 10_000,
) -> None:
    """Train every method on every task with every seed, as independent runs of one thread each or on an accelerator.

    Finished runs are not repeated and unfinished ones go on, so the same command continues after an interrupt. A run
    that fails is reported and stops no other; the exit code is then 1.

    Args:
        tasks: Names of the tasks (`feasible tasks`).
        algos: Names of the algorithms (`feasible algos`), or `recommended`.
        seeds: Seeds of the runs.
        steps: Environment steps per run; the task's own number if not given.
        preset: Preset of the tasks (`feasible tasks`), or `default` for the methods' own defaults. Omitted: each task's
            first; fair beside `recommended`.
        set: Override hyper-parameters of every method, for example batch_size=32.
        variant: Name that tells these runs' folders from others of the same tasks and algorithms.
        jobs: Runs at a time; as many as there are cores if not given.
        ray: Address of a Ray cluster to run on, or `auto`.
        device: gpu trains all runs of a task together, as one program on this machine's accelerator.
        out: Folder of all runs; with --ray one that all machines see, or an address that fsspec knows (s3://...).
        eval_every: Steps between evaluations.
        episodes: Episodes per evaluation.
        checkpoint_every: Steps between checkpoints.
    """
    if device == "gpu" and (jobs is not None or ray is not None):
        name = "jobs" if ray is None else "ray"
        raise ValueError(f"--{name} is for runs on cores: leave it out, or leave out --device gpu.")
    if device == "cpu":
        _on_cores()
    from feasible.run.launch import changes_of, grid

    configs = grid(
        tasks,
        algos,
        seeds,
        steps=steps,
        preset=preset,
        changes=changes_of(set),
        variant=variant,
        eval_every=eval_every,
        episodes=episodes,
        checkpoint_every=checkpoint_every,
    )
    failures = _sweep(configs, out, jobs, ray, device)
    print(f"Look at them with: feasible report {out}")
    _end(failures, len(configs))


def report(runs: Annotated[str, tyro.conf.Positional], out: Path = Path("report")) -> None:
    """Write a page, figures and tables from run folders; nothing is trained.

    Args:
        runs: Folder of the runs, or an address that fsspec knows.
        out: Folder for index.html, figures/ and tables/.
    """
    from feasible.report.writing import write_report
    from feasible.run.sweep.remote import fetched

    with fetched(runs) as folder:
        _tell(write_report(folder, out))


def reproduce(
    item: Annotated[str, tyro.conf.Positional],
    preset: Literal["paper", "fair"] = "paper",
    steps_scale: float = 1.0,
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4),
    as_authors: bool = False,
    jobs: int | None = None,
    ray: str | None = None,
    device: Device = "cpu",
    out: Path = Path("reproduction"),
) -> None:
    """Train exactly the runs that a table or figure of the paper needs, and report on them.

    Like `compare`, it goes on after an interrupt, and does not repeat the runs of other items.

    Args:
        item: table1, table2, fig1 to fig6, or all.
        preset: The paper's hyper-parameters, or those that treat every method alike.
        steps_scale: Share of the paper's steps, for shorter runs.
        seeds: Seeds of the runs.
        as_authors: Also train the methods as the authors' published code runs them.
        jobs: Runs at a time; as many as there are cores if not given.
        ray: Address of a Ray cluster to run on, or `auto`; all its machines must see the folder.
        device: gpu trains the MuJoCo runs of methods with a replay together on this machine's accelerator, and then
            the others on its cores.
        out: Folder for the runs and, by item, the reports.
    """
    if device == "cpu":
        _on_cores()
    from feasible.paper.items import TITLES, for_accelerator, paper_runs, run_folder
    from feasible.report.writing import write_report

    configs = paper_runs(item, seeds, preset, steps_scale, as_authors)
    runs = run_folder(out, steps_scale)
    together = [config for config in configs if device == "gpu" and for_accelerator(config)]
    failures = _sweep(together, str(runs), None, None, "gpu") if together else []
    if device == "gpu":
        os.environ["JAX_PLATFORMS"] = "cpu"  # of the processes that are still to be started
        _on_cores()
    apart = [config for config in configs if config not in together]
    failures += _sweep(apart, str(runs), jobs, ray) if apart else []
    title = TITLES[item] + ("" if steps_scale == 1 else f", {steps_scale:g} of its steps")
    _tell(write_report(runs, out / item, [runs / config.name for config in configs], title))
    _end(failures, len(configs))


def _sweep(
    configs: "Sequence[RunConfig]", out: str, jobs: int | None, ray: str | None, device: Device = "cpu"
) -> "list[Failure]":
    """Bring runs to their end on this machine's cores or accelerator, or on a Ray cluster."""
    try:
        return _on_accelerator(configs, out) if device == "gpu" else _on_machines(configs, out, jobs, ray)
    except KeyboardInterrupt:
        print("feasible: interrupted; start the same command to go on from the last checkpoints.", file=sys.stderr)
        sys.exit(130)


def _on_machines(configs: "Sequence[RunConfig]", out: str, jobs: int | None, ray: str | None) -> "list[Failure]":
    from rich.console import Console

    from feasible.run.sweep.sweep import run_all

    folders, crew = _crew(configs, out, jobs, ray)
    return run_all(folders, Console(), crew)


def _on_accelerator(configs: "Sequence[RunConfig]", out: str) -> "list[Failure]":
    from rich.console import Console

    from feasible.run.sweep.accelerator import require_accelerator, train_by_task
    from feasible.run.sweep.remote import is_address

    require_accelerator()
    if is_address(out):
        raise ValueError(f"out must be a folder, not {out!r}: runs are trained at an address with --ray.")
    return train_by_task(Path(out), configs, Console())


def _end(failures: "Sequence[Failure]", total: int) -> None:
    """The exit code says whether a run failed; what went wrong is said last, where it is seen."""
    if failures:
        reasons = "".join(f"\n  {failure.folder.path}: {failure.reason}" for failure in failures)
        raise RuntimeError(f"{len(failures)} of {total} runs failed; start again to go on with them:{reasons}")


def _tell(report: "Report") -> None:
    for note in report.notes:
        print(f"{'Left out: ' if note.left_out else ''}{note.about} {note.says}.")
    print(f"Report of {report.runs} runs: {report.page}")


def _crew(
    configs: "Sequence[RunConfig]", out: str, jobs: int | None, ray: str | None
) -> "tuple[list[RunFolder], Crew]":
    from feasible.run.sweep.processes import Processes
    from feasible.run.sweep.remote import is_address
    from feasible.run.sweep.sweep import prepare

    if ray is not None:
        from feasible.run.sweep.ray import Cluster

        cluster = Cluster(ray, out, jobs, STUDIES)
        return cluster.prepare(configs), cluster
    if is_address(out):
        raise ValueError(f"out must be a folder, not {out!r}: runs are trained at an address with --ray.")
    processes = Processes(jobs)
    return prepare(Path(out), configs), processes


def _on_cores() -> None:
    """Many runs of one thread each: an accelerator is no place for them."""
    from feasible.run.sweep.processes import use_one_thread

    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    use_one_thread()
