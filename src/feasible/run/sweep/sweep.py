"""Many runs at once: independent and resumable, each trained by itself on this machine or on a cluster.

A run that is finished is not repeated, one that was cut short goes on, one that fails is reported and stops no other.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from rich.console import Console
from rich.live import Live

from feasible.run.config import RunConfig
from feasible.run.disk import checkpoint
from feasible.run.disk.archive import ArchiveError
from feasible.run.drive.interrupt import terminated_by_interrupt
from feasible.run.folder import RunFolder
from feasible.run.sweep.overview import Overview, State
from feasible.run.sweep.processes import Processes

LOOK = 0.1  # seconds between two looks at the runs: what a core may idle between two of them
DRAW = 0.5  # seconds between two pictures of them


@dataclass(frozen=True)
class Failure:
    """A run that ended with an error, and the sentence it ended with."""

    folder: RunFolder
    reason: str


class RunInTraining(Protocol):
    """A run that somebody trains."""

    @property
    def begun(self) -> bool: ...

    def failure(self) -> str | None:
        """None while it runs, the reason if it failed, an empty one if it ended well."""
        ...

    def stop(self) -> None:
        """Ask it to end with a checkpoint."""
        ...

    def wait(self) -> None: ...


class Crew(Protocol):
    """Who trains: processes of this machine, or the machines of a cluster."""

    @property
    def slots(self) -> int | None:
        """How many runs are trained at a time; None: it decides itself."""
        ...

    def start(self, folder: RunFolder) -> RunInTraining: ...

    def refresh(self) -> None:
        """Bring the folders up to date where the runs are trained elsewhere."""
        ...


def prepare(out: Path, configs: Sequence[RunConfig]) -> list[RunFolder]:
    """The folders of the runs under `out`; those that exist must hold the same run."""
    names = [config.name for config in configs]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"Two of the runs are {twice}: name each only once, or give variants other names.")
    folders = [RunFolder(out / name) for name in names]
    for folder, config in zip(folders, configs, strict=True):
        if folder.exists() and folder.config() != config:
            raise FileExistsError(f"{folder.path} holds a run with other settings: choose another --out, or delete it.")
    for folder, config in zip(folders, configs, strict=True):
        if not folder.exists():
            folder.create(config)
    return folders


def run_all(folders: Sequence[RunFolder], console: Console, crew: Crew | None = None) -> list[Failure]:
    """Bring all runs to their end; the failures. An interrupt stops every run with a checkpoint."""
    crew = crew or Processes()
    done = {folder for folder in folders if finished(folder)}
    waiting = [folder for folder in folders if folder not in done]
    running: dict[RunFolder, RunInTraining] = {}
    failures: dict[RunFolder, str] = {}
    overview = Overview(folders, crew.slots)

    def state(folder: RunFolder) -> State:
        if folder in running:
            return "running" if running[folder].begun else "waiting"
        return "failed" if folder in failures else "done" if folder in done else "waiting"

    drawn = 0.0
    with terminated_by_interrupt(), Live(console=console, refresh_per_second=2) as live:
        try:
            while waiting or running:
                while waiting and (crew.slots is None or len(running) < crew.slots):
                    folder = waiting.pop(0)
                    running[folder] = crew.start(folder)
                time.sleep(LOOK)
                crew.refresh()
                for folder, training in list(running.items()):
                    reason = training.failure()
                    if reason is None:
                        continue
                    del running[folder]
                    if reason:
                        failures[folder] = reason
                    else:
                        done.add(folder)
                if time.monotonic() - drawn > DRAW:
                    live.update(overview.drawn({folder: state(folder) for folder in folders}, failures))
                    drawn = time.monotonic()
        except BaseException:
            for training in running.values():
                training.stop()
            for training in running.values():
                training.wait()
            raise
        live.update(overview.drawn({folder: state(folder) for folder in folders}, failures))
    if not console.is_terminal:
        console.print()  # a live display ends its last line only on a terminal
    return [Failure(folder, failures[folder]) for folder in folders if folder in failures]


def finished(folder: RunFolder) -> bool:
    """Whether a run has its last checkpoint."""
    try:
        saved = checkpoint.read(folder.checkpoint)
    except ArchiveError:
        return False  # what is wrong, its own process says
    return saved is not None and saved.finished
