"""A value with the derivatives of another point."""

import jax
import jax.numpy as jnp
import numpy as np

from feasible.solve.tangent import with_tangent_of


def test_a_far_point_does_not_take_the_value_along() -> None:
    """In float32 1e9 has no neighbour within 64: the value stays, with the derivatives of 1e9 x^3."""

    def corrected(x: jax.Array) -> jax.Array:
        return with_tangent_of(1e9 * x**3, 0.1 * x)

    x = jnp.asarray([1.0, -2.0, 3.0], jnp.float32)
    np.testing.assert_array_equal(corrected(x), np.float32(0.1) * np.asarray(x))
    for jacobian in (jax.jacfwd, jax.jacrev):
        np.testing.assert_allclose(jacobian(corrected)(x), np.diag(3e9 * np.asarray(x) ** 2), rtol=1e-6)
