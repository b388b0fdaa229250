"""Runs that differ only in their seed, and what is uneven between them.

A group's curve is over the steps that all its seeds have reached; each seed has its own to its end.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int

from feasible.catalogue.registry import METHODS
from feasible.report.runs import SCORED, Note, Run, Runs


@dataclass(frozen=True)
class Band:
    """Mean and standard deviation over seeds."""

    steps: Int[np.ndarray, " k"]
    mean: Float[np.ndarray, " k"]
    std: Float[np.ndarray, " k"]


@dataclass(frozen=True)
class Group:
    """The runs of one method on one task. `method` tells methods apart, `title` is how people call it."""

    task: str
    algo: str
    method: str
    title: str
    runs: tuple[Run, ...]

    @cached_property
    def scores(self) -> Float[np.ndarray, " n"]:
        """Of the runs that have ended."""
        return np.array([run.score for run in self.runs if run.score is not None])

    @property
    def mean(self) -> float | None:
        """Of the scores, if there are some."""
        return float(self.scores.mean()) if len(self.scores) else None

    @property
    def std(self) -> float | None:
        """Of the scores over seeds; one seed has none."""
        return float(self.scores.std()) if len(self.scores) > 1 else None

    def band(self, metric: str) -> Band | None:
        """The mean curve of a metric; runs that were looked at at other steps are interpolated."""
        series = [run.series[metric] for run in self.runs if metric in run.series]
        if not series:
            return None
        end = min(one.steps[-1] for one in series)
        fewest = min(series, key=lambda one: int((one.steps <= end).sum()))
        start = max(one.steps[0] for one in series)
        steps = fewest.steps[(fewest.steps <= end) & (fewest.steps >= start)]
        values = np.stack([np.interp(steps, one.steps, one.values) for one in series])
        return Band(steps, values.mean(0), values.std(0)) if len(steps) else None


def group_runs(runs: Runs) -> list[Group]:
    """Groups in the order of the runs. Variants are named only where they tell something apart."""
    kinds = {(run.task, run.algo, run.variant) for run in runs.all}
    alone = len({(task, algo) for task, algo, _ in kinds}) == len(kinds) and len({run.preset for run in runs.all}) == 1
    groups: dict[tuple[str, str], list[Run]] = {}
    for run in runs.all:
        method = run.algo if alone or not run.variant else f"{run.algo}+{run.variant}"
        groups.setdefault((run.task, method), []).append(run)
    return [
        Group(task, members[0].algo, method, _title(members[0], method), tuple(members))
        for (task, method), members in groups.items()
    ]


def unevenness(groups: Sequence[Group]) -> list[Note]:
    """What a reader must know before comparing: runs that have not ended, other lengths, seeds, settings, versions."""
    notes: list[Note] = []
    for task, members in by_task(groups).items():
        notes += _unended(members)
        lengths = {run.steps for group in members for run in group.runs}
        if len(lengths) > 1:
            notes.append(
                Note(
                    task,
                    f"has runs of unequal length, {min(lengths):,} to {max(lengths):,} steps: scores are of each end",
                )
            )
        single = [group.title for group in members if len(group.scores) == 1]
        if single:
            notes.append(
                Note(
                    task,
                    f"has one finished seed of {', '.join(single)}: a single seed has no standard deviation, no "
                    "interval and no probability of improvement",
                )
            )
        seeds = sorted({run.seed for group in members for run in group.runs})
        for group in members:
            missing = sorted(set(seeds) - {run.seed for run in group.runs})
            if missing:
                notes.append(Note(f"{task}, {group.title}", f"lacks {_seeds(missing)}, which other methods have"))
            if len({repr(_settings(run)) for run in group.runs}) > 1:
                notes.append(Note(f"{task}, {group.title}", "has seeds that were trained with different settings"))
            few = [run.seed for run in group.runs if run.finished and len(run.series["eval/return"].steps) < SCORED]
            if few:
                notes.append(
                    Note(
                        f"{task}, {group.title}",
                        f"{_seeds(few)}: fewer than {SCORED} evaluations, the score is their mean",
                    )
                )
    return notes + _versions([run for group in groups for run in group.runs])


def by_task(groups: Iterable[Group]) -> dict[str, list[Group]]:
    tasks: dict[str, list[Group]] = {}
    for group in groups:
        tasks.setdefault(group.task, []).append(group)
    return tasks


def _unended(groups: Iterable[Group]) -> list[Note]:
    return [
        Note(
            run.path, f"has not ended (step {run.reached:,} of {run.steps:,}): drawn, but left out of the scores", True
        )
        for group in groups
        for run in group.runs
        if not run.finished
    ]


def _versions(runs: Sequence[Run]) -> list[Note]:
    notes = []
    for package in sorted({package for run in runs for package in run.versions()}):
        counts = Counter(run.versions().get(package, "unknown") for run in runs)
        if len(counts) > 1:
            said = ", ".join(f"{version} ({count} runs)" for version, count in sorted(counts.items()))
            notes.append(Note(package, f"has different versions: {said}"))
    return notes


def _settings(run: Run) -> Mapping[str, object]:
    apart = ("seed", "versions", "machine", "command", "steps")
    return {name: value for name, value in run.described.items() if name not in apart}


def _seeds(seeds: Sequence[int]) -> str:
    return f"seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}"


def _title(run: Run, method: str) -> str:
    title = METHODS[run.algo].title if run.algo in METHODS else run.algo
    return title if method == run.algo else f"{title} ({run.variant})"
