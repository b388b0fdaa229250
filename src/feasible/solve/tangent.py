"""A value with the derivatives of another point: for corrections of rounding, which have none of their own."""

from jax.lax import stop_gradient
from jaxtyping import Array, Float


def with_tangent_of(point: Float[Array, " n"], value: Float[Array, " n"]) -> Float[Array, " n"]:
    """`value`, to the last bit, with the derivatives of `point`.

    point + (value - point) would have them, too, but lose the value to rounding where the point is far off.
    """
    return stop_gradient(value) + (point - stop_gradient(point))
