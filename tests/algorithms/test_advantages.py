"""Advantages by a plain loop, running statistics by NumPy, conjugate gradient by a dense solve."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from feasible.algorithms.advantages import advantages, standardised
from feasible.algorithms.conjugate_gradient import conjugate_gradient
from feasible.algorithms.rollout import Step, no_rollout, record, steps
from feasible.algorithms.statistics import no_statistics


def test_advantages_are_those_of_a_plain_loop() -> None:
    rng = np.random.default_rng(0)
    reward, value, next_value = rng.normal(size=(3, 40, 2))
    terminated = rng.uniform(size=(40, 2)) < 0.1
    ended = terminated | (rng.uniform(size=(40, 2)) < 0.1)
    arrays = [jnp.asarray(x) for x in (reward, value, next_value, terminated, ended)]
    ours = advantages(*arrays, discount=0.9, trace=0.8)
    for copy in range(2):
        for start in range(40):
            total, weight = 0.0, 1.0
            for t in range(start, 40):
                later = 0.0 if terminated[t, copy] else next_value[t, copy]
                total += weight * (reward[t, copy] + 0.9 * later - value[t, copy])
                weight *= 0.9 * 0.8
                if ended[t, copy]:
                    break
            assert float(ours[start, copy]) == pytest.approx(total, rel=1e-10)


def test_standardised_has_mean_zero_and_deviation_one() -> None:
    x = standardised(jnp.asarray(np.random.default_rng(1).normal(3.0, 7.0, size=500)))
    assert float(x.mean()) == pytest.approx(0.0, abs=1e-10)
    assert float(x.std()) == pytest.approx(1.0, abs=1e-8)
    np.testing.assert_array_equal(standardised(jnp.full(3, 2.0)), np.zeros(3))


def test_statistics_are_numpys() -> None:
    rows = np.random.default_rng(2).normal([1.0, -50.0, 3.0], [0.1, 20.0, 0.0], size=(300, 3))
    statistics = no_statistics(3, jnp.dtype(jnp.float64))
    first = statistics.normalise(jnp.asarray([1.0, -9.0, 9.0]))
    np.testing.assert_allclose(first, [1.0, -5.0, 5.0], rtol=1e-7)
    for row in rows:
        statistics = statistics.absorb(jnp.asarray(row))
    np.testing.assert_allclose(statistics.mean, rows.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(statistics.variance, rows.var(axis=0), rtol=1e-10, atol=1e-20)
    theirs = np.clip((rows[7, :2] - rows[:, :2].mean(axis=0)) / rows[:, :2].std(axis=0), -5.0, 5.0)
    np.testing.assert_allclose(statistics.normalise(jnp.asarray(rows[7]))[:2], theirs, rtol=1e-6)
    assert abs(float(statistics.normalise(jnp.asarray(rows[7]))[2])) < 1e-6


def test_statistics_of_a_million_rows_hold_in_single_precision() -> None:
    rows = np.random.default_rng(3).normal(5.0, 2.0, size=(1_000_000, 1)).astype(np.float32)
    start = no_statistics(1, jnp.dtype(jnp.float32))
    end = jax.jit(lambda: jax.lax.scan(lambda s, row: (s.absorb(row), None), start, jnp.asarray(rows))[0])()
    assert float(end.mean[0]) == pytest.approx(rows.mean(dtype=np.float64), rel=1e-3)
    assert float(end.variance[0]) == pytest.approx(rows.var(dtype=np.float64), rel=1e-3)


def test_conjugate_gradient_is_a_dense_solve() -> None:
    rng = np.random.default_rng(4)
    root = rng.normal(size=(8, 8))
    matrix, right = root @ root.T + 0.1 * np.eye(8), rng.normal(size=8)
    dense = jnp.asarray(matrix)
    for iterations in (12, 40):  # more than it needs does no harm
        x = conjugate_gradient(lambda v: dense @ v, jnp.asarray(right), iterations)
        np.testing.assert_allclose(x, np.linalg.solve(matrix, right), rtol=1e-6)
    np.testing.assert_array_equal(conjugate_gradient(lambda v: dense @ v, jnp.zeros(8), 5), np.zeros(8))


def test_a_rollout_gives_back_what_was_recorded_by_time_and_copy() -> None:
    rng = np.random.default_rng(5)
    rollout = no_rollout(6, 3, 2, 2, jnp.dtype(jnp.float64), context=1)
    rows = []
    for k in range(12):  # the second half takes the place of the first
        x, next_x = rng.normal(size=(2, 3))
        sample, clipped, gains = rng.normal(size=(3, 2))
        rows.append((x, sample, clipped, next_x, gains, rng.normal(size=1), k % 4 == 0, k % 2 == 0))
        arrays = [jnp.asarray(part) for part in rows[-1]]
        rollout = record(rollout, Step(*arrays))
    taken = steps(rollout, 2, 3, 2, context=1)
    for time in range(3):
        for copy in range(2):
            for ours, theirs in zip(jax.tree.leaves(taken), rows[6 + 2 * time + copy], strict=True):
                np.testing.assert_array_equal(ours[time, copy], theirs)
