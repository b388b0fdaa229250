"""The command line: one function a command, its parameters are the options, its docstring the help.

Commands import what they need when they run, so that help is there at once.
"""

import importlib
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from feasible.errors import sentence

if TYPE_CHECKING:
    from feasible.algorithms.description import Plain
    from feasible.report.writing import Report
    from feasible.run.folder import RunConfig, RunFolder
    from feasible.run.sweep import Crew, Failure

STUDIES = ("feasible.studies.as_authors",)  # their algorithms can be trained and loaded by name


def train(
    task: str,
    algo: str,
    seed: int = 0,
    steps: int | None = None,
    settings: Literal["paper", "fair"] = "paper",
    set: tuple[str, ...] = (),
    variant: str = "",
    out: Path = Path("runs"),
    eval_every: int | None = None,
    episodes: int | None = None,
    checkpoint_every: int = 10_000,
    tensorboard: bool = False,
) -> None:
    """Train one agent on a task; the run's folder is OUT/TASK/ALGO/seed-SEED.

    Args:
        task: Name of the task (`feasible tasks`).
        algo: Name of the algorithm (`feasible algos`).
        seed: Seed of everything random in the run.
        steps: Environment steps; the paper's number for the task if not given.
        settings: The paper's settings, or those that treat every method alike.
        set: Changes of single settings, as NAME=VALUE.
        variant: Name that tells this run's folder from others of the same task and algorithm.
        out: Folder of all runs.
        eval_every: Steps between evaluations.
        episodes: Episodes an evaluation.
        checkpoint_every: Steps between checkpoints.
        tensorboard: Also write TensorBoard event files into the run's folder.
    """
    _one_thread()
    if tensorboard:
        from feasible.run.tensorboard import require_tensorboard

        require_tensorboard()
    from feasible.run.launch import configure, new_run

    config = configure(
        task,
        algo,
        seed,
        steps=steps,
        settings=settings,
        changes=_changes(set),
        variant=variant,
        evaluation_interval=eval_every,
        evaluation_episodes=episodes,
        checkpoint_interval=checkpoint_every,
    )
    _train(new_run(out, config).path, tensorboard)


def resume(run: Annotated[Path, tyro.conf.Positional], tensorboard: bool = False) -> None:
    """Go on with a run from its last checkpoint, or from the beginning if it has none yet.

    Args:
        run: Folder of the run.
        tensorboard: Also write TensorBoard event files into the run's folder.
    """
    _one_thread()
    _know_studies()
    _train(run, tensorboard)


def evaluate(
    run: Annotated[Path, tyro.conf.Positional], episodes: int = 10, seed: int = 0, video: Path | None = None
) -> None:
    """Play episodes with a run's policy and print their returns.

    Args:
        run: Folder of the run, or its policy file.
        episodes: How many episodes.
        seed: Seed of the episodes.
        video: Write the first episode to this file, an .mp4 or a .gif.
    """
    _one_thread()
    _know_studies()
    from feasible.run.showing import show_evaluation

    show_evaluation(run, episodes, seed, video)


def tasks() -> None:
    """What tasks there are, with their constraints and the paper's settings."""
    from feasible.listing import print_tasks

    print_tasks()


def algos() -> None:
    """What algorithms there are."""
    from feasible.listing import print_algos

    print_algos()


def demo(out: Path = Path("demo"), steps: int | None = None) -> None:
    """Train two methods on two tasks for a few minutes, compare them and draw the result.

    Args:
        out: Folder for the runs, the figures and the page.
        steps: Environment steps a run, instead of a budget for about five minutes in all.
    """
    _one_thread()
    from feasible.demo import run_demo

    run_demo(out, steps)


def compare(
    tasks: tuple[str, ...],
    algos: tuple[str, ...],
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4),
    steps: int | None = None,
    settings: Literal["paper", "fair"] = "paper",
    set: tuple[str, ...] = (),
    variant: str = "",
    jobs: int | None = None,
    ray: str | None = None,
    out: str = "runs",
    eval_every: int | None = None,
    episodes: int | None = None,
    checkpoint_every: int = 10_000,
) -> None:
    """Train every method on every task with every seed, as independent runs of one thread each.

    Finished runs are not repeated and unfinished ones go on, so the same command continues after an interrupt. A run
    that fails is reported and stops no other; the exit code is then 1.

    Args:
        tasks: Names of the tasks (`feasible tasks`).
        algos: Names of the algorithms (`feasible algos`).
        seeds: Seeds of the runs.
        steps: Environment steps a run; the paper's number for the task if not given.
        settings: The paper's settings, or those that treat every method alike.
        set: Changes of single settings of every method, as NAME=VALUE.
        variant: Name that tells these runs' folders from others of the same tasks and algorithms.
        jobs: Runs at a time; as many as there are cores if not given.
        ray: Address of a Ray cluster to run on, or `auto`.
        out: Folder of all runs; with --ray one that all machines see, or an address that fsspec knows (s3://...).
        eval_every: Steps between evaluations.
        episodes: Episodes an evaluation.
        checkpoint_every: Steps between checkpoints.
    """
    _on_cores()
    from feasible.run.launch import grid

    configs = grid(
        tasks,
        algos,
        seeds,
        steps=steps,
        settings=settings,
        changes=_changes(set),
        variant=variant,
        evaluation_interval=eval_every,
        evaluation_episodes=episodes,
        checkpoint_interval=checkpoint_every,
    )
    failures = _sweep(configs, out, jobs, ray)
    print(f"Look at them with: feasible report {out}")
    _end(failures, len(configs))


def report(runs: Annotated[str, tyro.conf.Positional], out: Path = Path("report")) -> None:
    """Write a page, figures and tables from run folders; nothing is trained.

    Args:
        runs: Folder of the runs, or an address that fsspec knows.
        out: Folder for index.html, figures/ and tables/.
    """
    from feasible.report.writing import write_report
    from feasible.run.store import fetched

    with fetched(runs) as folder:
        _tell(write_report(folder, out))


def reproduce(
    item: Annotated[str, tyro.conf.Positional],
    settings: Literal["paper", "fair"] = "paper",
    steps_scale: float = 1.0,
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4),
    as_authors: bool = False,
    jobs: int | None = None,
    ray: str | None = None,
    out: Path = Path("reproduction"),
) -> None:
    """Train exactly the runs that a table or figure of the paper needs, and report on them.

    Like `compare`, it goes on after an interrupt, and does not repeat the runs of other items.

    Args:
        item: table1, table2, fig1 to fig6, or all.
        settings: The paper's settings, or those that treat every method alike.
        steps_scale: Share of the paper's steps, for shorter runs.
        seeds: Seeds of the runs.
        as_authors: Also train the methods as the authors' published code runs them.
        jobs: Runs at a time; as many as there are cores if not given.
        ray: Address of a Ray cluster to run on, or `auto`; all its machines must see the folder.
        out: Folder for the runs and, by item, the reports.
    """
    _on_cores()
    from feasible.report.writing import write_report
    from feasible.reproduction import TITLES, paper_runs, run_folder

    configs = paper_runs(item, seeds, settings, steps_scale, as_authors)
    runs = run_folder(out, steps_scale)
    failures = _sweep(configs, str(runs), jobs, ray)
    title = TITLES[item] + ("" if steps_scale == 1 else f", {steps_scale:g} of its steps")
    _tell(write_report(runs, out / item, [runs / config.name for config in configs], title))
    _end(failures, len(configs))


COMMANDS = {
    "train": train,
    "evaluate": evaluate,
    "resume": resume,
    "compare": compare,
    "report": report,
    "reproduce": reproduce,
    "tasks": tasks,
    "algos": algos,
    "demo": demo,
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command that the arguments (by default those of the process) name."""
    try:
        tyro.extras.subcommand_cli_from_dict(
            COMMANDS,
            prog="feasible",
            description="Reinforcement learning whose every action is feasible.",
            args=arguments,
        )
    except (ValueError, OSError, RuntimeError, FloatingPointError) as error:
        if os.environ.get("FEASIBLE_TRACEBACK"):
            raise
        print(f"feasible: {sentence(error)}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        print("feasible: interrupted.", file=sys.stderr)
        sys.exit(130)


def _train(run: Path, tensorboard: bool) -> None:
    from rich.console import Console

    from feasible.run.folder import RunFolder
    from feasible.run.progress import ProgressBar
    from feasible.run.training import Watcher, watched_by
    from feasible.run.training import train as train_run

    console, folder = Console(), RunFolder(run)
    with ProgressBar(console) as bar:
        watchers: list[Watcher] = [bar]
        if tensorboard:
            from feasible.run.tensorboard import EventFiles

            watchers.append(EventFiles(run))
        outcome = train_run(folder, watched_by(watchers))
    if outcome.finished:
        news = "was finished before" if outcome.already else "finished"
        console.print(f"{run} {news}, at step {outcome.step}; its policy: {folder.policy}")
        return
    console.print(f"Stopped at step {outcome.step} with a checkpoint. Go on with: feasible resume {run}")
    sys.exit(130)


def _know_studies() -> None:
    """Runs may be of algorithms that only a study has."""
    for study in STUDIES:
        importlib.import_module(study)


def _changes(pairs: Sequence[str]) -> "dict[str, Plain]":
    changes: dict[str, Plain] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise ValueError(f"--set takes NAME=VALUE, not {pair!r}.")
        try:
            changes[name] = json.loads(value)
        except json.JSONDecodeError:
            changes[name] = value
    return changes


def _sweep(configs: "Sequence[RunConfig]", out: str, jobs: int | None, ray: str | None) -> "list[Failure]":
    """Bring runs to their end on this machine or on a Ray cluster."""
    from rich.console import Console

    from feasible.run.sweep import run_all

    folders, crew = _crew(configs, out, jobs, ray)
    try:
        return run_all(folders, Console(), crew)
    except KeyboardInterrupt:
        print("feasible: interrupted; start the same command to go on from the last checkpoints.", file=sys.stderr)
        sys.exit(130)


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
    from feasible.run.processes import Processes
    from feasible.run.store import is_address
    from feasible.run.sweep import prepare

    if ray is not None:
        from feasible.run.cluster import Cluster

        cluster = Cluster(ray, out, jobs, STUDIES)
        return cluster.prepare(configs), cluster
    if is_address(out):
        raise ValueError(f"out must be a folder, not {out!r}: runs are trained at an address with --ray.")
    processes = Processes(jobs)
    return prepare(Path(out), configs), processes


def _one_thread() -> None:
    from feasible.run.processes import one_thread

    os.environ |= one_thread()


def _on_cores() -> None:
    """Many runs of one thread each: an accelerator is no place for them."""
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    _one_thread()


if __name__ == "__main__":
    main()
