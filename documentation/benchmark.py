"""The field's benchmark: the cells of a stage and their scale; all follows from `results/` alone.

A cell is one method on one task. At a number of steps it counts once all of its seeds have made so many; until then it
is missing. Scores are put on one scale per task: 0 is what random feasible actions come to, 1 the best method's mean.
Where the best is little better than random actions, failing costs many times the scale: means over tasks are of scores
no lower than -1, as if none were further below random actions than the best is above them.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise

import numpy as np
from jaxtyping import Float64

from documentation.field_tasks import SCORES
from documentation.outcomes import outcome
from documentation.plan import DIVERGED, METHODS, PRESET, SELECTION, STAGES, TASKS, Stage
from documentation.results import published
from feasible.report.runs import Run
from feasible.report.statistics import Estimate, probability_of_improvement

LEVEL = 0.5
"""Where on the scale the time to a return is taken."""
LEAST = 5
"""Methods without which a task has no scale: the best of few says little."""
DRAWS = 2_000
FLOOR = -1.0
"""Of scores on the scale, where they are averaged over tasks."""


@dataclass(frozen=True)
class Cell:
    """All seeds of one method on one task."""

    task: str
    method: str
    steps: int
    seeds: Sequence[int]
    runs: tuple[Run, ...]
    refused: bool = False
    """Whether the method does not take the task's set."""

    @property
    def complete(self) -> bool:
        return sorted(run.seed for run in self.runs if run.reached >= self.steps) == list(self.seeds)

    @cached_property
    def scores(self) -> Float64[np.ndarray, " n"]:
        return outcome(self.runs, self.steps).scores

    @property
    def shares(self) -> tuple[float, float]:
        """Infeasible proposals with and without exploration."""
        found = outcome(self.runs, self.steps)
        return found.infeasible, found.intended

    def missing(self) -> str:
        """Why it does not count."""
        if self.refused:
            return "refused"
        why = "diverged" if (self.task, self.method) in DIVERGED else "missing"
        if not self.runs:
            return why
        done = [run for run in self.runs if run.reached >= self.steps]
        if done:
            return f"{why} ({len(done)} of {len(self.seeds)} seeds)"
        return f"{why} ({min(run.reached for run in self.runs):,} steps)"

    def seconds_to(self, level: float) -> list[tuple[int, float] | None]:
        """By seed: steps and seconds of training until an evaluation first reaches the level; None where none does."""
        return [_first(run, level, self.steps) for run in self.runs]

    @property
    def device(self) -> str:
        """What the runs were trained on."""
        machines = {run.machine().get("device", "").split(" ")[0] for run in self.runs}
        return "/".join(sorted(machines))


class Benchmark:
    """The cells of a stage, and the scale of each task. Of equal seeds the longest run counts."""

    def __init__(
        self, runs: Sequence[Run], worst: Mapping[str, float], stage: Stage = SELECTION, least: int = LEAST
    ) -> None:
        self.worst, self.stage, self.methods = worst, stage, tuple(stage.entries)
        longest: dict[tuple[str, str, str, int], Run] = {}
        for run in sorted(runs, key=lambda run: run.reached):
            if run.preset == PRESET and run.seed in stage.seeds:
                longest[run.task, run.algo, run.variant, run.seed] = run
        self.cells = {
            (task, method): self._cell(task, method, longest) for task in stage.tasks for method in self.methods
        }
        self.complete = {key: cell for key, cell in self.cells.items() if cell.complete}
        done = {task: [cell for (own, _), cell in self.complete.items() if own == task] for task in stage.tasks}
        self.tasks = [task for task in stage.tasks if done[task]]
        """Those that have a complete cell."""
        planned = {task: [cell for cell in cells if cell.method in METHODS] for task, cells in done.items()}
        leaders = [max(cells, key=lambda cell: cell.scores.mean()) for cells in planned.values() if len(cells) >= least]
        self.leaders = {cell.task: cell.method for cell in leaders}
        """The best of the benchmark's methods, on tasks that have a scale."""
        self.best = {cell.task: float(cell.scores.mean()) for cell in leaders}
        """Its mean."""

    def _cell(self, task: str, method: str, longest: Mapping[tuple[str, str, str, int], Run]) -> Cell:
        entry, runs = self.stage.entries[method], []
        for seed in self.stage.seeds:
            own = [longest[key] for name in entry.variants if (key := (task, entry.algo, name, seed)) in longest]
            runs += [max(own, key=lambda run: run.reached)] if own else []
        return Cell(
            task, method, self.stage.steps[task], self.stage.seeds, tuple(runs), self.stage.refused(task, method)
        )

    def normalised(self, task: str, method: str) -> Float64[np.ndarray, " n"]:
        worst = self.worst[task]
        return (self.complete[task, method].scores - worst) / (self.best[task] - worst)

    def floored(self, task: str, method: str) -> Float64[np.ndarray, " n"]:
        return np.maximum(self.normalised(task, method), FLOOR)

    def tasks_of(self, *methods: str) -> list[str]:
        """The tasks with a scale on which all of the methods have a complete cell."""
        return [task for task in self.best if all((task, method) in self.complete for method in methods)]

    def level(self, task: str) -> float:
        return self.worst[task] + LEVEL * (self.best[task] - self.worst[task])


@cache
def benchmark(stage: str = "selection", steps: int | None = None) -> Benchmark:
    """A stage of the published results, or what its first steps have come to."""
    found = STAGES[stage]
    return Benchmark(published().all, worst_scores(), found if steps is None else found.cut(steps))


def worst_scores() -> Mapping[str, float]:
    """What random feasible actions come to on each task, as `python -m benchmarks.tasks` measured it."""
    measured = json.loads(SCORES.read_text())
    known = {task: row["random"][0] for task, row in measured["tasks"].items()}
    known |= {task: row[0] for task, row in measured["random"].items()}
    return {task: known[task] for task in TASKS}


@cache
def compared(found: Benchmark, first: str, second: str) -> tuple[Estimate, float]:
    """Over the tasks of both: how probably the first beats the second, and by how much on the scale."""
    tasks = found.tasks_of(first, second)
    one, other = ([found.normalised(task, method) for task in tasks] for method in (first, second))
    gain = float(np.mean([found.floored(task, first).mean() - found.floored(task, second).mean() for task in tasks]))
    estimate = probability_of_improvement(one, other, DRAWS)
    # Of three runs against three, resampling makes an interval without width where none of the one overlaps the other.
    return (estimate if len(tasks) > 1 else Estimate(estimate.value, None, None)), gain


def decided(estimate: Estimate) -> bool:
    """Whether its interval leaves out one half."""
    low, high = estimate.low, estimate.high
    return low is not None and high is not None and not low <= 0.5 <= high


def _first(run: Run, level: float, until: int) -> tuple[int, float] | None:
    returns, rates = run.series["eval/return"], run.series["time/steps_per_second"]
    reached = np.flatnonzero((returns.values >= level) & (returns.steps <= until))
    if not len(reached):
        return None
    step = int(returns.steps[reached[0]])
    known = dict(zip(rates.steps.tolist(), rates.values.tolist(), strict=True))
    steps = [0, *(at for at in known if at <= step)]
    return step, sum((after - before) / known[after] for before, after in pairwise(steps))
