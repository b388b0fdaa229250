"""Watchers: what a person, a file or another machine hears of runs in training."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Self

from feasible.compiling import LOG
from feasible.run.config import RunConfig

# One line of metrics.jsonl.
Line = Mapping[str, float | list[float]]


class Watcher:
    """What is heard of a run, or of the runs of a population; this one does nothing. Used as a context."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None: ...

    def begin(self, configs: Sequence[RunConfig], step: int, memory: str) -> None:
        """Before anything is allocated; `memory` says what the agents of a population take."""

    def warned(self, says: str) -> None:
        """After the beginning, of what a person must know."""

    def advanced(self, step: int) -> None:
        """After every step."""

    def logged(self, config: RunConfig, line: Line) -> None:
        """With every line of every run's metrics."""

    def evaluated(self, step: int, seconds: float) -> None:
        """After every evaluation, with how many seconds training waited for it."""

    def failed(self, config: RunConfig, reason: str) -> None:
        """Once for each run of a population that cannot go on, when the others' next lines are due."""

    def saved(self) -> None:
        """After every checkpoint."""


class Logged(Watcher):
    """Tells the logger `feasible` what a person must know; for programs, which have no bar."""

    def warned(self, says: str) -> None:
        LOG.warning(says)


class Watchers(Watcher):
    """Several as one."""

    def __init__(self, watchers: Sequence[Watcher]):
        self._watchers, self._entered = watchers, ExitStack()

    def __enter__(self) -> Self:
        for watcher in self._watchers:
            self._entered.enter_context(watcher)
        return self

    def __exit__(self, *error: object) -> None:
        self._entered.close()

    def begin(self, configs: Sequence[RunConfig], step: int, memory: str) -> None:
        for watcher in self._watchers:
            watcher.begin(configs, step, memory)

    def warned(self, says: str) -> None:
        for watcher in self._watchers:
            watcher.warned(says)

    def advanced(self, step: int) -> None:
        for watcher in self._watchers:
            watcher.advanced(step)

    def logged(self, config: RunConfig, line: Line) -> None:
        for watcher in self._watchers:
            watcher.logged(config, line)

    def evaluated(self, step: int, seconds: float) -> None:
        for watcher in self._watchers:
            watcher.evaluated(step, seconds)

    def failed(self, config: RunConfig, reason: str) -> None:
        for watcher in self._watchers:
            watcher.failed(config, reason)

    def saved(self) -> None:
        for watcher in self._watchers:
            watcher.saved()
