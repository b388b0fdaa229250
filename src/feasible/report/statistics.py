"""Statistics of scores over seeds and tasks, after Agarwal et al., "Deep RL at the edge of the statistical precipice".

Scores are given as one array a task, of any lengths. Intervals are percentiles of a stratified bootstrap: the runs of
each task are drawn anew with replacement, `DRAWS` times. A generator that is seeded makes them the same every time.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

DRAWS = 10_000
SEED = 0

Scores = Sequence[Float[np.ndarray, " n"]]


@dataclass(frozen=True)
class Estimate:
    """A statistic of the scores, with its 95% interval; None where a task has one score alone (`repeated`)."""

    value: float
    low: float | None
    high: float | None

    @property
    def contrary(self) -> "Estimate":
        """Of a probability, that of the contrary."""
        low, high = (None if bound is None else 1 - bound for bound in (self.high, self.low))
        return Estimate(1 - self.value, low, high)


def repeated(*scores: Scores) -> bool:
    """Whether every task has several scores: of one, resampling would give an interval without width."""
    return all(len(one) > 1 for some in scores for one in some)


def interquartile_mean(scores: Float[np.ndarray, "*k n"]) -> Float[np.ndarray, "*k"]:
    """Mean of the middle half: a quarter of the scores, rounded down, is cut off at either end."""
    count = scores.shape[-1]
    cut = count // 4
    return np.sort(scores, axis=-1)[..., cut : count - cut].mean(-1)


def interquartile_mean_interval(scores: Scores, draws: int = DRAWS, seed: int = SEED) -> Estimate:
    """Inter-quartile mean over all runs of all tasks."""
    value = float(interquartile_mean(np.concatenate(list(scores))))
    if not repeated(scores):
        return Estimate(value, None, None)
    drawn = np.concatenate(list(_resampled(scores, draws, np.random.default_rng(seed))), axis=1)
    return _estimate(value, interquartile_mean(drawn))


def probability_of_improvement(first: Scores, second: Scores, draws: int = DRAWS, seed: int = SEED) -> Estimate:
    """How probably a run of the first method beats one of the second: the mean over tasks; ties count half."""
    generator = np.random.default_rng(seed)
    pairs = list(zip(first, second, strict=True))
    value = float(np.mean([_better(x[None], y[None])[0] for x, y in pairs]))
    drawn = [_better(x, y) for x, y in zip(*(_resampled(s, draws, generator) for s in (first, second)), strict=True)]
    return _estimate(value, np.mean(drawn, axis=0))


@dataclass(frozen=True)
class Profile:
    """Share of runs whose score is above each threshold, with its 95% interval where scores are `repeated`."""

    thresholds: Float[np.ndarray, " k"]
    share: Float[np.ndarray, " k"]
    low: Float[np.ndarray, " k"] | None
    high: Float[np.ndarray, " k"] | None


def performance_profile(
    scores: Scores, thresholds: Float[np.ndarray, " k"], draws: int = DRAWS // 5, seed: int = SEED
) -> Profile:
    """The distribution of scores over runs, all tasks alike."""
    share = np.mean([_above(one[None], thresholds)[0] for one in scores], axis=0)
    if not repeated(scores):
        return Profile(thresholds, share, None, None)
    generator = np.random.default_rng(seed)
    drawn = np.mean([_above(one, thresholds) for one in _resampled(scores, draws, generator)], axis=0)
    low, high = np.percentile(drawn, (2.5, 97.5), axis=0)
    return Profile(thresholds, share, low, high)


def _resampled(scores: Scores, draws: int, generator: np.random.Generator) -> list[Float[np.ndarray, "draws n"]]:
    return [one[generator.integers(0, len(one), (draws, len(one)))] for one in scores]


def _better(x: Float[np.ndarray, "draws n"], y: Float[np.ndarray, "draws m"]) -> Float[np.ndarray, " draws"]:
    """The Mann-Whitney statistic as a share of the pairs."""
    above = (x[:, :, None] > y[:, None, :]) + 0.5 * (x[:, :, None] == y[:, None, :])
    return above.mean((1, 2))


def _above(scores: Float[np.ndarray, "draws n"], thresholds: Float[np.ndarray, " k"]) -> Float[np.ndarray, "draws k"]:
    return (scores[:, :, None] > thresholds).mean(1)


def _estimate(value: float, drawn: Float[np.ndarray, " draws"]) -> Estimate:
    low, high = np.percentile(drawn, (2.5, 97.5))
    return Estimate(value, float(low), float(high))
