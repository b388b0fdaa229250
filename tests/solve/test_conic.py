"""A polytope cut by two second-order cones: feasible, and as good as Clarabel's optimum."""

import functools

import cvxpy as cp
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array

from feasible.solve.conic import minimise_over_cones
from tests.one_by_one import one_by_one
from tests.reference import TIGHT

N, COUNT, SIZES = 3, 40, (3, 2)
ROWS = np.vstack([np.ones((1, N)) / N**0.5, np.eye(N), -np.eye(N)])


@functools.partial(jax.jit, static_argnames="curvature")
def answers(targets: Array, limits: Array, maps: Array, offsets: Array, curvature: float) -> Array:
    rows, size = jnp.asarray(ROWS, targets.dtype), jnp.ones((), targets.dtype)

    def one(target: Array, limits: Array, map: Array, offset: Array) -> Array:
        return minimise_over_cones(target, rows, limits, 1, map, offset, SIZES, size, curvature=curvature)

    return one_by_one(one)(targets, limits, maps, offsets)


# Clarabel says so where it stops short of 1e-12; the test judges the answer, not the message.
@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize(("dtype", "curvature"), [(jnp.float64, 1.0), (jnp.float32, 0.0)])  # each takes 3 s to compile
def test_answers_are_inside_and_as_good_as_clarabel_s(dtype: type, curvature: float) -> None:
    """With an equality, cones that hold the whole polytope, and heads that depend on x and that do not."""
    rng = np.random.default_rng(0)
    target = np.round(rng.normal(size=(COUNT, N)) * rng.choice([0.3, 1, 30], (COUNT, 1)) * 64) / 64
    target[::10] = 0.0
    inside = rng.uniform(-0.5, 0.5, (COUNT, N))
    map = rng.normal(size=(COUNT, sum(SIZES), N)) / 2
    map[::2, 0] = 0.0
    offset = -np.einsum("kij,kj->ki", map, inside)
    offset[:, [0, 3]] += rng.uniform(0.1, 0.5, (COUNT, 2))  # the head above a tail that is zero at the point inside
    offset[1::6, [0, 3]] += 5.0
    limits = np.concatenate([inside @ ROWS[:1].T, np.ones((COUNT, 2 * N))], axis=1)
    problems = [x.astype(np.float32).astype(np.float64) for x in (target, limits, map, offset)]
    target, limits, map, offset = problems
    found = np.asarray(answers(*(jnp.asarray(x, dtype) for x in problems), curvature=curvature), np.float64)
    slack = 1e-9 if dtype == jnp.float64 else 1e-4
    over, image = found @ ROWS.T - limits, np.einsum("kij,kj->ki", map, found) + offset
    assert np.abs(over[:, 0]).max() <= slack
    assert over[:, 1:].max() <= slack
    assert np.max(np.linalg.norm(image[:, 1:3], axis=1) - image[:, 0]) <= slack
    assert np.max(np.abs(image[:, 4]) - image[:, 3]) <= slack
    x, t, b = cp.Variable(N), cp.Parameter(N), cp.Parameter(1 + 2 * N)
    F, f = cp.Parameter((sum(SIZES), N)), cp.Parameter(sum(SIZES))
    block = F @ x + f
    said: list[cp.Constraint] = [ROWS[:1] @ x == b[:1], ROWS[1:] @ x <= b[1:]]
    said += [cp.norm(block[1:3]) <= block[0], cp.norm(block[4:]) <= block[3]]
    problem = cp.Problem(cp.Minimize(cp.norm(x - t)) if curvature else cp.Maximize(t @ x), said)
    for k in range(COUNT):
        t.value, b.value, F.value, f.value = (array[k] for array in problems)
        problem.solve(solver=cp.CLARABEL, warm_start=False, **TIGHT)
        ours = np.linalg.norm(found[k] - target[k]) if curvature else target[k] @ found[k]
        length = max(1.0, float(np.linalg.norm(target[k])))
        assert ours == pytest.approx(float(problem.value), abs=max(10 * slack, 1e-7) * length)  # pyright: ignore
