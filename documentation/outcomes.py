"""What the seeds of one method have come to at a step: scores, infeasible proposals, and in how few words to say so."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from feasible.report.runs import SCORED, Run

SEEDS = 5


@dataclass(frozen=True)
class Outcome:
    """Of all seeds at the same step."""

    scores: Float64[np.ndarray, " n"]
    """Mean return of each seed's last ten evaluations."""
    infeasible: float
    """Share of the proposals since the warm-up that were infeasible, the mean over seeds."""
    intended: float
    """The same without the exploration."""
    reached: int
    steps: int

    @property
    def score(self) -> str:
        if len(self.scores) == 1:
            return f"{number(self.scores.mean())}; 1 seed"
        seeds = "" if len(self.scores) == SEEDS else f"; {len(self.scores)} seeds"
        return f"{number(self.scores.mean())} ± {number(self.scores.std())}{seeds}"

    def __str__(self) -> str:
        return self.score + ("" if self.reached >= self.steps else f"; {self.reached:,} of {self.steps:,} steps")


def outcome(runs: Sequence[Run], until: int | None = None) -> Outcome:
    """Of the runs of one method at the step `until`, or at the one that the slowest has reached."""
    reached = until or min(run.reached for run in runs)
    scores = []
    for run in runs:
        returns = run.series["eval/return"]
        scores.append(returns.values[returns.steps <= reached][-SCORED:].mean())
    counters = ("violation/proposed_count", "violation/intended_count")
    shares = [[share for run in runs if (share := run.share(counter, reached)) is not None] for counter in counters]
    infeasible, intended = (float(np.mean(known)) for known in shares)
    return Outcome(np.array(scores), infeasible, intended, reached, runs[0].steps)


def number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2f}"
