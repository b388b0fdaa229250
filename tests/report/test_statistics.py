"""Statistics of scores against rliable, whose intervals come from a bootstrap of their own."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jaxtyping import Float
from scipy import stats

from feasible.report.statistics import (
    interquartile_mean,
    interquartile_mean_interval,
    performance_profile,
    probability_of_improvement,
)

# Of arch, on which rliable rests.
pytestmark = pytest.mark.filterwarnings("ignore:random_state is deprecated:FutureWarning")
DRAWS = 20_000


def scores(seed: int, runs: int = 7, tasks: int = 3) -> Float[np.ndarray, "n t"]:
    """One method's scores as rliable has them: runs by tasks, the tasks of different spread."""
    generator = np.random.default_rng(seed)
    return generator.normal(seed / 3, 1.0 + np.arange(tasks), (runs, tasks))


def columns(matrix: Float[np.ndarray, "n t"]) -> list[Float[np.ndarray, " n"]]:
    return list(matrix.T)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30))
def test_the_inter_quartile_mean_is_scipys_trimmed_mean(values: list[float]) -> None:
    expected = stats.trim_mean(np.array(values), 0.25)
    np.testing.assert_allclose(interquartile_mean(np.array(values)), expected, rtol=1e-9, atol=1e-6)


def test_intervals_of_the_inter_quartile_mean_are_rliables() -> None:
    from rliable import library, metrics  # takes seconds, on one worker

    ours, matrix = interquartile_mean_interval(columns(scores(1)), DRAWS), scores(1)
    points, intervals = library.get_interval_estimates(
        {"x": matrix},
        lambda x: np.array([metrics.aggregate_iqm(x)]),
        reps=DRAWS // 4,
        random_state=np.random.RandomState(0),
    )
    assert ours.value == pytest.approx(points["x"][0])
    low, high = intervals["x"][:, 0]
    # A bootstrap's percentiles scatter by a few hundredths of the interval.
    assert [ours.low, ours.high] == pytest.approx([low, high], abs=0.04 * (high - low))


def test_the_probability_of_improvement_is_rliables() -> None:
    from rliable import library, metrics

    x, y = scores(2), scores(1, runs=5)
    ours = probability_of_improvement(columns(x), columns(y), DRAWS)
    points, intervals = library.get_interval_estimates(
        {"x": [x, y]},
        # rliable's own takes ten times as long.
        lambda a, b: np.array([np.mean((a[:, None] > b) + 0.5 * (a[:, None] == b))]),
        reps=2000,
        random_state=np.random.RandomState(0),
    )
    assert ours.value == pytest.approx(points["x"][0])
    assert ours.value == pytest.approx(metrics.probability_of_improvement(x, y))
    low, high = intervals["x"][:, 0]
    assert [ours.low, ours.high] == pytest.approx([low, high], abs=0.06 * (high - low))


def test_ties_count_half() -> None:
    same = [np.array([1.0, 1.0, 2.0])]
    assert probability_of_improvement(same, same, 10).value == 0.5
    better = [np.array([3.0, 4.0])]
    assert probability_of_improvement(better, same, 10).value == 1.0
    assert probability_of_improvement(same, better, 10).value == 0.0


def test_performance_profiles_are_rliables() -> None:
    from rliable import library

    matrix, thresholds = scores(1, runs=9), np.linspace(-4, 4, 17)
    ours = performance_profile(columns(matrix), thresholds, DRAWS)
    shares, intervals = library.create_performance_profile({"x": matrix}, thresholds, reps=4000)
    np.testing.assert_allclose(ours.share, shares["x"])
    assert ours.low is not None
    assert ours.high is not None
    np.testing.assert_allclose([ours.low, ours.high], intervals["x"], atol=1.5 / matrix.size)


def test_tasks_may_have_different_numbers_of_runs() -> None:
    uneven = [np.array([1.0, 2.0, 3.0, 4.0, 5.0]), np.array([10.0, 20.0])]
    found = interquartile_mean_interval(uneven, DRAWS)
    assert found.value == pytest.approx(stats.trim_mean(np.concatenate(uneven), 0.25))
    assert found.low is not None
    assert found.high is not None
    assert found.low < found.value < found.high


def test_the_same_scores_give_the_same_intervals() -> None:
    assert interquartile_mean_interval(columns(scores(1))) == interquartile_mean_interval(columns(scores(1)))


def test_the_interval_covers_what_it_should() -> None:
    """95% of the intervals should hold the true value; those of a bootstrap of 20 runs hold it a little less often."""
    generator = np.random.default_rng(5)
    found = [interquartile_mean_interval([generator.normal(0, 1, 20)], 500) for _ in range(200)]
    ends = np.array([(one.low, one.high) for one in found], float)
    assert 0.86 < np.mean((ends[:, 0] < 0) & (ends[:, 1] > 0)) < 0.99
