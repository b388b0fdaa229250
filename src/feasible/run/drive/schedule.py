"""Which parts of an update follow a round of steps, and which program that takes.

A round is one step of every copy, so n copies make n step numbers at once. After it each part of the update runs as
often as its interval has multiples among these numbers, in the order in which single steps would run them.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from feasible.algorithms.base import Algorithm

Made = TypeVar("Made")
Due = tuple[frozenset[str], ...]
"""One set of parts for each update of a round, in order."""


def due_after(algorithm: Algorithm, step: int) -> Due:
    """The updates that follow the round that ends with environment step `step` (counted from 1).

    Step numbers up to `updates_after` have none, also where the round goes on beyond them.
    """
    numbers = range(max(step - algorithm.environments, algorithm.updates_after) + 1, step + 1)
    intervals = algorithm.intervals.items()
    sets = (frozenset(part for part, every in intervals if number % every == 0) for number in numbers)
    return tuple(parts for parts in sets if parts)


@dataclass(frozen=True)
class Loop:
    """Updates that are made so many times in a row."""

    body: "tuple[frozenset[str] | Loop, ...]"
    times: int

    @property
    def updates(self) -> int:
        """How many updates it makes in all."""
        return self.times * sum(part.updates if isinstance(part, Loop) else 1 for part in self.body)


def folded(due: Due) -> tuple[frozenset[str] | Loop, ...]:
    """The same updates in the same order, with loops for what repeats: a program holds each kind about once."""
    parts: list[frozenset[str] | Loop] = []
    while due:
        found = ((length, _times(due, length)) for length in range(1, len(due) // 2 + 1))
        # What leaves the most updates out of the program; of equals the shortest.
        length, times = max(found, key=lambda loop: loop[0] * (loop[1] - 1), default=(1, 1))
        if times == 1:
            length = 1
        parts.append(due[0] if times == 1 else Loop(folded(due[:length]), times))
        due = due[length * times :]
    return tuple(parts)


def _times(due: Due, length: int) -> int:
    """How often the first `length` updates are made in a row."""
    times = 1
    while due[times * length : (times + 1) * length] == due[:length]:
        times += 1
    return times


class Schedule(Generic[Made]):
    """Which program follows a step: found anew while updates begin, then by the step's place in their period only."""

    def __init__(self, algorithms: Sequence[Algorithm], find: Callable[[int], Made]):
        self._find = find
        # A round that begins before the first update may end after it.
        self._settled = max(max(a.warmup, a.updates_after) + a.environments - 1 for a in algorithms)
        self._period = math.lcm(*(every for a in algorithms for every in a.intervals.values()))
        self._by_phase: dict[int, Made] = {}

    def known(self, step: int) -> int:
        """The step after which no program follows that has not followed before, of a run that begins after `step`."""
        return max(self._settled, step) + self._period

    def program(self, step: int) -> Made:
        """The program that follows environment step `step`."""
        if step <= self._settled:
            return self._find(step)
        phase = step % self._period
        if phase not in self._by_phase:
            self._by_phase[phase] = self._find(step)
        return self._by_phase[phase]
