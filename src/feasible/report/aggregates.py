"""What is said of methods over several tasks at once, on the paper's scale (`feasible.paper.printed.normalised`)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from jaxtyping import Float

from feasible.paper.printed import normalised
from feasible.report.groups import Group, by_task
from feasible.report.statistics import (
    Estimate,
    Profile,
    Scores,
    interquartile_mean_interval,
    performance_profile,
    probability_of_improvement,
    repeated,
)

THRESHOLDS = 81


@dataclass(frozen=True)
class Comparison:
    """Methods that all have scores on all of the tasks: of one task in returns, of several on the paper's scale."""

    tasks: tuple[str, ...]
    methods: tuple[str, ...]
    interquartile_means: Mapping[str, Estimate]
    improvements: Mapping[tuple[str, str], Estimate]
    """By (first, second): how probably a run of the first beats one of the second; only where scores are `repeated`."""
    profiles: Mapping[str, Profile]

    @property
    def name(self) -> str:
        return "+".join(self.tasks)


def comparisons(groups: Sequence[Group]) -> list[Comparison]:
    """One for each task, and one for each set of several tasks that is all that some method has scores of."""
    scored = [group for group in groups if len(group.scores)]
    found = [_compare((task,), {g.method: [g.scores] for g in members}) for task, members in by_task(scored).items()]
    reached: dict[str, dict[str, Float[np.ndarray, " n"]]] = {}
    for group in scored:
        if normalised(group.task, 0.0) is not None:
            scale = np.array([normalised(group.task, score) for score in group.scores])
            reached.setdefault(group.method, {})[group.task] = scale
    for tasks in dict.fromkeys(tuple(own) for own in reached.values() if len(own) > 1):
        members = {m: [own[task] for task in tasks] for m, own in reached.items() if set(tasks) <= set(own)}
        found.append(_compare(tasks, members))
    return found


def _compare(tasks: tuple[str, ...], scores: Mapping[str, Scores]) -> Comparison:
    methods = tuple(scores)
    low = min(float(one.min()) for own in scores.values() for one in own)
    high = max(float(one.max()) for own in scores.values() for one in own)
    margin = 0.02 * (high - low) or 1.0
    thresholds = np.linspace(low - margin, high + margin, THRESHOLDS)
    improvements = {}
    for first, second in combinations([method for method in methods if repeated(scores[method])], 2):
        better = probability_of_improvement(scores[first], scores[second])
        improvements[first, second], improvements[second, first] = better, better.contrary
    return Comparison(
        tasks,
        methods,
        {method: interquartile_mean_interval(scores[method]) for method in methods},
        improvements,
        {method: performance_profile(scores[method], thresholds) for method in methods},
    )
