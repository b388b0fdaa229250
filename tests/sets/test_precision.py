"""Every product of a set is in full precision: recent GPUs round factors of float32 to 10 bits unless told not to."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import pytest

from feasible.algorithms.maps import Hull, radial
from feasible.sets import ActionSet, Allocation, Ball, Box, EllipsoidBox, Polytope

ROWS = jnp.array([[1.0, 2.0, 0.5], [-1.0, 0.3, 1.0]])
QUADRATIC = jnp.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.2], [0.0, 0.2, 0.5]])


def polytope(x: jax.Array) -> ActionSet:
    return Polytope(ROWS, x[:2] + 2.0, low=jnp.full(3, -1.0), high=jnp.full(3, 1.0))


def ellipsoid(x: jax.Array) -> ActionSet:
    return EllipsoidBox(QUADRATIC, 1.0 + x[0], 1.0)


def intersection(x: jax.Array) -> ActionSet:
    return EllipsoidBox(QUADRATIC, 1.0 + x[0], 1.0) & Ball(jnp.full(3, 0.1), 0.8) & Box(-0.9 + 0 * x, 0.9 + 0 * x)


def projected(region: Callable[[jax.Array], ActionSet], x: jax.Array) -> jax.Array:
    return region(x).project(3.0 * x)


def mapped(region: Callable[[jax.Array], ActionSet], x: jax.Array) -> jax.Array:
    hull = Hull.of(region(x))
    return hull.action(radial(region(x), hull, x[:2]))


CASES = {
    "polytope": (projected, polytope),
    "ellipsoid": (projected, ellipsoid),
    "intersection": (projected, intersection),
    "map into an allocation": (mapped, lambda x: Allocation(1.0 + x[0], jnp.zeros(3), jnp.ones(3))),
}


@pytest.mark.parametrize("name", CASES)
def test_products_and_their_derivatives_are_in_full_precision(name: str) -> None:
    question, region = CASES[name]

    def asked(x: jax.Array) -> tuple[jax.Array, jax.Array]:
        return question(region, x), jax.jacobian(lambda x: question(region, x))(x)

    text = jax.jit(asked).lower(jnp.array([0.1, 0.2, 0.3])).as_text()
    products = [line for line in text.splitlines() if "stablehlo.dot_general" in line]
    assert products
    assert [line for line in products if "precision = [HIGHEST, HIGHEST]" not in line] == []
