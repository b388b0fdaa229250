"""Linear systems with a matrix that is known by its products only."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


def conjugate_gradient(
    product: Callable[[Float[Array, " p"]], Float[Array, " p"]], right: Float[Array, " p"], iterations: int
) -> Float[Array, " p"]:
    """x with A x = right for a positive definite A, by so many steps from zero: one product each.

    Exact after as many steps as A has distinct eigenvalues. Once the residual is zero x stays.
    """

    def step(_: Array, now: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        x, residual, direction = now
        image = product(direction)
        size, curvature = residual @ residual, direction @ image
        length = _ratio(size, curvature)
        left = residual - length * image
        return x + length * direction, left, left + _ratio(left @ left, size) * direction

    return jax.lax.fori_loop(0, iterations, step, (jnp.zeros_like(right), right, right))[0]


def _ratio(above: Float[Array, ""], below: Float[Array, ""]) -> Float[Array, ""]:
    return jnp.where(below > 0, above / jnp.where(below > 0, below, 1.0), 0.0)
