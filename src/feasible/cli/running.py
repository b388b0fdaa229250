"""How commands run: one run in this process, or many on cores, a cluster or an accelerator.

Like the commands, these functions import what they need when they are called.
"""

import importlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from feasible.run.config import RunConfig
    from feasible.run.sweep.sweep import Failure

Device = Literal["cpu", "gpu"]
STUDIES = ("feasible.paper.as_authors",)  # their algorithms can be trained and loaded by name


def know_studies() -> None:
    """Runs may be of algorithms that only a study has."""
    for study in STUDIES:
        importlib.import_module(study)


def one_thread() -> None:
    """A run has one thread, and its programs are kept for the next; to be called before JAX is used."""
    from feasible.program_cache import keep_programs
    from feasible.run.sweep.processes import use_one_thread

    use_one_thread()
    keep_programs()


def on_cores() -> None:
    """Many runs of one thread each: an accelerator is no place for them."""
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    one_thread()


def bring_to_end(run: Path, tensorboard: bool) -> None:
    """Train the run of a folder in this process, from its last checkpoint on, and say how it ended."""
    from rich.console import Console

    from feasible.run.folder import RunFolder
    from feasible.run.progress import ProgressBar
    from feasible.run.train import train
    from feasible.run.watch import Watcher, Watchers

    console, folder = Console(), RunFolder(run)
    with ProgressBar(console) as bar:
        watchers: list[Watcher] = [bar]
        if tensorboard:
            from feasible.run.tensorboard import EventFiles

            watchers.append(EventFiles(run))
        outcome = train(folder, Watchers(watchers))
    if outcome.finished:
        news = "was finished before" if outcome.already else "finished"
        console.print(f"{run} {news}, at step {outcome.step}; its policy: {folder.policy}", markup=False)
        return
    saved = " with a checkpoint" if outcome.saved == outcome.step else _without(outcome.saved)
    console.print(f"Stopped at step {outcome.step}{saved}. Go on with: feasible resume {run}", markup=False)
    sys.exit(130)


def _without(saved: int | None) -> str:
    """What is said where an environment can be saved at the beginning of episodes only."""
    return f"; the last checkpoint is of step {saved}" if saved else " before the first checkpoint"


def sweep(
    configs: "Sequence[RunConfig]", out: str, jobs: int | None, ray: str | None, device: Device = "cpu"
) -> "list[Failure]":
    """Bring runs to their end on this machine's cores or accelerator, or on a Ray cluster."""
    from rich.console import Console

    from feasible.program_cache import keep_programs
    from feasible.run.sweep.anywhere import bring_all

    keep_programs()
    try:
        return bring_all(configs, out, Console(), jobs, ray, device, STUDIES)
    except KeyboardInterrupt:
        print("feasible: interrupted; start the same command to go on from the last checkpoints.", file=sys.stderr)
        sys.exit(130)


def end(failures: "Sequence[Failure]", total: int) -> None:
    """The exit code says whether a run failed; what went wrong is said last, where it is seen."""
    if failures:
        reasons = "".join(f"\n  {failure.folder.path}: {failure.reason}" for failure in failures)
        raise RuntimeError(f"{len(failures)} of {total} runs failed; start again to go on with them:{reasons}")
