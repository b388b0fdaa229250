"""Derivatives of exit distances, from points off the centre, in programs that XLA compiles.

They are those of finite differences; and for directions of any length t(o, s d) = t(o, d) / s.
"""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array

from feasible.sets import (
    ActionSet,
    Ball,
    Box,
    Cone,
    ConePolytope,
    EllipsoidBox,
    Polytope,
    PositivePowerBox,
    WeightedL1Box,
    WeightedL1EllipsoidBox,
)

WEIGHTS = [2.0, 0.5, 1.0]
_BOX = Polytope([[1.0, 0.0, 0.0]], [0.9], -1.0, 1.0)
SETS: dict[str, ActionSet] = {
    "box": Box([-1.0, -2.0, -0.5], 1.0),
    "ball": Ball([0.0, 0.5, 0.0], 1.0),
    "power": WeightedL1Box(WEIGHTS, 1.0, 1.0),
    "positive_power": PositivePowerBox(WEIGHTS, 1.0, 1.0),
    "nothing_to_spend": PositivePowerBox(WEIGHTS, 0.0, 1.0),
    "ellipsoid": EllipsoidBox([[2.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 0.0]], 1.0, 1.0),
    "no_heat": EllipsoidBox([0.0, 0.0, 0.0], 0.1, 1.0),
    "power_and_heat": WeightedL1EllipsoidBox(WEIGHTS, 1.0, [1.0, 1e-6, 0.0], 0.1, 1.0),
    "polytope": Polytope([[1.0, 1.0, 1.0], [1.0, -1.0, 0.0]], [1.0, 0.5], -1.0, 1.0),
    "cone": ConePolytope(_BOX, [Cone(np.eye(3), np.zeros(3), np.zeros(3), 1.2)]),
    "leaning_cone": ConePolytope(_BOX, [Cone(0.5 * np.eye(3), np.zeros(3), np.array([0.6, 0.0, 0.0]), 0.3)]),
}


Exits = Callable[[Array, Array, Array], tuple[Array, tuple[Array, Array]]]


def _half_way(region: ActionSet, line: Array) -> Array:
    """A point between the centre and the boundary."""
    return region.centre() + 0.5 * region.exit_distance(region.centre(), line) * line


def _exits(region: ActionSet) -> Exits:
    """When rays with a speed leave the set, and the derivatives by their beginning and by their direction."""

    @jax.jit
    @jax.vmap
    def exits(line: Array, other: Array, speed: Array) -> tuple[Array, tuple[Array, Array]]:
        return jax.value_and_grad(region.exit_distance, argnums=(0, 1))(_half_way(region, other), speed * line)

    return exits


@pytest.mark.parametrize("name", SETS)
def test_derivatives_are_those_of_finite_differences(name: str) -> None:
    region, rays = SETS[name], np.random.default_rng(1).normal(size=(2, 200, 3))
    lines, others = map(jnp.asarray, rays)
    _, slopes = _exits(region)(lines, others, jnp.ones(200))
    exits = jax.jit(jax.vmap(region.exit_distance))
    origins = jax.vmap(functools.partial(_half_way, region))(others)
    for entry in range(3):
        along = jnp.zeros_like(lines).at[:, entry].set(1e-6)
        for slope, one, two, three in (
            (slopes[0], exits(origins - along, lines), exits(origins, lines), exits(origins + along, lines)),
            (slopes[1], exits(origins, lines - along), exits(origins, lines), exits(origins, lines + along)),
        ):
            smooth = np.abs(three - 2 * two + one) < 1e-9 * (1 + np.abs(two) ** 3)  # no kink in between
            assert np.mean(smooth) > 0.8
            np.testing.assert_allclose(slope[smooth, entry], ((three - one) / 2e-6)[smooth], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", SETS)
def test_second_derivatives_are_those_of_the_first_ones(name: str) -> None:
    """Densities on the surface have the first ones in them, and are derived."""
    region, rays = SETS[name], np.random.default_rng(2).normal(size=(2, 200, 3))
    lines, others = map(jnp.asarray, rays)

    @jax.jit
    @jax.vmap
    def bends(line: Array, other: Array) -> Array:
        return jax.hessian(region.exit_distance, argnums=1)(_half_way(region, other), line)

    def slopes(at: Array) -> Array:
        return first(at, others, jnp.ones(200))[1][1]

    first, second = _exits(region), bends(lines, others)
    for entry in range(3):
        along = jnp.zeros_like(lines).at[:, entry].set(1e-6)
        one, two, three = (slopes(at) for at in (lines - along, lines, lines + along))
        smooth = np.all(np.abs(three - 2 * two + one) < 1e-8 * (1 + np.abs(two) ** 3), axis=1)
        assert np.mean(smooth) > 0.8
        np.testing.assert_allclose(second[smooth, entry], ((three - one) / 2e-6)[smooth], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", SETS)
def test_derivatives_along_slow_and_fast_directions_are_finite_and_right(name: str) -> None:
    exits = _exits(jax.tree.map(lambda leaf: leaf.astype(jnp.float32), SETS[name]))
    lines, others = jnp.asarray(np.random.default_rng(0).normal(size=(2, 200, 3)), jnp.float32)
    plain, (by_origin, by_line) = exits(lines, others, jnp.ones(200, jnp.float32))
    for speed in (1e-9, 1e-12, 1e9):
        time, (slow_by_origin, slow_by_line) = exits(lines, others, jnp.full(200, speed, jnp.float32))
        np.testing.assert_allclose(speed * time, plain, rtol=1e-4)
        np.testing.assert_allclose(speed * slow_by_origin, by_origin, rtol=1e-2, atol=1e-3)
        np.testing.assert_allclose(speed * (speed * slow_by_line), by_line, rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("diagonal", [True, False])
def test_an_ellipsoid_s_exit_off_the_centre_has_its_derivative_in_the_matrix(diagonal: bool) -> None:
    given = jnp.array([2.0, 1.0, 0.5]) if diagonal else jnp.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.1], [0.0, 0.1, 0.5]])
    origin, line = jnp.array([0.2, -0.3, 0.1]), jnp.array([1.0, 0.4, -0.2])

    @jax.jit
    def exit_of(Q: Array) -> Array:
        return EllipsoidBox(Q, 1.0, 10.0).exit_distance(origin, line)

    change = (
        jnp.array([0.3, -0.2, 0.1]) if diagonal else jnp.array([[0.3, 0.1, 0.0], [0.1, -0.2, 0.2], [0.0, 0.2, 0.1]])
    )
    slope = jnp.vdot(jax.grad(exit_of)(given), change)
    difference = (exit_of(given + 1e-6 * change) - exit_of(given - 1e-6 * change)) / 2e-6
    np.testing.assert_allclose(slope, difference, rtol=1e-6)
