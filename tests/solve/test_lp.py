"""Linear maximisation on a polytope and Chebyshev centres against HiGHS."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array
from numpy.typing import NDArray
from scipy.optimize import linprog

from feasible.solve.lp import chebyshev_centre, highest_in_polytope
from tests.one_by_one import one_by_one
from tests.sets.cases import PRECISIONS
from tests.solve.polytopes import N, polytopes

COUNT = 90
each = pytest.mark.parametrize("equalities", [0, 2])
each_precision = pytest.mark.parametrize("dtype", PRECISIONS)


def highs(cost: NDArray, rows: NDArray, limits: NDArray, equalities: int) -> float:
    """max cost . x."""
    plane = (rows[:equalities], limits[:equalities]) if equalities else (None, None)
    found = linprog(-cost, rows[equalities:], limits[equalities:], *plane, bounds=(None, None))
    assert found.status == 0, found.message
    return -float(found.fun)


@each
@each_precision
def test_the_climb_ends_at_the_maximum(equalities: int, dtype: type) -> None:
    """From points inside, on faces and at degenerate vertices; along rows, and along nothing."""
    rng = np.random.default_rng(equalities)
    rows, limits, inside = polytopes(rng, COUNT, equalities)
    g = np.round(rng.normal(size=(COUNT, N)) * 64) / 64
    g[::6], g[1::6] = rows[::6, 2], 0.0
    climb = jax.jit(one_by_one(functools.partial(highest_in_polytope, equalities=equalities)))
    x = np.asarray(climb(*(jnp.asarray(a, dtype) for a in (g, inside, rows, limits))), np.float64)
    slack = 256 * float(jnp.finfo(dtype).eps)
    over = np.einsum("kij,kj->ki", rows, x) - limits
    assert over[:, equalities:].max() <= slack
    assert np.abs(over[:, :equalities]).max(initial=0.0) <= slack
    np.testing.assert_allclose(x[1::6], inside[1::6], rtol=0, atol=slack)
    for k in range(0, COUNT, 3):
        best = highs(g[k], rows[k], limits[k], equalities)
        assert g[k] @ x[k] == pytest.approx(best, abs=max(slack * 4, 1e-9))


def test_the_vertex_moves_with_its_rows() -> None:
    """Its derivatives in rows and limits against HiGHS at both sides; in the direction there is none."""
    rng, equalities = np.random.default_rng(4), 2
    g, rows = rng.normal(size=N), np.concatenate([rng.normal(size=(equalities + 8, N)), np.eye(N), -np.eye(N)])
    limits = np.concatenate([np.zeros(equalities), 1.0 + rng.random(8 + 2 * N)])
    turned, moved = 1e-6 * rng.normal(size=rows.shape), 1e-6 * rng.normal(size=limits.shape)

    def height(way: Array, rows: Array, limits: Array) -> Array:
        return jnp.asarray(g) @ highest_in_polytope(way, jnp.zeros(N), rows, limits, equalities)

    found = jax.jit(jax.grad(height, (0, 1, 2)))(*(jnp.asarray(part) for part in (g, rows, limits)))
    up, down = (highs(g, rows + sign * turned, limits + sign * moved, equalities) for sign in (1, -1))
    assert np.sum(found[1] * turned) + found[2] @ moved == pytest.approx(0.5 * (up - down), rel=1e-5)
    assert not np.any(found[0])


@each
@each_precision
def test_the_centre_is_that_of_a_largest_ball(equalities: int, dtype: type) -> None:
    """Within the plane of the equalities, by the linear program over (x, r). An empty polytope has a radius below 0."""
    rng = np.random.default_rng(10 + equalities)
    rows, limits, _ = polytopes(rng, COUNT, equalities)
    limits[::8, 5] = (
        -2.5 * np.linalg.norm(rows[::8, 5], axis=1) - np.abs(rows[::8, 5]).sum(axis=1) * 2
    )  # out of the box

    def one(rows: Array, limits: Array) -> tuple[Array, Array]:
        return chebyshev_centre(rows, limits, equalities, jnp.zeros(N, rows.dtype))

    found = jax.jit(one_by_one(one))(jnp.asarray(rows, dtype), jnp.asarray(limits, dtype))
    x, radius = (np.asarray(a, np.float64) for a in found)
    slack = max(1024 * float(jnp.finfo(dtype).eps), 1e-9)
    for k in range(COUNT):
        plane = rows[k, :equalities]
        widths = np.linalg.norm(rows[k] @ (np.eye(N) - np.linalg.pinv(plane, rcond=1e-6) @ plane), axis=1)
        widths = np.where((np.arange(len(widths)) >= equalities) & (widths > 1e-3), widths, 0.0)
        lifted = np.append(rows[k], widths[:, None], axis=1)
        best = highs(np.append(np.zeros(N), 1.0), lifted, limits[k], equalities)
        assert radius[k] == pytest.approx(best, abs=slack)
        over = rows[k] @ x[k] - limits[k] + widths * radius[k]
        assert over[equalities:].max() <= slack
        assert np.abs(over[:equalities]).max(initial=0.0) <= slack
    assert (radius < 0).sum() >= COUNT // 8
