"""Gates: a run in a process of its own waits at a step until the test lets it go on, or until it is told to end.

A kill and an interrupt so always meet a running run, at a known step, however fast or slow the machine is.

A gate is the file FOLDER/NAME OF THE RUN/STEP. A run that has made the step writes its machine into the file and waits
until the file is gone or a signal comes. Processes find the folder in their environment (`tests.run.runs.environment`).
"""

import os
import select
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from feasible.run.config import RunConfig
from feasible.run.folder import RunFolder
from feasible.run.train import Outcome
from feasible.run.watch import Watcher, Watchers

PATIENCE = 900.0  # seconds after which what a test waits for is taken to hang; no test asserts how long anything takes
LOOK = 0.01  # seconds between two looks at what is waited for
FOLDER, MACHINE = "FEASIBLE_TEST_GATES", "FEASIBLE_TEST_MACHINE"


def wait_until(reached: Callable[[], bool], alive: Callable[[], bool]) -> None:
    """Wait for what is to come while something is alive."""
    deadline = time.monotonic() + PATIENCE
    while not reached():
        assert alive(), "it ended before it came to what was waited for"
        assert time.monotonic() < deadline, "it hangs"
        time.sleep(LOOK)


class Gate:
    """One step of one run."""

    def __init__(self, path: Path):
        self._path = path

    def machine(self) -> str:
        """That of the process which waits here; an empty name if none does."""
        return self._path.read_text()

    def wait(self, alive: Callable[[], bool]) -> str:
        """Until a process waits here; on which machine it is."""
        wait_until(lambda: self.machine() != "", alive)
        return self.machine()

    def open(self) -> None:
        self._path.unlink(missing_ok=True)


class Gates:
    """Those in one folder."""

    def __init__(self, folder: Path):
        self.folder = folder

    @contextmanager
    def closed(self, run: str, step: int) -> Iterator[Gate]:
        """A gate that is open again at the end."""
        path = self.folder / run / str(step)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        gate = Gate(path)
        try:
            yield gate
        finally:
            gate.open()

    def starts(self, run: str) -> list[int]:
        """The steps that the run's processes, one after the other, began at."""
        return [int(line) for line in (self.folder / run / "starts").read_text().split()]


class _AtGates(Watcher):
    def begin(self, configs: Sequence[RunConfig], step: int, memory: str) -> None:
        self._folder = Path(os.environ[FOLDER]) / configs[0].name
        self._folder.mkdir(parents=True, exist_ok=True)
        with (self._folder / "starts").open("a") as file:
            file.write(f"{step}\n")

    def advanced(self, step: int) -> None:
        gate = self._folder / str(step)
        if gate.exists():
            with suppress(FileNotFoundError):  # opened at this moment
                _stand_at(gate)


def _stand_at(gate: Path) -> None:
    heard, signals = os.pipe()
    os.set_blocking(signals, False)
    before = signal.set_wakeup_fd(signals)  # from now on a signal is readable, and its handler runs as ever
    try:
        with gate.open("r+") as file:  # never made anew
            file.truncate(0)
            file.write(os.environ.get(MACHINE, "this"))
        while gate.exists() and not select.select([heard], [], [], LOOK)[0]:
            pass
    finally:
        signal.set_wakeup_fd(before)
        os.close(heard)
        os.close(signals)


def stopping_at_gates(train: Callable[[RunFolder, Watcher | None], Outcome]) -> Callable[..., Outcome]:
    """`train` in a process whose runs stop at gates."""

    def train_past_gates(folder: RunFolder, watcher: Watcher | None = None) -> Outcome:
        return train(folder, Watchers([watcher or Watcher(), _AtGates()]))

    return train_past_gates
