"""Rank-one updates of a working set against NumPy's pseudo-inverses."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array

from feasible.solve.working_set import WorkingSet, hold_equalities
from tests.sets.cases import PRECISIONS

M, N, COUNT, STEPS = 9, 5, 60, 40
each_precision = pytest.mark.parametrize("dtype", PRECISIONS)


@jax.jit
@jax.vmap
def changed(rows: Array, indices: Array, adds: Array, drops: Array) -> WorkingSet:
    """The set after every step, each of which takes a row in, lets one go, or does neither."""

    def step(working: WorkingSet, row: tuple[Array, Array, Array]) -> tuple[WorkingSet, WorkingSet]:
        index, add, drop = row
        working = working.drop(rows, index, drop).add(rows[index], index, add)
        return working, working

    return jax.lax.scan(step, WorkingSet.empty(rows), (indices, adds, drops))[1]


@each_precision
def test_rows_that_come_and_go_leave_the_pseudo_inverse(dtype: type) -> None:
    """Rows that repeat others, up to their sign, are among them, but never held at once."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(COUNT, M, N))
    rows[:, 3], rows[:, 4] = rows[:, 0], -rows[:, 1]
    rows = (rows / np.linalg.norm(rows, axis=2, keepdims=True)).astype(np.float32).astype(np.float64)
    indices, adds, drops = (
        rng.integers(0, M, (COUNT, STEPS)),
        np.zeros((COUNT, STEPS), bool),
        np.zeros((COUNT, STEPS), bool),
    )
    held = np.zeros((COUNT, STEPS, M), bool)
    for k in range(COUNT):
        now: set[int] = set()
        for t, index in enumerate(indices[k]):
            if index in now:
                drops[k, t] = True
                now.remove(index)
            elif np.linalg.svd(rows[k, [*now, index]])[1].min() > 0.1 and len(now) < N:
                adds[k, t] = True
                now.add(index)
            held[k, t, list(now)] = True
    found = changed(jnp.asarray(rows, dtype), *(jnp.asarray(x) for x in (indices, adds, drops)))
    np.testing.assert_array_equal(found.held, held)
    assert held.sum(axis=2).max() == N
    kept = np.where(held[..., None], rows[:, None], 0.0)  # a row of zeros has a zero column in the pseudo-inverse
    inverse = np.swapaxes(np.linalg.pinv(kept, rcond=1e-9), 2, 3)
    accuracy = 1e-10 if dtype == jnp.float64 else 2e-4
    np.testing.assert_allclose(found.inverse, inverse, rtol=0, atol=accuracy)
    null = np.eye(N) - np.einsum("ktmi,ktmj->ktij", inverse, kept)
    np.testing.assert_allclose(found.null, null, rtol=0, atol=accuracy)


@each_precision
def test_directions_of_rows_that_are_let_go_leave_the_others_held(dtype: type) -> None:
    """Of six rows two are nearly combinations of three others; two of these go, and the rest holds to rounding."""
    rng, count, n = np.random.default_rng(2), 300, 8
    rows, noise = rng.normal(size=(count, 6, n)), 1e-5 if dtype == jnp.float64 else 1e-2
    combined = np.einsum("kij,kjl->kil", rng.normal(size=(count, 2, 3)), rows[:, :3])
    rows[:, 3::2] = combined + noise * rng.normal(size=combined.shape)
    rows = np.asarray(rows / np.linalg.norm(rows, axis=2, keepdims=True), dtype)
    order = np.broadcast_to([0, 1, 2, 3, 4, 5, 0, 1], (count, 8))
    goes = np.broadcast_to(np.arange(8) > 5, (count, 8))
    found = changed(jnp.asarray(rows), *(jnp.asarray(x) for x in (order, ~goes, goes)))
    np.testing.assert_array_equal(found.held[:, -1], np.broadcast_to(np.arange(6) > 1, (count, 6)))
    left = np.einsum("kij,kjl->kil", rows[:, 2:], np.asarray(found.null)[:, -1])
    assert np.max(np.abs(left)) <= 8 * float(jnp.finfo(dtype).eps)


@each_precision
def test_equalities_that_repeat_others_are_left_out(dtype: type) -> None:
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(COUNT, 6, N))
    rows[::2, 1] = -rows[::2, 0]
    rows[::3, 3] = rows[::3, 0] + rows[::3, 2]
    rows[::5, 2] = 0.0
    norms = np.linalg.norm(rows, axis=2, keepdims=True)
    rows = rows / np.where(norms > 0, norms, 1.0)
    found = jax.jit(jax.vmap(functools.partial(hold_equalities, equalities=4)))(jnp.asarray(rows, dtype))
    np.testing.assert_array_equal(np.sum(found.held, axis=1), np.linalg.matrix_rank(rows[:, :4], tol=1e-6))
    assert not np.any(found.held[:, 4:])
    null = np.eye(N) - np.linalg.pinv(rows[:, :4], rcond=1e-6) @ rows[:, :4]
    np.testing.assert_allclose(found.null, null, rtol=0, atol=1e-10 if dtype == jnp.float64 else 1e-3)
