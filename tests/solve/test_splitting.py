"""Newton on the splitting of a box, a half-space and a ball, against Clarabel's optima."""

from contextlib import nullcontext

import cvxpy as cp
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array

from feasible.solve.splitting import minimise_over_intersection
from tests.code_generation import users_code
from tests.one_by_one import one_by_one
from tests.reference import TIGHT
from tests.sets.cases import PRECISIONS

N, COUNT = 3, 60


@jax.jit
@one_by_one
def answers(target: Array, normal: Array, limit: Array, centre: Array, radius: Array) -> tuple[Array, Array]:
    """The projection of the target, and a maximiser of it, over |x_i| <= 1, normal . x <= limit, |x - c| <= r."""

    def in_box(x: Array) -> Array:
        return jnp.clip(x, -1.0, 1.0)

    def in_half_space(x: Array) -> Array:
        return x - jnp.maximum(normal @ x - limit, 0.0) / (normal @ normal) * normal

    def in_ball(x: Array) -> Array:
        apart = x - centre
        distance = jnp.linalg.norm(jnp.where(apart == 0, 1e-30, apart))
        return jnp.where(distance > radius, centre + apart * (radius / jnp.where(distance > 0, distance, 1.0)), x)

    parts, size = (in_box, in_half_space, in_ball), jnp.ones((), target.dtype)
    nearest, highest = (minimise_over_intersection(parts, target, size, curvature=bend) for bend in (1.0, 0.0))
    return nearest, highest


# Clarabel says so where it stops short of 1e-12; the test judges the answer, not the message.
@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize("dtype", PRECISIONS)
def test_answers_are_in_all_parts_and_as_good_as_clarabel_s(dtype: type) -> None:
    """Balls that hold the whole box, or reach one of its corners from outside, and half-spaces along its faces."""
    rng = np.random.default_rng(0)
    target = np.round(rng.normal(size=(COUNT, N)) * rng.choice([0.3, 1, 30], (COUNT, 1)) * 64) / 64
    target[::10], target[1::10] = 0.0, target[1::10, :1]
    normal = rng.normal(size=(COUNT, N))
    normal[::5] = np.eye(N)[0]
    centre, radius, limit = rng.uniform(-1, 1, (COUNT, N)), rng.uniform(0.2, 1, COUNT), rng.uniform(0, 0.5, COUNT)
    limit += np.sum(normal * centre, axis=1)
    radius[2::10] = 4.0
    centre[3::10], radius[3::10], limit[3::10] = 2.0, 3**0.5 + 0.01, 4.0
    problems = [x.astype(np.float32).astype(np.float64) for x in (target, normal, limit, centre, radius)]
    target, normal, limit, centre, radius = problems
    with users_code() if dtype == jnp.float32 else nullcontext():  # rounding depends on it
        found = [np.asarray(x, np.float64) for x in answers(*(x.astype(dtype) for x in problems))]
    slack = 1e-9 if dtype == jnp.float64 else 1e-4
    for x in found:
        outside = [np.abs(x).max(axis=1) - 1, np.sum(normal * x, axis=1) - limit]
        outside.append(np.linalg.norm(x - centre, axis=1) - radius)
        assert np.max(outside) <= slack
    x, t, n, b, c, r = cp.Variable(N), cp.Parameter(N), cp.Parameter(N), cp.Parameter(), cp.Parameter(N), cp.Parameter()
    said: list[cp.Constraint] = [cp.abs(x) <= 1, n @ x <= b, cp.norm(x - c) <= r]
    nearest, highest = cp.Problem(cp.Minimize(cp.norm(x - t)), said), cp.Problem(cp.Maximize(t @ x), said)
    for k in range(0, COUNT, 2):
        t.value, n.value, b.value, c.value, r.value = (array[k] for array in problems)
        length = max(1.0, float(np.linalg.norm(target[k])))
        for problem, ours in ((nearest, np.linalg.norm(found[0][k] - target[k])), (highest, target[k] @ found[1][k])):
            problem.solve(solver=cp.CLARABEL, warm_start=False, **TIGHT)
            assert ours == pytest.approx(float(problem.value), abs=max(10 * slack, 1e-7) * length)  # pyright: ignore
