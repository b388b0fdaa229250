"""Lanes: a population in shares that advance side by side, each with its own copies, threads and program.

A step of a population waits most of the time: for a launch, for a copy from the device, for threads to wake. While one
lane waits another goes on. Agents know nothing of each other, so nothing of any update changes with the lanes; they
meet where something is reported, evaluated or saved. Each lane has a thread of Python, the first the caller's own.
"""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate
from typing import TypeVar

import jax
import numpy as np
from jaxtyping import Bool

from feasible.algorithms.base import Algorithm
from feasible.run.population.driver import Population
from feasible.run.population.groups import grouped
from feasible.run.population.programs import PopulationPrograms
from feasible.run.vector_plant import VectorPlant

Answer = TypeVar("Answer")
WORTH_A_LANE = 8
"""Agents. A lane of fewer takes the device nearly as long as one of so many."""


def default_lanes(agents: int) -> int:
    """Two where a device works beside the host, so that each has something to do while the other waits."""
    return 1 if jax.default_backend() == "cpu" else max(1, min(2, agents // WORTH_A_LANE))


def lane_threads(copies: int, threads: int) -> int:
    """The fewest threads with which copies step as soon as with all: waking one costs more than it saves otherwise.

    Lanes share the cores without dividing them: their environments seldom step at the same time.
    """
    rounds = -(-copies // threads)
    return -(-copies // rounds)


class Lanes:
    """Populations of which each is a share of the agents. `start` or restore each, then `advance`; agents are numbered
    through, lane by lane."""

    def __init__(
        self,
        algorithms: Sequence[Sequence[Algorithm]],
        plants: Sequence[VectorPlant],
        seeds: Sequence[Sequence[int]],
    ):
        spec, compiled = plants[0].spec, {}
        programs = [PopulationPrograms(groups, spec, compiled) for groups in grouped(algorithms, spec)]
        self.lanes = tuple(map(Population, programs, plants, seeds))
        bounds = [0, *accumulate(len(own) for own in seeds)]
        self.rows = tuple(map(slice, bounds, bounds[1:]))
        """By lane: its agents among all."""
        self.halted = False
        """Set (by a signal, say) to end `advance` after the running step, which is the same one in all lanes."""
        self._pool = ThreadPoolExecutor(len(self.lanes) - 1) if len(self.lanes) > 1 else None

    @property
    def step(self) -> int:
        """Steps made; a lane without an agent that lives has stopped before."""
        return max(lane.step for lane in self.lanes)

    @property
    def live(self) -> Bool[np.ndarray, " agents"]:
        """Which agents have not failed (a copy)."""
        return np.concatenate([lane.live for lane in self.lanes])

    @property
    def failures(self) -> dict[int, str]:
        """By agent: why it was left out."""
        parts = zip(self.rows, self.lanes, strict=True)
        return {rows.start + agent: reason for rows, lane in parts for agent, reason in lane.failures.items()}

    def start(self) -> None:
        """Begin all runs."""
        for lane in self.lanes:
            lane.start()

    def advance(self, until: int, made: Callable[[int], None] = lambda step: None) -> None:
        """Make steps until `until` have been made in all; `made` hears of those of the first lane with a living agent.

        What one lane raises ends the others too. Ends early when no agent is left, or when halted.
        """
        self._advance(until, made, lambda: self.halted)
        if self.halted:
            # The lanes ended where each of them was: those behind go on to the furthest.
            self._advance(self.step, made, lambda: False)

    def each(self, work: Callable[[int, Population], Answer]) -> list[Answer]:
        """`work(lane, population)` of all lanes, side by side; what one raises is raised when all have ended."""
        if self._pool is None:
            return [work(0, self.lanes[0])]
        first, *others = range(len(self.lanes))
        begun = [self._pool.submit(work, lane, self.lanes[lane]) for lane in others]
        try:
            answers = [work(first, self.lanes[first])]
        finally:
            for other in begun:
                other.exception()
        return answers + [other.result() for other in begun]

    def close(self) -> None:
        """Let the threads go."""
        for lane in self.lanes:
            lane.plant.close()
        if self._pool is not None:
            self._pool.shutdown()

    def _advance(self, until: int, made: Callable[[int], None], ends: Callable[[], bool]) -> None:
        speaker = next((lane for lane in self.lanes if lane.live.any()), None)
        broken = threading.Event()

        def advance(_: int, lane: Population) -> None:
            def heard(step: int) -> None:
                if lane is speaker:
                    made(step)
                lane.halted = ends() or broken.is_set()

            lane.halted = ends()
            try:
                lane.advance(until, heard)
            except BaseException:
                broken.set()
                raise

        self.each(advance)
