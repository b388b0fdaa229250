"""A value with the derivatives of another point: for corrections of rounding, which have none of their own."""

import jax
from jaxtyping import Array, Float


@jax.custom_jvp
def with_tangent_of(point: Float[Array, " n"], value: Float[Array, " n"]) -> Float[Array, " n"]:
    """`value` with the derivatives of `point`, which is not computed where no derivative is asked for.

    point + (value - point) would have them, too, but lose the value to rounding where the point is far off.
    """
    del point
    return value


@with_tangent_of.defjvp
def _(primals: tuple[Array, Array], tangents: tuple[Array, Array]) -> tuple[Array, Array]:
    return primals[1], tangents[0]
