"""The tables of the field's benchmark."""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache

import numpy as np

from documentation.benchmark import DRAWS, Benchmark, Cell, benchmark, compared, decided
from documentation.outcomes import number
from documentation.plan import CANDIDATES, CHOSEN, DIVERGED, METHODS, SEEN, STAGES, STEPS
from documentation.results import markdown
from feasible.catalogue.registry import METHODS as KNOWN
from feasible.report.statistics import Estimate, interquartile_mean_interval

MARGIN = 0.05
"""How far behind the best, on the scale, counts as nothing."""
LEAST_SHARE = 0.0005
"""The least share that a table shows as more than 0.0%."""
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


def returns_table(found: Benchmark) -> str:
    """Rows are methods, columns tasks that have a complete cell: the mean score over seeds and its deviation."""
    rows = []
    for method in found.methods:
        cells = [found.cells[task, method] for task in found.tasks]
        rows.append([f"`{method}`", *(_score(cell) if cell.complete else cell.missing() for cell in cells)])
    rows.append(["random feasible", *(number(found.worst[task]) for task in found.tasks)])
    return markdown(["method", *(f"`{task}`" for task in found.tasks)], rows)


def infeasible_table(found: Benchmark) -> str:
    """Rows are methods, columns tasks: infeasible proposals with exploration, and without."""
    rows = []
    for method in found.methods:
        cells = [found.complete.get((task, method)) for task in found.tasks]
        words = ["" if cell is None else " / ".join(f"{share:.1%}" for share in cell.shares) for cell in cells]
        rows.append([f"`{method}`", *words])
    return markdown(["method", *(f"`{task}`" for task in found.tasks)], rows)


def aggregate_table(found: Benchmark) -> str:
    """Rows are methods: on the scale, over their complete tasks."""
    rows = []
    for method in found.methods:
        tasks = found.tasks_of(method)
        if not tasks:
            rows.append([f"`{method}`", "0", *[""] * 6])
            continue
        scores = [found.floored(task, method) for task in tasks]
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
    """Rows beat columns: the probability that a run of one beats a run of the other, over the tasks of both.

    A pair is resampled once: below the diagonal is the contrary of what is above it.
    """
    rows = []
    for place, first in enumerate(found.methods):
        cells = []
        for other, second in enumerate(found.methods):
            estimate = None
            if place != other and found.tasks_of(first, second):
                pair, _ = compared(found, *sorted((first, second), key=found.methods.index))
                estimate = pair if place < other else pair.contrary
            cells.append("" if estimate is None else f"{estimate.value:.2f}" + ("*" if decided(estimate) else ""))
        rows.append([f"`{first}`", *cells])
    return markdown(["", *(f"`{method}`" for method in found.methods)], rows)


def time_table(found: Benchmark) -> str:
    """Rows are methods, columns tasks: steps and minutes until the level, by the seeds that reach it."""
    rows = []
    for method in found.methods:
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

    A method is as good as the best on a task if the lower 95% end of its difference from the best of the ten methods
    is above -`MARGIN` on the scale.
    """
    rows = []
    for method in found.methods:
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


def candidates_table(
    stages: Sequence[Benchmark], best_of: str, candidates: Collection[str], told_by: Collection[str] = (CHOSEN,)
) -> str:
    """Rows are tasks, each at the last of the numbers of steps at which most candidates of `told_by` are complete.

    Columns: the best of the stage's methods, and of each candidate its score, its place on the scale with the lower 95%
    end of its difference from the best, and, where they are 0.1% or more, its infeasible proposals with and without
    exploration.
    """
    rows = []
    for task in stages[0].stage.tasks:
        done = [found for found in stages if any(task in found.tasks_of(method) for method in candidates)]
        if not done:
            rows.append([f"`{task}`", *["missing"] * (2 + len(candidates))])
            continue
        complete = {found: sum(task in found.tasks_of(method) for method in told_by) for found in done}
        found = max(done, key=lambda found: (complete[found], found.stage.steps[task]))
        leader = found.leaders[task]
        best = f"{_score(found.complete[task, leader])}, `{leader}`"
        own = [_candidate(found, found.cells[task, method]) for method in candidates]
        rows.append([f"`{task}`", f"{found.stage.steps[task]:,}", best, *own])
    return markdown(["task", "steps", best_of, *(f"`{method}`" for method in candidates)], rows)


def _candidate(found: Benchmark, cell: Cell) -> str:
    if not cell.complete:
        return cell.missing()
    place, end = found.normalised(cell.task, cell.method).mean(), _lower_end(found, cell.task, cell.method)
    words = f"{_score(cell)}; {place:.2f} ({end:+.2f})"
    return f"{words}; {cell.shares[0]:.1%} / {cell.shares[1]:.1%}" if max(cell.shares) >= LEAST_SHARE else words


def _lower_end(found: Benchmark, task: str, method: str) -> float:
    """The lower 95% end of the difference from the best of the ten methods, by a bootstrap over the seeds of both."""
    own, leader = found.normalised(task, method), found.leaders[task]
    if leader == method:
        return 0.0
    draws = np.random.default_rng(0).integers(len(own), size=(2, DRAWS, len(own)))
    differences = own[draws[0]].mean(axis=1) - found.normalised(task, leader)[draws[1]].mean(axis=1)
    return float(np.quantile(differences, 0.025))


def missing_table(found: Benchmark) -> str:
    """How many of the cells are complete, by task, and which are not."""
    rows, counts = [], np.zeros(2, int)
    for task in found.stage.tasks:
        possible = [method for method in found.methods if not found.cells[task, method].refused]
        others = [method for method in possible if (task, method) not in found.complete]
        counts += len(possible) - len(others), len(possible)
        words = [f"`{method}`" + (" diverges" if (task, method) in DIVERGED else "") for method in others]
        rows.append([f"`{task}`", f"{len(possible) - len(others)} of {len(possible)}", ", ".join(words)])
    return markdown(["task", "complete", "others"], [*rows, ["all", "{} of {}".format(*counts), ""]])


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
    """The table that the page asks for, of the published results.

    `missing`, `candidates`, `seen STEPS ...`, `confirmed`, the name of a stage for its returns, `NAME STAGE`, or `NAME
    STEPS` of stage 1, with the candidates if the name is `choice`.
    """
    match subject.split():
        case ["missing"]:
            return missing_table(benchmark())
        case [stage] if stage in STAGES:
            return returns_table(benchmark(stage))
        case ["candidates"]:
            stages = [benchmark("choice", steps) for steps in (STEPS, 250_000, 200_000)]
            return candidates_table(stages, "best of the ten", CANDIDATES)
        case ["seen", *steps]:
            stages = [benchmark("choice", int(most)) for most in steps]
            return candidates_table(stages, "best of the ten", SEEN, told_by=SEEN)
        case ["confirmed"]:
            return candidates_table([benchmark("final")], "best of the six", [CHOSEN])
        case [name, stage] if stage in STAGES:
            return _TABLES[name](benchmark(stage))
        case ["choice", steps]:
            return choice_table(benchmark("choice", int(steps)))
        case [name, steps]:
            return _TABLES[name](benchmark("selection", int(steps)))
        case _:
            raise ValueError(f"{subject!r} names no table of the benchmark.")


def title(method: str) -> str:
    return KNOWN[method].title


def _score(cell: Cell) -> str:
    spread = f" ± {number(cell.scores.std())}" if len(cell.scores) > 1 else ""
    return f"{number(cell.scores.mean())}{spread}"


def _interval(estimate: Estimate) -> str:
    if estimate.low is None or estimate.high is None:
        return f"{estimate.value:.2f}"
    return f"{estimate.value:.2f} ({estimate.low:.2f} to {estimate.high:.2f})"


def _time(cell: Cell, level: float) -> str:
    found = [one for one in cell.seconds_to(level) if one is not None]
    if not found:
        return "never"
    step, seconds = np.mean(found, axis=0)
    few = "" if len(found) == len(cell.seeds) else f" ({len(found)} of {len(cell.seeds)})"
    return f"{step / 1_000:.0f}k, {seconds / 60:.1f} {cell.device}{few}"
