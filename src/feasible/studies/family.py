"""The whole DDPG family on one task, in the fair settings: return against infeasible proposals, at equal steps.

Members are compared at the step that all of them have reached. A score is the mean return of the last ten evaluations
up to there; shares are of the proposals after the warm-up, with the exploration and without.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float64

from feasible.methods import METHODS
from feasible.report.figures import figure_files
from feasible.report.runs import SCORED, Run

PRESET = "fair"
ABLATIONS = ("fair+actor_interval=50",)
"""Variants that show what the paper's settings do, not what a method can."""
_SHORT = {
    "frank_wolfe_by=gap": "steps by the gap",
    "projected_gradient_inside": "inside",
    "through_projection_penalty": "penalty",
    "frank_wolfe_step": "step",
}
_TD3 = ("actor_interval=2", "target_noise=0.2", "twin=True")


@dataclass(frozen=True)
class Member:
    """The seeds of one method with one set of changes, up to `step`."""

    label: str
    runs: tuple[Run, ...]
    step: int

    @cached_property
    def scores(self) -> Float64[np.ndarray, " n"]:
        found = []
        for run in self.runs:
            returns = run.series["eval/return"]
            found.append(returns.values[returns.steps <= self.step][-SCORED:].mean())
        return np.array(found)

    def share(self, metric: str) -> float:
        """Of the proposals that a counter of violations has counted, the mean over seeds."""
        shares = []
        for run in self.runs:
            counted, algorithm = run.series[metric], run.described["algorithm"]
            assert isinstance(algorithm, Mapping)
            known = counted.steps <= self.step
            shares.append(counted.values[known][-1] / (counted.steps[known][-1] + 1 - int(str(algorithm["warmup"]))))
        return float(np.mean(shares))


def members(task: str, runs: Sequence[Run]) -> list[Member]:
    """The best score first."""
    groups: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        if (run.task, run.preset) == (task, PRESET) and _is_ddpg(run) and run.variant not in ABLATIONS:
            groups.setdefault((run.algo, run.variant), []).append(run)
    step = min((run.reached for own in groups.values() for run in own), default=0)
    found = [Member(_label(algo, variant), tuple(own), step) for (algo, variant), own in groups.items()]
    return sorted(found, key=lambda member: -member.scores.mean())


def rows(task: str, runs: Sequence[Run]) -> Iterator[list[str]]:
    """Method, score and both shares of each member."""
    for member in members(task, runs):
        seeds = "" if len(member.scores) == 5 else f"; {len(member.scores)} seeds"
        score = f"{_number(member.scores.mean())} ± {_number(member.scores.std())}{seeds}"
        shares = [member.share(f"violation/{kind}_count") for kind in ("proposed", "intended")]
        yield [member.label, score, *(f"{share:.1%}" for share in shares)]


def figures(task: str, runs: Sequence[Run]) -> Iterator[tuple[str, bytes]]:
    """A point a member, right and up is worse and better; bars are standard deviations over seeds."""
    from matplotlib.figure import Figure

    found = members(task, runs)
    if len(found) < 2:
        return
    figure = Figure(figsize=(6.4, 4.2))
    axes = figure.subplots()
    for number, member in enumerate(found):
        share, scores = 100 * member.share("violation/proposed_count"), member.scores
        marker = "osD^vP*X<>"[number % 10]
        axes.errorbar(share, scores.mean(), scores.std(), fmt=marker, capsize=2, label=member.label)
    axes.set_xlim(left=0)
    axes.set_xlabel("infeasible proposals, %")
    axes.set_ylabel("return")
    axes.set_title(f"{task}, fair settings, {found[0].step:,} steps")
    axes.legend(fontsize=7)
    yield from figure_files(f"family-{task}", figure)


def _is_ddpg(run: Run) -> bool:
    algorithm = run.described["algorithm"]
    return isinstance(algorithm, Mapping) and algorithm["kind"] == "DDPG"


def _label(algo: str, variant: str) -> str:
    """The method's title and what was changed, in words where there are some."""
    changes = [change for change in variant.split("+") if change and change != PRESET]
    if all(change in changes for change in _TD3):
        changes = ["TD3", *(change for change in changes if change not in _TD3)]
    words = []
    for change in changes:
        name, _, value = change.partition("=")
        words.append(_SHORT.get(change) or (f"{_SHORT.get(name, name)} {value}" if value else change))
    return METHODS[algo].title + "".join(f", {word}" for word in words)


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2f}"
