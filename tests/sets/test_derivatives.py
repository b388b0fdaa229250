"""Jacobians of projections: exact against finite differences, forward equal to reverse, finite everywhere."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array

from feasible.sets import ActionSet, Ball, Box, Polytope, PositivePowerBox, WeightedL1Box
from tests.sets.families import FAMILIES, Family

each = pytest.mark.parametrize(
    "family", [pytest.param(f, id=f.name, marks=pytest.mark.xdist_group(f.name)) for f in FAMILIES]
)
COUNT = 40


def differences(feasible_set: ActionSet, z: Array, steps: Array) -> Array:
    """Central differences of the projection, one matrix for each step."""
    shifts = steps[:, None, None] * jnp.eye(z.shape[0], dtype=z.dtype)[None]
    around = jnp.stack([z[None, None] + shifts, z[None, None] - shifts])
    ahead, behind = jax.vmap(jax.vmap(jax.vmap(feasible_set.project)))(around)
    return jnp.swapaxes(ahead - behind, 1, 2) / (2.0 * steps[:, None, None])


@functools.cache
def jacobians(family: Family) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(11)
    values = {name: jnp.asarray(value) for name, value in family.draw(rng, COUNT).items()}
    noise = jnp.asarray(rng.normal(size=(COUNT, family.description.dim)) * rng.choice([0.3, 2], size=(COUNT, 1)))

    def one(v: dict[str, Array], noise: Array) -> dict[str, Array]:
        feasible_set = family.build(**v)
        z = feasible_set.centre() + noise * feasible_set.scale
        fine, coarse = differences(feasible_set, z, jnp.asarray([1e-5, 3e-5]) * feasible_set.scale)
        return {
            "forward": jax.jacfwd(feasible_set.project)(z),
            "reverse": jax.jacrev(feasible_set.project)(z),
            "fine": fine,
            "coarse": coarse,
        }

    return {name: np.asarray(value) for name, value in jax.jit(jax.vmap(one))(values, noise).items()}


@each
def test_jacobian_equals_finite_differences(family: Family) -> None:
    """At random points; where two step sizes disagree a kink lies between and nothing is asserted."""
    found = jacobians(family)
    smooth = np.max(np.abs(found["fine"] - found["coarse"]), axis=(1, 2)) < 1e-5
    assert np.mean(smooth) > 0.8
    np.testing.assert_allclose(found["forward"][smooth], found["fine"][smooth], atol=1e-4)


@each
def test_forward_and_reverse_agree(family: Family) -> None:
    found = jacobians(family)
    np.testing.assert_allclose(found["forward"], found["reverse"], atol=1e-8)


@each
def test_jacobian_is_finite_at_kinks(family: Family) -> None:
    """In float32, at the origin, at ties, at points of the set, on its boundary, and far away."""
    rng = np.random.default_rng(5)
    values = {name: jnp.asarray(value[0], jnp.float32) for name, value in family.draw(rng, 1).items()}

    @jax.jit
    def jacobian(z: Array) -> Array:
        return jax.jacrev(family.build(**values).project)(z)

    feasible_set = family.build(**values)
    n = feasible_set.dim
    corner = feasible_set.maximise_linear(np.ones(n))
    for z in [np.zeros(n), np.ones(n), feasible_set.centre(), corner, 2 * corner, np.full(n, 1e6)]:
        assert np.all(np.isfinite(jacobian(jnp.asarray(z, jnp.float32))))


def test_jacobian_is_the_identity_inside() -> None:
    inside = np.zeros(2)
    for feasible_set in [
        Box([-1.0, -1.0], 1.0),
        Ball([0.0, 0.0], 1.0),
        WeightedL1Box([1.0, 2.0], 1.0, 1.0),
        PositivePowerBox([1.0, -2.0], 1.0, 1.0),
        Polytope([[1.0, 1.0]], 1.0, -1.0, 1.0),
    ]:
        np.testing.assert_array_equal(jax.jacrev(feasible_set.project)(jnp.asarray(inside)), np.eye(2))


def test_derivatives_reach_the_parameters() -> None:
    """d a / d budget of a weighted L1 set on its face: a_i = z_i - t w_i with w . a = budget, so w / ||w||^2."""
    weights, z = jnp.asarray([1.0, 2.0]), jnp.asarray([3.0, 3.0])

    def answer(budget: Array) -> Array:
        return WeightedL1Box(weights, budget, 10.0).project(z)

    np.testing.assert_allclose(jax.jacfwd(answer)(jnp.asarray(4.0)), np.array([1.0, 2.0]) / 5.0, rtol=1e-12)

    def touch(limit: Array) -> Array:
        return Polytope(weights[None], limit[None], -10.0, 10.0).project(z)

    np.testing.assert_allclose(jax.jacfwd(touch)(jnp.asarray(4.0)), np.array([1.0, 2.0]) / 5.0, rtol=1e-12)
