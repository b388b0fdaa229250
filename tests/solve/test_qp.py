"""Projection on a polytope, by either kernel: a certificate of non-negative least squares, and Clarabel."""

import functools
from typing import NamedTuple

import cvxpy as cp
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array
from numpy.typing import NDArray
from scipy.optimize import nnls

from feasible.solve.bounded_qp import nearest_in_bounded_polytope
from feasible.solve.qp import nearest_in_polytope
from tests.one_by_one import one_by_one
from tests.reference import TIGHT
from tests.sets.cases import PRECISIONS
from tests.solve.polytopes import M, N, polytopes

COUNT = 150


def many_rows(z: Array, rows: Array, limits: Array, equalities: int) -> Array:
    """The kernel for many rows, which is told of the box apart."""
    return nearest_in_bounded_polytope(
        z, rows[: -2 * N], limits[: -2 * N], -limits[-N:], limits[-2 * N : -N], equalities
    )


KERNELS = {"few rows": nearest_in_polytope, "many rows": many_rows}
each_kind = pytest.mark.parametrize(
    ("kernel", "equalities"), [(kernel, equalities) for kernel in KERNELS for equalities in (0, 2)]
)


class Answers(NamedTuple):
    z: NDArray
    rows: NDArray
    limits: NDArray
    x: NDArray
    slope: NDArray


@functools.cache
def answers(kernel: str, equalities: int, dtype: type) -> Answers:
    rng = np.random.default_rng(equalities)
    rows, limits, _ = polytopes(rng, COUNT, equalities)
    z = np.round(rng.normal(size=(COUNT, N)) * rng.choice([1, 30], (COUNT, 1)) * 64) / 64

    def one(z: Array, rows: Array, limits: Array) -> tuple[Array, Array]:
        project = functools.partial(KERNELS[kernel], rows=rows, limits=limits, equalities=equalities)
        x, slope = jax.linearize(project, z)
        return x, jax.vmap(slope, out_axes=1)(jnp.eye(N, dtype=z.dtype))

    found = jax.jit(one_by_one(one))(*(jnp.asarray(x, dtype) for x in (z, rows, limits)))
    return Answers(z, rows, limits, *(np.asarray(x, np.float64) for x in found))


def multipliers(a: Answers, k: int, equalities: int, slack: float) -> tuple[NDArray, float]:
    """Of the rows that bind, such that z - x is their combination, as nearly as it can be; and what is missing."""
    gaps = a.limits[k] - a.rows[k] @ a.x[k]
    assert gaps[equalities:].min() >= -slack
    assert np.abs(gaps[:equalities]).max(initial=0.0) <= slack
    tight = np.flatnonzero((gaps <= slack) & np.any(a.rows[k] != 0, axis=1))
    columns = a.rows[k][tight].T
    signed = np.hstack([columns, -columns[:, tight < equalities]])  # those of equalities may have either sign
    weights, missing = nnls(signed, a.z[k] - a.x[k]) if signed.size else (np.zeros(0), np.linalg.norm(a.z[k] - a.x[k]))
    found = np.zeros(M)
    found[tight] = weights[: len(tight)]
    found[tight[tight < equalities]] -= weights[len(tight) :]
    return found, float(missing)


@each_kind
@pytest.mark.parametrize("dtype", PRECISIONS)
def test_what_is_missing_to_z_is_a_combination_of_rows_that_bind(kernel: str, equalities: int, dtype: type) -> None:
    """The optimality conditions: x feasible, z - x = sum of mu_i row_i with mu_i >= 0, zero where a row has room."""
    a = answers(kernel, equalities, dtype)
    precision, binding = 256 * float(jnp.finfo(dtype).eps), []
    for k in range(COUNT):
        slack = precision * (1 + float(np.abs(a.z[k]).max()))
        found, missing = multipliers(a, k, equalities, slack)
        assert missing <= 4 * slack
        binding.append(np.count_nonzero(found))
    assert set(binding) >= {equalities + 1, N}


@each_kind
def test_clarabel_finds_no_nearer_point(kernel: str, equalities: int) -> None:
    a = answers(kernel, equalities, jnp.float64)
    x, rows, limits, z = cp.Variable(N), cp.Parameter((M, N)), cp.Parameter(M), cp.Parameter(N)
    said: list[cp.Constraint] = [rows[equalities:] @ x <= limits[equalities:]]
    said += [rows[:equalities] @ x == limits[:equalities]] if equalities else []
    problem = cp.Problem(cp.Minimize(cp.sum_squares(x - z)), said)
    for k in range(0, COUNT, 5):
        rows.value, limits.value, z.value = a.rows[k], a.limits[k], a.z[k]
        problem.solve(solver=cp.CLARABEL, warm_start=False, **TIGHT)
        assert np.sum((a.x[k] - a.z[k]) ** 2) == pytest.approx(float(problem.value), rel=1e-7, abs=1e-9)  # pyright: ignore


@each_kind
def test_the_slope_is_the_projector_along_the_rows_that_bind(kernel: str, equalities: int) -> None:
    """Where every binding row has a multiplier, so that no kink is near: I - N^+ N."""
    a, checked = answers(kernel, equalities, jnp.float64), 0
    for k in range(COUNT):
        found, _ = multipliers(a, k, equalities, 1e-9)
        gaps = a.limits[k] - a.rows[k] @ a.x[k]
        binds = (gaps < 1e-6) & np.any(a.rows[k] != 0, axis=1)
        if np.any(binds[equalities:] & (found[equalities:] < 1e-6)):
            continue
        held = a.rows[k][binds]
        np.testing.assert_allclose(a.slope[k], np.eye(N) - np.linalg.pinv(held, rcond=1e-9) @ held, atol=1e-8)
        checked += 1
    assert checked > COUNT / 3
