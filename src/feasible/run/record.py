"""What runs leave of their training: lines of metrics in the order of their steps, and failures, each told once.

An evaluation may be played by another thread while training goes on; lines of later steps then wait for it.
"""

import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Self

import numpy as np
from jaxtyping import Bool

from feasible.run.config import RunConfig
from feasible.run.drive.lone import Lone
from feasible.run.drive.population import Population
from feasible.run.evaluate import AgentsEvaluation
from feasible.run.folder import RunFolder
from feasible.run.watch import Watcher

Lines = list[dict[str, float | list[float]]]
"""By agent: what a line of its metrics will have."""


class Record:
    """Of the runs of a driver, with or without folders. Used as a context, which ends its thread."""

    def __init__(
        self, folders: Sequence[RunFolder], configs: Sequence[RunConfig], driver: Lone | Population, watcher: Watcher
    ) -> None:
        self._folders, self._configs, self._driver, self._watcher = folders, configs, driver, watcher
        self._told: set[int] = set()
        self._player = ThreadPoolExecutor(1, "evaluation")
        self._played: tuple[Future[AgentsEvaluation], Lines] | None = None
        """An evaluation that is being played, and the lines that it will stand in."""
        self._later: list[tuple[int, Bool[np.ndarray, " agents"], Lines]] = []
        """What follows it: steps, the agents that were live then, and their lines."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._player.shutdown()

    def still_playing(self) -> bool:
        """Log an evaluation that has ended meanwhile; return whether one is being played."""
        if self._played and self._played[0].done():
            self.end_evaluation()
        return self._played is not None

    def log(self, lines: Lines) -> None:
        """Log lines of the driver's present step, with the failures until then."""
        self._later.append((self._driver.step, self._driver.live.copy(), lines))
        if not self.still_playing():
            self.tell_failures()
            self._write_later()

    def evaluate(self, evaluation: AgentsEvaluation, lines: Lines, *, beside: bool) -> None:
        """Play an evaluation, at once or `beside` training, and log it with the lines of its step."""
        if beside:
            self._played = self._player.submit(evaluation.play), lines
        else:
            begun = time.perf_counter()
            self._log_evaluation(evaluation.play(), lines, begun)

    def end_evaluation(self) -> None:
        """Wait for the evaluation that is being played, if any, and log it and what followed it."""
        if self._played is not None:
            begun, (played, lines), self._played = time.perf_counter(), self._played, None
            self._log_evaluation(played.result(), lines, begun)

    def tell_failures(self) -> None:
        """Tell of runs that cannot go on, each once."""
        for agent in sorted(self._driver.failures.keys() - self._told):
            self._watcher.failed(self._configs[agent], self._driver.failures[agent])
            self._told.add(agent)

    def _log_evaluation(self, evaluation: AgentsEvaluation, lines: Lines, begun: float) -> None:
        for agent, found in evaluation.tell(self._driver).items():
            lines[agent] |= found.metrics()
        self._watcher.evaluated(evaluation.step, time.perf_counter() - begun)
        self.tell_failures()
        self._write(evaluation.step, evaluation.live, lines)
        for _, live, _ in self._later:
            live &= evaluation.live  # a run ends with the evaluation that it failed, however long that took
        self._write_later()

    def _write_later(self) -> None:
        for step, live, lines in self._later:
            self._write(step, live, lines)
        self._later.clear()

    def _write(self, step: int, live: Bool[np.ndarray, " agents"], lines: Lines) -> None:
        """Write a line of each run that was live at a step."""
        for agent, numbers in enumerate(lines):
            if numbers and live[agent]:
                line = {"step": step, **numbers}
                for folder in self._folders[agent : agent + 1]:
                    folder.log(line)
                self._watcher.logged(self._configs[agent], line)
