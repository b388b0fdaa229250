"""When a quadratic that grows along a ray uses up its room: the exit from ellipsoids and cones."""

import jax.numpy as jnp
from jaxtyping import Array, Float


def quadratic_exit(bend: Float[Array, ""], lean: Float[Array, ""], room: Float[Array, ""]) -> Float[Array, ""]:
    """The first t >= 0 with bend t^2 + 2 lean t = room, for room >= 0; infinite if neither lean nor bend is positive.

    Of the root's two forms the one without cancellation. What is not taken has no part in derivatives.
    """
    square = lean**2 + bend * room
    root = jnp.where(square > 0, jnp.sqrt(jnp.where(square > 0, square, 1.0)), 0.0)
    against, curved = lean > 0, bend > 0
    near = room / jnp.where(against, lean + root, 1.0)
    far = (root - lean) / jnp.where(curved & ~against, bend, 1.0)
    return jnp.where(against, near, jnp.where(curved, far, jnp.inf))
