"""Jacobians of projections and best actions: exact by finite differences, forward equals reverse, finite everywhere."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from feasible.sets import ActionSet, Ball, Box, Polytope, PositivePowerBox, WeightedL1Box, WeightedL1EllipsoidBox
from tests.one_by_one import one_by_one
from tests.sets.cases import at_points, built, case, each_family_in_float32
from tests.sets.cases import each_kernel as each
from tests.sets.families import Family

COUNT = 40


@at_points
def linearised(feasible_set: ActionSet, z: Array) -> tuple[Array, Array, Array]:
    """Projections of the points with their Jacobians, forward and reverse, all of one linearisation."""
    a, slope = jax.linearize(feasible_set.project, z)
    eye = jnp.eye(z.shape[0], dtype=z.dtype)
    back = jax.linear_transpose(slope, z)
    return a, jax.vmap(slope, out_axes=1)(eye), jax.vmap(lambda row: back(row)[0])(eye)


@functools.cache
def jacobians(family: Family) -> dict[str, np.ndarray]:
    """At random points, beside central differences with two steps."""
    c, rng, n = case(family, jnp.float64), np.random.default_rng(11), family.description.dim
    sets = jax.tree.map(lambda leaf: leaf[:COUNT], c.sets)
    scale = c.scale[:COUNT, None]
    z = c.found["centre"][:COUNT] + rng.normal(size=(COUNT, n)) * rng.choice([0.3, 2], size=(COUNT, 1)) * scale
    steps = np.array([1e-5, 3e-5])[None, :] * scale
    shifts = steps[:, :, None, None] * np.eye(n)
    points = np.concatenate([(z[:, None, None] + s).reshape(COUNT, 2 * n, n) for s in (shifts, -shifts)], axis=1)
    a, forward, reverse = linearised(sets, np.concatenate([z[:, None], points], axis=1))
    ahead, behind = np.moveaxis(np.asarray(a)[:, 1:].reshape(COUNT, 2, 2, n, n), 1, 0)
    fine, coarse = np.moveaxis(np.swapaxes(ahead - behind, 2, 3) / (2.0 * steps[:, :, None, None]), 1, 0)
    return {"forward": np.asarray(forward)[:, 0], "reverse": np.asarray(reverse)[:, 0], "fine": fine, "coarse": coarse}


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


@each_family_in_float32
def test_jacobian_is_finite_at_kinks(family: Family) -> None:
    """In float32, at the origin, at ties, at points of the set, on its boundary, and far away."""
    c, n = case(family, jnp.float64), family.description.dim
    few = {name: value[:COUNT] for name, value in c.values.items()}
    sets, _, _ = built(family, few, jnp.float32)
    corner, centre = c.found["best"][:COUNT], c.found["centre"][:COUNT]
    places = [np.zeros((COUNT, n)), np.ones((COUNT, n)), centre, corner, 2 * corner, np.full((COUNT, n), 1e6)]
    _, forward, reverse = linearised(sets, np.stack(places, axis=1).astype(np.float32))
    assert np.all(np.isfinite(np.asarray(forward)))
    assert np.all(np.isfinite(np.asarray(reverse)))


def test_jacobian_is_the_identity_inside() -> None:
    inside = np.zeros(2)
    for feasible_set in [
        Box([-1.0, -1.0], 1.0),
        Ball([0.0, 0.0], 1.0),
        WeightedL1Box([1.0, 2.0], 1.0, 1.0),
        PositivePowerBox([1.0, -2.0], 1.0, 1.0),
        Polytope([[1.0, 1.0]], 1.0, -1.0, 1.0),
    ]:
        np.testing.assert_array_equal(jax.jit(jax.jacrev(feasible_set.project))(inside), np.eye(2))


def test_derivatives_reach_the_parameters() -> None:
    """d a / d budget of a weighted L1 set on its face: a_i = z_i - t w_i with w . a = budget, so w / ||w||^2."""
    weights, z = np.array([1.0, 2.0]), np.array([3.0, 3.0])

    def answer(budget: Array) -> Array:
        return WeightedL1Box(weights, budget, 10.0).project(z)

    np.testing.assert_allclose(jax.jit(jax.jacfwd(answer))(4.0), np.array([1.0, 2.0]) / 5.0, rtol=1e-12)

    def touch(limit: Array) -> Array:
        return Polytope(weights[None], limit[None], -10.0, 10.0).project(z)

    np.testing.assert_allclose(jax.jit(jax.jacfwd(touch))(4.0), np.array([1.0, 2.0]) / 5.0, rtol=1e-12)


def test_the_best_action_of_a_curved_set_moves_with_its_data() -> None:
    """In the direction, weights, budget, heats, level and bound; one coordinate heats nothing, as in a knapsack."""
    rng, n = np.random.default_rng(1), 4
    data = rng.uniform(0.2, 2.0, (COUNT, 2 * n + 2)) * np.r_[np.ones(2 * n), 1.0, 0.5]
    g, ways = rng.normal(size=(COUNT, n)), rng.normal(size=(COUNT, 2 * n + 2))

    def best(data: Array, g: Array) -> Array:
        weights, heats, (budget, level) = data[:n], data[n : 2 * n].at[-1].set(0.0), data[2 * n :]
        return WeightedL1EllipsoidBox(weights, budget, heats, level, 0.4 * data[n : 2 * n]).maximise_linear(g)

    def along(data: Array, g: Array, way: Array) -> tuple[Array, Array]:
        return jax.jvp(best, (data, g), (way, way[:n]))

    moved = jax.jit(one_by_one(along))
    slopes = np.asarray(moved(data, g, ways)[1])

    def at(step: float) -> np.ndarray:
        return np.asarray(moved(data + step * ways, g + step * ways[:, :n], ways)[0])

    near, far = ((at(step) - at(-step)) / (2 * step) for step in (1e-6, 3e-6))
    smooth = np.max(np.abs(near - far), axis=1) < 1e-5
    assert np.mean(smooth) > 0.8
    assert np.abs(slopes).max() > 0.5
    np.testing.assert_allclose(slopes[smooth], near[smooth], atol=1e-6)
