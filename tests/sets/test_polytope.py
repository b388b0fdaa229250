"""Polytopes whose values are known: vertices, linear maximisation over them, and the exact diameter."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import linprog

from feasible.envs.network import rate_polytope
from feasible.envs.network.topology import NSFNET
from feasible.sets import Polytope


@pytest.fixture(scope="module")
def network() -> Polytope:
    rates = rate_polytope(NSFNET)
    return Polytope(rates.A, rates.b, rates.low, rates.high)


def test_the_network_has_44_vertices(network: Polytope) -> None:
    assert network.vertices is not None
    assert network.vertices.shape == (44, 9)


def test_linear_maximisation_over_vertices_equals_highs(network: Polytope) -> None:
    g = np.random.default_rng(0).normal(size=(200, 9))
    best = np.asarray(jax.jit(jax.vmap(network.maximise_linear))(jnp.asarray(g)))
    for k in range(len(g)):
        found = linprog(-g[k], np.asarray(network.A), np.asarray(network.b), bounds=(0.0, 50.0))
        np.testing.assert_allclose(g[k] @ best[k], -found.fun, rtol=1e-9)
    np.testing.assert_array_equal(network.maximise_linear(np.zeros(9)), network.centre())


def test_vertices_and_active_sets_agree(network: Polytope) -> None:
    """The same polytope built inside jit has no vertices and climbs instead."""
    g = jnp.asarray(np.random.default_rng(1).normal(size=(200, 9)))

    def climbed(b: jax.Array, g: jax.Array) -> jax.Array:
        unknown = Polytope(network.A, b, network.low, network.high)
        assert unknown.vertices is None
        return unknown.support(g)

    climbing = jax.jit(jax.vmap(climbed, in_axes=(None, 0)))(network.b, g)
    np.testing.assert_allclose(climbing, jax.vmap(network.support)(g), rtol=1e-9)


def test_the_diameter_of_a_simplex_is_its_longest_edge() -> None:
    simplex = Polytope([[1.0, 1.0, 1.0]], 1.0, 0.0, 1.0)
    corners = [np.zeros(3), *np.eye(3)]
    longest = max(float(np.linalg.norm(p - q)) for p, q in itertools.combinations(corners, 2))
    np.testing.assert_allclose(simplex.diameter(), longest, rtol=1e-12)


def test_equalities_are_eliminated_from_the_vertices() -> None:
    triangle = Polytope(np.zeros((0, 3)), np.zeros(0), 0.0, 1.0, [[1.0, 1.0, 1.0]], [1.0])
    assert triangle.vertices is not None
    np.testing.assert_allclose(np.sort(np.asarray(triangle.vertices), axis=0), np.sort(np.eye(3), axis=0), atol=1e-12)


def test_the_rounding_of_an_equality_does_not_cost_the_vertices() -> None:
    """The unit cube cut by a_1 + a_2 + a_3 = total is a triangle near its corners and a hexagon in the middle."""
    for total in np.random.default_rng(0).uniform(0.2, 2.8, size=30):
        cut = Polytope(np.zeros((0, 3)), np.zeros(0), 0.0, 1.0, [[1.0, 1.0, 1.0]], [total])
        assert cut.vertices is not None
        assert len(cut.vertices) == (6 if 1 < total < 2 else 3)
        np.testing.assert_allclose(np.sum(np.asarray(cut.vertices), axis=1), total, rtol=1e-12)
