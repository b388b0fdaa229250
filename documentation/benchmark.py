"""The field's benchmark: ten methods on ten tasks, fixed before the runs; its tables follow from `results/` alone.

A cell is one method on one task. At a number of steps it counts once all of its seeds have made so many; until then it
is missing. Scores are put on one scale per task: 0 is what random feasible actions come to, 1 the best method's mean.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise

import numpy as np
from jaxtyping import Float64

from documentation.field_tasks import SCORES
from documentation.outcomes import number, outcome
from documentation.results import markdown, published
from feasible.catalogue.registry import METHODS as KNOWN
from feasible.report.runs import Run
from feasible.report.statistics import Estimate, interquartile_mean_interval, probability_of_improvement

METHODS = (
    "td3-projection",
    "td3-proposed",
    "td3-optlayer",
    "td3-nfwpo",
    "td3-alpha",
    "td3-radial",
    "sac-proposed",
    "sac-truncated",
    "aram",
    "ppo-truncated",
)
TASKS = (
    "reacher",
    "halfcheetah",
    "halfcheetah-ma",
    "hopper-power",
    "hopper-os",
    "walker-power",
    "ant-ball",
    "bss-5",
    "nsfnet",
    "portfolio",
)
SEEDS = (100, 101, 102)
STEPS, COMPARED = 300_000, 250_000
"""The plan's budget, and the steps at which methods are compared: those that eight tasks have reached."""
PRESET, VARIANTS = "default", ("benchmark", "smoke")
"""The runs of the plan, and the short ones."""
REFUSED = {("bss-5", "sac-truncated"), ("bss-5", "ppo-truncated")}
"""Cells that cannot be: a restricted Gaussian has no density on integers."""
LEVEL = 0.5
"""Where on the scale the time to a return is taken."""
LEAST = 5
"""Methods without which a task has no scale: the best of few says little."""
MARGIN = 0.05
"""How far behind the best, on the scale, counts as nothing."""
DRAWS = 2_000
CLAIMS: Mapping[str, Sequence[tuple[str, str]]] = {
    "a critic of the proposals is as good as the elaborate methods": [
        ("td3-proposed", other) for other in ("td3-optlayer", "td3-nfwpo", "td3-alpha", "td3-radial")
    ]
    + [("sac-proposed", "sac-truncated"), ("sac-proposed", "aram")],
    "the untruncated density hurts": [("sac-truncated", "aram"), ("sac-truncated", "sac-proposed")],
    "maps beat projection": [("td3-alpha", "td3-projection"), ("td3-radial", "td3-projection")],
    "NFWPO leads": [("td3-nfwpo", other) for other in METHODS if other != "td3-nfwpo"],
}
"""What the field says, as pairs of methods: the first is claimed to be no worse, or better, than the second."""


@dataclass(frozen=True)
class Cell:
    """All seeds of one method on one task."""

    task: str
    method: str
    steps: int
    runs: tuple[Run, ...]

    @property
    def complete(self) -> bool:
        return sorted(run.seed for run in self.runs if run.reached >= self.steps) == list(SEEDS)

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
        if (self.task, self.method) in REFUSED:
            return "refused"
        if not self.runs:
            return "missing"
        done = [run for run in self.runs if run.reached >= self.steps]
        if done:
            return f"missing ({len(done)} of {len(SEEDS)} seeds)"
        return f"missing ({min(run.reached for run in self.runs):,} steps)"

    def seconds_to(self, level: float) -> list[tuple[int, float] | None]:
        """By seed: steps and seconds of training until an evaluation first reaches the level; None where none does."""
        return [_first(run, level, self.steps) for run in self.runs]

    @property
    def device(self) -> str:
        """What the runs were trained on."""
        machines = {run.machine().get("device", "").split(" ")[0] for run in self.runs}
        return "/".join(sorted(machines))


class Benchmark:
    """The cells at a number of steps, and the scale of each task. Of equal seeds the longest run counts."""

    def __init__(self, runs: Sequence[Run], worst: Mapping[str, float], steps: int = STEPS, least: int = LEAST):
        self.worst, self.steps = worst, steps
        longest: dict[tuple[str, str, int], Run] = {}
        for run in sorted(runs, key=lambda run: run.reached):
            if run.preset == PRESET and run.variant in VARIANTS and run.seed in SEEDS:
                longest[run.task, run.algo, run.seed] = run
        self.cells = {
            (task, method): Cell(
                task, method, steps, tuple(longest[key] for seed in SEEDS if (key := (task, method, seed)) in longest)
            )
            for task in TASKS
            for method in METHODS
        }
        self.complete = {key: cell for key, cell in self.cells.items() if cell.complete}
        done = {task: [cell for (own, _), cell in self.complete.items() if own == task] for task in TASKS}
        self.tasks = [task for task in TASKS if done[task]]
        """Those that have a complete cell."""
        self.best = {
            task: max(float(cell.scores.mean()) for cell in cells)
            for task, cells in done.items()
            if len(cells) >= least
        }
        """The mean of the best method, on tasks that have a scale."""

    def normalised(self, task: str, method: str) -> Float64[np.ndarray, " n"]:
        worst = self.worst[task]
        return (self.complete[task, method].scores - worst) / (self.best[task] - worst)

    def tasks_of(self, *methods: str) -> list[str]:
        """The tasks with a scale on which all of the methods have a complete cell."""
        return [task for task in self.best if all((task, method) in self.complete for method in methods)]

    def level(self, task: str) -> float:
        return self.worst[task] + LEVEL * (self.best[task] - self.worst[task])


@cache
def benchmark(steps: int) -> Benchmark:
    """Of the published results."""
    return Benchmark(published().all, worst_scores(), steps)


def worst_scores() -> Mapping[str, float]:
    """What random feasible actions come to on each task, as `python -m benchmarks.tasks` measured it."""
    measured = json.loads(SCORES.read_text())
    known = {task: row["random"][0] for task, row in measured["tasks"].items()}
    known |= {task: row[0] for task, row in measured["random"].items()}
    return {task: known[task] for task in TASKS}


def returns_table(found: Benchmark) -> str:
    """Rows are methods, columns tasks that have a complete cell: the mean score over seeds and its deviation."""
    rows = []
    for method in METHODS:
        cells = [found.cells[task, method] for task in found.tasks]
        rows.append([f"`{method}`", *(_score(cell) if cell.complete else cell.missing() for cell in cells)])
    rows.append(["random feasible", *(number(found.worst[task]) for task in found.tasks)])
    return markdown(["method", *(f"`{task}`" for task in found.tasks)], rows)


def infeasible_table(found: Benchmark) -> str:
    """Rows are methods, columns tasks: infeasible proposals with exploration, and without."""
    rows = []
    for method in METHODS:
        cells = [found.complete.get((task, method)) for task in found.tasks]
        words = ["" if cell is None else " / ".join(f"{share:.1%}" for share in cell.shares) for cell in cells]
        rows.append([f"`{method}`", *words])
    return markdown(["method", *(f"`{task}`" for task in found.tasks)], rows)


def aggregate_table(found: Benchmark) -> str:
    """Rows are methods: on the scale, over their complete tasks."""
    rows = []
    for method in METHODS:
        tasks = found.tasks_of(method)
        if not tasks:
            rows.append([f"`{method}`", "0", *[""] * 6])
            continue
        scores = [found.normalised(task, method) for task in tasks]
        middle = interquartile_mean_interval(scores, DRAWS)
        shares = np.mean([found.complete[task, method].shares for task in tasks], axis=0)
        behind = min(tasks, key=lambda task: found.normalised(task, method).mean())
        furthest = f"{found.normalised(behind, method).mean() - 1:+.2f} (`{behind}`)"
        mean = np.mean([one.mean() for one in scores])
        executed = max(run.executed_violation or 0.0 for task in tasks for run in found.complete[task, method].runs)
        words = [f"{mean:.2f}", _interval(middle), f"{shares[0]:.1%}", f"{shares[1]:.1%}", f"{executed:.0e}", furthest]
        rows.append([f"`{method}`", str(len(tasks)), *words])
    shown = ["infeasible", "without exploration", "largest executed violation", "furthest behind"]
    return markdown(["method", "tasks", "mean", "inter-quartile mean", *shown], rows)


def improvement_table(found: Benchmark) -> str:
    """Rows beat columns: the probability that a run of one beats a run of the other, over the tasks of both."""
    rows = []
    for first in METHODS:
        cells = []
        for second in METHODS:
            tasks = found.tasks_of(first, second) if first != second else []
            estimate = compared(found, first, second)[0] if tasks else None
            cells.append("" if estimate is None else f"{estimate.value:.2f}" + ("*" if decided(estimate) else ""))
        rows.append([f"`{first}`", *cells])
    return markdown(["", *(f"`{method}`" for method in METHODS)], rows)


def time_table(found: Benchmark) -> str:
    """Rows are methods, columns tasks: steps and minutes until the level, by the seeds that reach it."""
    rows = []
    for method in METHODS:
        cells = []
        for task in found.best:
            cell = found.complete.get((task, method))
            cells.append("" if cell is None else _time(cell, found.level(task)))
        rows.append([f"`{method}`", *cells])
    levels = [number(found.level(task)) for task in found.best]
    return markdown(["method", *(f"`{task}`" for task in found.best)], [*rows, ["level", *levels]])


def claims_table(found: Benchmark) -> str:
    """Rows are pairs of a claim: probability of improvement, difference on the scale, and from how many tasks."""
    rows = []
    for claim, pairs in CLAIMS.items():
        for place, (first, second) in enumerate(pairs):
            words = ["" if place else claim, f"`{first}` over `{second}`"]
            tasks = found.tasks_of(first, second)
            if not tasks:
                rows.append([*words, "0", "", ""])
                continue
            estimate, gain = compared(found, first, second)
            rows.append([*words, str(len(tasks)), _interval(estimate), f"{gain:+.2f}"])
    return markdown(["claim", "pair", "tasks", "probability of improvement", "mean difference"], rows)


def choice_table(found: Benchmark) -> str:
    """Rows are methods: on how many tasks none is better, and where it is furthest behind, by the ends of intervals.

    A method is as good as the best on a task if the lower 95% end of its difference from the best method is above
    -`MARGIN` on the scale.
    """
    rows = []
    for method in METHODS:
        tasks = found.tasks_of(method)
        if not tasks:
            rows.append([f"`{method}`", "0", *[""] * 4])
            continue
        ends = {task: _lower_end(found, task, method) for task in tasks}
        worst = min(ends, key=lambda task: ends[task])
        shares = np.max([found.complete[task, method].shares for task in tasks], axis=0)
        good = sum(end > -MARGIN for end in ends.values())
        rows.append(
            [f"`{method}`", str(len(tasks)), str(good), f"{ends[worst]:+.2f} (`{worst}`)"]
            + [f"{share:.1%}" for share in shares]
        )
    shown = ["as good as the best", "lowest end", "most infeasible", "without exploration"]
    return markdown(["method", "tasks", *shown], rows)


def _lower_end(found: Benchmark, task: str, method: str) -> float:
    """The lower 95% end of the difference from the best method's mean, by a bootstrap over the seeds of both."""
    own = found.normalised(task, method)
    leader = max((m for m in METHODS if (task, m) in found.complete), key=lambda m: found.normalised(task, m).mean())
    if leader == method:
        return 0.0
    draws = np.random.default_rng(0).integers(len(SEEDS), size=(2, DRAWS, len(SEEDS)))
    differences = own[draws[0]].mean(axis=1) - found.normalised(task, leader)[draws[1]].mean(axis=1)
    return float(np.quantile(differences, 0.025))


def missing_table(long: Benchmark, short: Benchmark) -> str:
    """How many of the cells there are at either number of steps, by task."""
    possible = {task: [m for m in METHODS if (task, m) not in REFUSED] for task in TASKS}
    rows, counts = [], np.zeros(2, int)
    for task in TASKS:
        done = [[m for m in possible[task] if (task, m) in found.complete] for found in (long, short)]
        missing = [f"`{method}`" for method in possible[task] if method not in done[1]]
        words = "all" if len(missing) == len(possible[task]) else ", ".join(missing)
        rows.append([f"`{task}`", *(f"{len(own)} of {len(possible[task])}" for own in done), words])
        counts += [len(own) for own in done]
    every = sum(len(own) for own in possible.values())
    columns = ["task", *(f"complete at {found.steps:,}" for found in (long, short)), f"missing at {short.steps:,}"]
    return markdown(columns, [*rows, ["all", *(f"{count} of {every}" for count in counts), ""]])


@cache
def compared(found: Benchmark, first: str, second: str) -> tuple[Estimate, float]:
    """Over the tasks of both: how probably the first beats the second, and by how much on the scale."""
    tasks = found.tasks_of(first, second)
    one, other = ([found.normalised(task, method) for task in tasks] for method in (first, second))
    gain = float(np.mean([x.mean() - y.mean() for x, y in zip(one, other, strict=True)]))
    estimate = probability_of_improvement(one, other, DRAWS)
    # Of three runs against three, resampling makes an interval without width where none of the one overlaps the other.
    return (estimate if len(tasks) > 1 else Estimate(estimate.value, None, None)), gain


def decided(estimate: Estimate) -> bool:
    """Whether its interval leaves out one half."""
    low, high = estimate.low, estimate.high
    return low is not None and high is not None and not low <= 0.5 <= high


_TABLES: Mapping[str, Callable[[Benchmark], str]] = {
    "returns": returns_table,
    "infeasible": infeasible_table,
    "aggregate": aggregate_table,
    "improvement": improvement_table,
    "time": time_table,
    "claims": claims_table,
    "choice": choice_table,
}


@cache
def table(subject: str) -> str:
    """The table that the page asks for, of the published results: `missing`, or NAME and the number of steps."""
    if subject == "missing":
        return missing_table(benchmark(STEPS), benchmark(COMPARED))
    name, steps = subject.split()
    return _TABLES[name](benchmark(int(steps)))


def title(method: str) -> str:
    return KNOWN[method].title


def _score(cell: Cell) -> str:
    return f"{number(cell.scores.mean())} ± {number(cell.scores.std())}"


def _interval(estimate: Estimate) -> str:
    if estimate.low is None or estimate.high is None:
        return f"{estimate.value:.2f}"
    return f"{estimate.value:.2f} ({estimate.low:.2f} to {estimate.high:.2f})"


def _first(run: Run, level: float, until: int) -> tuple[int, float] | None:
    returns, rates = run.series["eval/return"], run.series["time/steps_per_second"]
    reached = np.flatnonzero((returns.values >= level) & (returns.steps <= until))
    if not len(reached):
        return None
    step = int(returns.steps[reached[0]])
    known = dict(zip(rates.steps.tolist(), rates.values.tolist(), strict=True))
    steps = [0, *(at for at in known if at <= step)]
    return step, sum((after - before) / known[after] for before, after in pairwise(steps))


def _time(cell: Cell, level: float) -> str:
    found = [one for one in cell.seconds_to(level) if one is not None]
    if not found:
        return "never"
    step, seconds = np.mean(found, axis=0)
    few = "" if len(found) == len(SEEDS) else f" ({len(found)} of {len(SEEDS)})"
    return f"{step / 1_000:.0f}k, {seconds / 60:.1f} {cell.device}{few}"
