"""Solvers that stop early: what they leave outside a set is pulled in before it is executed."""

import inspect
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array
from numpy.typing import NDArray

from feasible.sets import ActionSet, Ball, ConePolytope, EllipsoidBox, Polytope
from feasible.solve.splitting import Projection
from tests.one_by_one import one_by_one
from tests.sets.test_cones import FRICTION, box

pytestmark = pytest.mark.xdist_group("cones")  # the centre of the same cone is found there
Q = np.diag([1.0, 4.0, 0.0])
A, PLANE = np.array([[1.0, 2.0, 0.0], [1.0, -1.0, 1.0]]), np.ones(3)


class Early(NamedTuple):
    """A set, the solvers that it asks, what they answer before their first step, and by how much points are outside."""

    build: Callable[[], ActionSet]
    solvers: tuple[str, ...]
    answer: Callable[..., Array]
    outside: Callable[[NDArray], list[NDArray]]


def in_the_first(parts: list[Projection], target: Array, size: Array, *, curvature: float) -> Array:
    return parts[0](10.0 * target)


def anywhere(target: Array, *rest: object, **settings: object) -> Array:
    return target


CASES = {
    "intersection": Early(
        lambda: Polytope(np.zeros((0, 3)), [], [-0.5, -2.0, -2.0], [0.5, 2.0, 0.25]) & Ball([0.0, 0.0, 0.0], 1.0),
        ("intersection.minimise_over_intersection",),
        in_the_first,
        lambda a: [np.linalg.norm(a, axis=1) - 1, np.abs(a[:, 0]) - 0.5, a[:, 2] - 0.25],
    ),
    "ellipsoid": Early(
        lambda: EllipsoidBox(Q, 1.0, [1.0, 1.0, 2.0]),
        ("ellipsoid.minimise_over_intersection",),
        in_the_first,
        lambda a: [np.sum(a @ Q * a, axis=1) - 1, np.max(np.abs(a) - [1, 1, 2], axis=1)],
    ),
    "cone": Early(
        lambda: ConePolytope(box(), [FRICTION]),
        ("cones.minimise_over_cones",),
        anywhere,
        lambda a: [np.linalg.norm(a[:, 1:], axis=1) - 0.5 * a[:, 0], np.max(np.abs(a), axis=1) - 2],
    ),
    "polytope": Early(  # built inside jit: one whose vertices are known looks through them
        lambda: jax.jit(lambda b: Polytope(A, b, -1.0, 1.0, PLANE[None], [0.5]))(jnp.array([1.0, 0.5])),
        ("polytope.nearest_in_polytope", "polytope.highest_in_polytope"),
        anywhere,
        lambda a: [*(a @ A.T - [1.0, 0.5]).T, np.max(np.abs(a), axis=1) - 1, np.abs(a @ PLANE - 0.5)],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_answer_of_a_solver_that_stopped_early_is_inside(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    build, solvers, answer, outside = CASES[name]
    feasible_set, points = build(), jnp.asarray(np.random.default_rng(0).normal(size=(200, 3)))
    for solver in solvers:
        monkeypatch.setattr(f"feasible.sets.{solver}", answer)
    # Not the compiled methods, which other tests share.
    project, maximise = (
        inspect.unwrap(method) for method in (type(feasible_set).project, type(feasible_set).maximise_linear)
    )
    for answers in jax.jit(one_by_one(lambda x: (project(feasible_set, x), maximise(feasible_set, x))))(points):
        assert max(excess.max() for excess in outside(np.asarray(answers))) <= 1e-12
