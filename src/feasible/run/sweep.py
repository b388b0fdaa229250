"""Many runs at once: independent, resumable processes of one thread each, as many at a time as there are cores.

A run that is finished is not repeated, one that was cut short goes on, one that fails is reported and stops no other.
"""

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from feasible.methods import find_method
from feasible.run import checkpoint
from feasible.run.archive import ArchiveError
from feasible.run.folder import RunConfig, RunFolder, read_metrics

LOOK = 0.5  # seconds between two looks at the processes
ERRORS = "errors.log"  # in a run's folder: what its process complained of


@dataclass(frozen=True)
class Failure:
    """A run that ended with an error, and the sentence it ended with."""

    folder: RunFolder
    reason: str


def prepare(out: Path, configs: Sequence[RunConfig]) -> list[RunFolder]:
    """The folders of the runs under `out`; those that exist must hold the same run."""
    folders = []
    for config in configs:
        folder = RunFolder(out / config.name)
        if folder.exists():
            if folder.config() != config:
                raise FileExistsError(
                    f"{folder.path} holds a run with other settings: choose another --out, or delete it."
                )
        else:
            folder.create(config)
        folders.append(folder)
    return folders


def run_all(folders: Sequence[RunFolder], console: Console) -> list[Failure]:
    """Bring all runs to their end; the failures. An interrupt stops every run with a checkpoint."""
    waiting = [folder for folder in folders if not _finished(folder)]
    running: dict[Path, tuple[RunFolder, subprocess.Popen]] = {}
    failures: list[Failure] = []
    overview = _Overview(folders)
    with Live(overview.drawn(running, failures), console=console, refresh_per_second=2) as live:
        try:
            while waiting or running:
                while waiting and len(running) < (os.cpu_count() or 1):
                    folder = waiting.pop(0)
                    running[folder.path] = folder, _start(folder)
                time.sleep(LOOK)
                for path, (folder, process) in list(running.items()):
                    if process.poll() is not None:
                        del running[path]
                        if process.returncode:
                            failures.append(Failure(folder, _reason(folder, process)))
                        else:
                            (path / ERRORS).unlink(missing_ok=True)
                live.update(overview.drawn(running, failures))
        except BaseException:
            # They end with a checkpoint each; Ctrl-C they have heard themselves.
            for _, process in running.values():
                process.terminate()
            for _, process in running.values():
                process.wait()
            raise
        live.update(overview.drawn(running, failures))
    return failures


def _start(folder: RunFolder) -> subprocess.Popen:
    command = [sys.executable, "-m", "feasible.cli", "resume", str(folder.path)]
    with (folder.path / ERRORS).open("wb") as log:
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log)


def _reason(folder: RunFolder, process: subprocess.Popen) -> str:
    said = (folder.path / ERRORS).read_text(errors="replace").strip().splitlines()
    return said[-1] if said else f"it ended with code {process.returncode}"


def _finished(folder: RunFolder) -> bool:
    try:
        saved = checkpoint.read(folder.checkpoint)
    except ArchiveError:
        return False  # what is wrong, its own process says
    return saved is not None and saved.finished


class _Overview:
    """One table of all runs: where they are, how fast, when the last will be done."""

    def __init__(self, folders: Sequence[RunFolder]):
        self._configs = [(folder, folder.config()) for folder in folders]
        self._begun = time.monotonic()

    def drawn(self, running: dict[Path, tuple[RunFolder, subprocess.Popen]], failures: Sequence[Failure]) -> Group:
        failed = {failure.folder.path for failure in failures}
        table = Table(title="Training", title_justify="left")
        for name in ("run", "state", "step", "return", "violation", "steps/s"):
            table.add_column(name, justify="left" if name in ("run", "state") else "right")
        done = remaining = 0
        speed = 0.0
        for folder, config in self._configs:
            last = {name: value for line in read_metrics(folder.metrics) for name, value in line.items()}
            step = int(last.get("step", 0))  # pyright: ignore[reportArgumentType]
            finished = step >= config.steps
            state = "failed" if folder.path in failed else "running" if folder.path in running else "waiting"
            state = "done" if finished and state != "failed" and folder.path not in running else state
            done += state == "done"
            remaining += config.steps - step if state in ("running", "waiting") else 0
            rate = last.get("time/steps_per_second")
            speed += rate if state == "running" and isinstance(rate, float) else 0.0
            table.add_row(
                f"{config.task}  {find_method(config.algo).title}  seed {config.seed}",
                state,
                f"{step:,} of {config.steps:,}",
                _number(last.get("eval/return"), ".1f"),
                _number(last.get("violation/executed_max"), ".0e"),
                _number(rate, ".0f") if state == "running" else "",
            )
        end = f", about {remaining / speed / 60:.0f} minutes to go" if speed and remaining else ""
        news = f"{done} of {len(self._configs)} done, {len(running)} running, {len(failed)} failed{end}"
        return Group(table, Text(news))


def _number(value: float | list[float] | None, form: str) -> str:
    return f"{value:{form}}" if isinstance(value, int | float) else ""
