"""Timing of several solvers on the same points, in turns, so that a busy machine slows all of them alike."""

import statistics
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from benchmarks.peers import Rows, Run, Solver
from benchmarks.problems import Floats, Points, Problem

# Points of the first try of every solver, and the fewest it is ever timed on.
TRIAL = 16
# Seconds of a round in which a fast solver repeats its call.
SLICE = 2e-3


@runtime_checkable
class OnDevice(Protocol):
    """A tensor of PyTorch, which NumPy reads only from the host's memory."""

    def cpu(self) -> Rows: ...


Prepare = Callable[[Problem, Points], Run | None]
# Points and seconds of the largest call so far, by problem, solver and pass: what a larger call can be judged by.
Trials = dict[tuple[str, str, bool], tuple[int, float]]


@dataclass(frozen=True)
class Timing:
    """Median seconds per point over all calls; `points` is how many one call had, `batch` how many were asked for."""

    seconds: float
    points: int
    batch: int

    @property
    def extrapolated(self) -> bool:
        return self.points < self.batch


@dataclass(frozen=True)
class Result:
    """What one solver did on one problem and batch; None where it has no such set, or no derivative."""

    title: str
    forward: Timing | None
    backward: Timing | None
    error: float | None
    failure: str | None = None


@dataclass(frozen=True)
class Prepared:
    run: Run
    points: int
    calls: int


def compare(
    solvers: Sequence[Solver],
    problem: Problem,
    points: Points,
    reference: Floats | None,
    *,
    rounds: int,
    patience: Sequence[float],
    trials: Trials,
) -> list[Result]:
    """Both passes of every solver. A call longer than its solver's patience (seconds) is made on fewer points.

    `trials` goes from batch to batch, smallest first, so that no solver is prepared for one more call than it needs.

    The error is the largest over the first points, those of the reference, as a share of the set's scale; there is none
    without a reference.
    """
    failures: dict[str, str] = {}
    errors: dict[str, float] = {}
    timings: list[dict[str, Timing]] = []
    for is_forward in (True, False):
        prepared: dict[str, Prepared] = {}
        for solver, seconds in zip(solvers, patience, strict=True):
            prepare = solver.forward if is_forward else solver.backward
            try:
                fitted = _fit(prepare, problem, points, seconds, trials, (problem.name, solver.title, is_forward))
            except Exception as cause:  # a peer may fail in its own way: the table goes on and says so
                last = traceback.extract_tb(cause.__traceback__)[-1]
                failures[solver.title] = f"{type(cause).__name__} in {last.name}: {cause}"[:200]
                continue
            if fitted is None:
                continue
            prepared[solver.title] = fitted
            if is_forward and reference is not None:
                errors[solver.title] = _error(fitted.run(), reference, problem.scale)
        medians = in_turns(prepared, rounds)
        timings.append(
            {title: Timing(medians[title] / one.points, one.points, len(points)) for title, one in prepared.items()}
        )
    forward, backward = timings
    titles = [solver.title for solver in solvers]
    return [
        Result(title, forward.get(title), backward.get(title), errors.get(title), failures.get(title))
        for title in titles
    ]


def _fit(
    prepare: Prepare,
    problem: Problem,
    points: Points,
    patience: float,
    trials: Trials,
    key: tuple[str, str, bool],
) -> Prepared | None:
    """The solver ready to run on as many of the points as it can do within its patience, warmed up."""
    count, run = min(TRIAL, len(points)), None
    if key in trials:
        count = _affordable(*trials[key], patience, len(points))
    while True:
        run = prepare(problem, points.first(count))
        if run is None:
            return None
        run()
        seconds = min(_seconds(run) for _ in range(3)) if count <= TRIAL else _seconds(run)
        trials[key] = count, seconds
        if (larger := _affordable(count, seconds, patience, len(points))) < 2 * count:
            return Prepared(run, count, calls=max(1, min(200, int(SLICE / seconds))))
        count = larger


def _affordable(count: int, seconds: float, patience: float, most: int) -> int:
    """How many points the solver should be able to do within its patience, after `count` in so many seconds."""
    limit = min(int(patience / seconds * count), most)
    if limit == most:
        return most
    while count * 2 <= limit:
        count *= 2
    return count


def in_turns(prepared: dict[str, Prepared], rounds: int) -> dict[str, float]:
    """Median seconds a call of each, taken in rounds: every solver has its turn in every round."""
    samples: dict[str, list[float]] = {title: [] for title in prepared}
    for _ in range(rounds):
        for title, one in prepared.items():
            if one.calls > 1:
                one.run()  # brings its code and data back into the caches
            samples[title] += [_seconds(one.run) for _ in range(one.calls)]
    return {title: statistics.median(values) for title, values in samples.items()}


def _seconds(run: Run) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def _error(answers: Rows, reference: Floats, scale: float) -> float:
    found = np.asarray(answers.cpu() if isinstance(answers, OnDevice) else answers, dtype=np.float64)
    count = min(len(found), len(reference))
    return float(np.max(np.abs(found[:count] - reference[:count]))) / scale
