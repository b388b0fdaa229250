"""Polytopes cut by second-order cones: closed forms, membership, exits, and what is refused."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array

from feasible.errors import EmptySetError
from feasible.sets import Cone, ConePolytope, Polytope
from feasible.solve.conic import nearest_in_cone
from tests.one_by_one import one_by_one

pytestmark = pytest.mark.xdist_group("cones")
# Friction: the tangential force a_1, a_2 is at most half the normal force a_0.
FRICTION = Cone(np.eye(3)[1:], np.zeros(2), np.array([0.5, 0.0, 0.0]), 0.0)


@functools.cache
def box() -> Polytope:
    return Polytope(np.zeros((0, 3)), np.zeros(0), -2.0, 2.0)


def test_projection_on_a_cone_is_moreau_s() -> None:
    """v = P(v) + P°(v), the parts orthogonal; the polar of the cone is its opposite."""
    v = np.random.default_rng(0).normal(size=(500, 4)) * [1.5, 1, 1, 1]
    v[:3] = [[0, 0, 0, 0], [1, 0, 0, 0], [-1, 0, 0, 0]]
    near = np.asarray(jax.vmap(nearest_in_cone)(jnp.asarray(v)))
    other = -np.asarray(jax.vmap(nearest_in_cone)(jnp.asarray(-v)))
    np.testing.assert_allclose(near + other, v, atol=1e-14)
    np.testing.assert_allclose(np.sum(near * other, axis=1), 0, atol=1e-14)
    assert np.all(np.linalg.norm(near[:, 1:], axis=1) <= near[:, 0] + 1e-14)


def test_a_friction_cone_in_closed_form() -> None:
    """In the plane of the normal and the tangential force the cone is a wedge of slope 1/2 about the first axis."""
    region = ConePolytope(box(), [FRICTION])

    @jax.jit
    @one_by_one
    def linearised(z: Array) -> tuple[Array, Array]:
        a, slope = jax.linearize(region.project, z)
        return a, jax.vmap(slope, out_axes=1)(jnp.eye(3))

    nearest, jacobians = linearised(np.array([[1.0, 1.0, 0.0], [-1.0, 1.0, 0.0], [3.0, 0.5, 0.0]]))
    np.testing.assert_allclose(nearest, [[1.2, 0.6, 0.0], [0.0, 0.0, 0.0], [2.0, 0.5, 0.0]], atol=1e-9)
    np.testing.assert_allclose(jacobians[0, :2, :2], [[0.8, 0.4], [0.4, 0.2]], atol=1e-7)  # onto the line (2, 1)
    np.testing.assert_allclose(region.maximise_linear([0.0, 3.0, 4.0]), [2.0, 0.6, 0.8], atol=1e-8)
    np.testing.assert_allclose(region.maximise_linear([-1.0, 0.0, 0.0]), np.zeros(3), atol=1e-8)
    np.testing.assert_allclose(region.exit_distance([1.0, 0.0, 0.0], [0.0, 1.0, 0.0]), 0.5, rtol=1e-12)
    np.testing.assert_allclose(region.exit_distance([1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]), 1.0, rtol=1e-12)
    np.testing.assert_allclose(region.exit_distance([1.0, 0.0, 0.0], [1.0, 0.1, 0.0]), 1.0, rtol=1e-12)
    assert region.contains(region.sample(jax.random.key(0)))
    assert region.violation(region.centre()) == 0
    assert region.residual_names()[-1] == "||F a + f|| - c a - d, cone 0"


def test_cones_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="cones must name at least one"):
        ConePolytope(box(), [])
    with pytest.raises(ValueError, match=r"a cone of 3 actions has F of shape \(k, 3\)"):
        ConePolytope(box(), [Cone(np.eye(2), np.zeros(2), np.zeros(2), 1.0)])
    with pytest.raises(EmptySetError, match="polytope and cones have no common point"):
        ConePolytope(box(), [Cone(np.eye(3)[1:], np.full(2, 9.0), np.zeros(3), 1.0)])
