"""A bound method of a set is a function to JAX: under jit, vmap, grad and jacobian, and as an argument."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array

from feasible.sets import ActionSet, Ball, Box, IntegerAllocation

BALL = Ball([0.5, 0.0], 1.5)
BOX = Box([-1.0, 0.0], [1.0, 2.0])
Z = jnp.asarray([3.0, 4.0])


@pytest.mark.parametrize("kind", [Ball, Box, IntegerAllocation])
def test_every_method_can_be_traced(kind: type[ActionSet]) -> None:
    """And gives an answer of the shape that it has outside."""
    region = {Ball: BALL, Box: BOX}.get(kind) or IntegerAllocation(3, [0, 0], [2, 2])
    inside, key = region.centre(), jax.random.key(0)
    of_a_point = "residuals violation contains accepts project maximise_linear support execute integrality coupling"
    questions = dict.fromkeys(of_a_point.split(), (Z,))
    questions |= dict.fromkeys(["exit_distance", "frank_wolfe_gap"], (inside, Z))
    questions |= dict.fromkeys(["sample", "direction"], (key,)) | dict.fromkeys(["centre", "diameter", "slopes"], ())
    for name, asked in questions.items():
        method = getattr(region, name)
        assert method == getattr(region, name)
        assert hash(method) == hash(getattr(region, name))
        assert method.__name__ == name
        traced, plain = (
            jax.eval_shape(jax.jit(method), *asked),
            jax.eval_shape(lambda *q, call=method: call(*q), *asked),
        )
        assert (traced.shape, traced.dtype) == (plain.shape, plain.dtype)


def test_every_transformation_takes_a_method() -> None:
    """Of the ball: its projection and its support function max <g, a> = g . centre + radius ||g||, in closed form."""
    offset = Z - jnp.asarray([0.5, 0.0])
    heading = offset / jnp.linalg.norm(offset)
    nearest = jnp.asarray([0.5, 0.0]) + 1.5 * heading
    slope = 1.5 / jnp.linalg.norm(offset) * (jnp.eye(2) - jnp.outer(heading, heading))
    gradient = jnp.asarray([0.5, 0.0]) + 1.5 * Z / jnp.linalg.norm(Z)
    np.testing.assert_allclose(jax.jit(BALL.project)(Z), nearest, rtol=1e-12)
    np.testing.assert_allclose(jax.jit(jax.vmap(BALL.project))(Z[None])[0], nearest, rtol=1e-12)
    np.testing.assert_allclose(jax.vmap(jax.jit(BALL.project))(Z[None])[0], nearest, rtol=1e-12)
    np.testing.assert_allclose(jax.jit(jax.jacobian(BALL.project))(Z), slope, atol=1e-12)
    np.testing.assert_allclose(jax.jacfwd(jax.jit(BALL.project))(Z), slope, atol=1e-12)
    np.testing.assert_allclose(jax.jit(jax.grad(BALL.support))(Z), gradient, rtol=1e-12)


def test_methods_of_a_traced_set_can_be_compiled() -> None:
    @jax.jit
    def twice(region: Box, z: Array) -> Array:
        return jax.jit(region.project)(jax.jit(region.project)(z) + 1.0)

    np.testing.assert_array_equal(twice(BOX, Z), [1.0, 2.0])
    np.testing.assert_array_equal(twice(Box([-1.0, 0.0], [5.0, 5.0]), Z), [4.0, 5.0])


def test_a_method_is_an_argument_of_its_set_s_arrays() -> None:
    moved = jax.tree.map(lambda leaf: leaf + 1.0, BOX.project)
    np.testing.assert_array_equal(jax.jit(lambda method, z: method(z))(moved, Z), [2.0, 3.0])
    assert moved != BOX.project
