"""How far a ray goes before a convex, piecewise linear load uses up its budget, exactly by the load's kinks."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.lax import stop_gradient
from jaxtyping import Array, Float


def convex_exit(
    load: Callable[[Float[Array, ""]], Float[Array, ""]],
    kinks: Float[Array, " k"],
    before: Float[Array, " k"],
    after: Float[Array, " k"],
    constant: Float[Array, ""],
    budget: Float[Array, ""],
) -> Float[Array, ""]:
    """Largest t >= 0 with load(t) <= budget, for a convex piecewise linear load with load(0) <= budget.

    load(t) is the constant and a sum of terms that are zero at their kink, with slope `before` and `after` it. The last
    kink below the budget starts the piece that crosses it; its slope is taken in the piece's middle. Rounding may take
    that kink for one above the budget, and the piece before it may be level: so the lines of later pieces, all of which
    are below the load, end the way as well.

    Derivatives, of any order, are those of the line of the piece that crosses, taken in the piece's middle m: of
    m + (budget - load(m)) / slope. At its ends, the kinks, a term's slope is that of rounding, and programs may round
    it differently in different places.
    """
    kinks, before, after, constant, most = map(stop_gradient, (kinks, before, after, constant, budget))
    ahead = jnp.where(jnp.isfinite(kinks) & (kinks > 0), kinks, 0.0)
    start = jnp.max(jnp.where(stop_gradient(jax.vmap(load)(ahead)) <= most, ahead, 0.0))
    slope = stop_gradient(_in_the_middle(load, ahead, start, 2.0 * start + 1.0)[1])
    room = jnp.maximum(most - stop_gradient(load(start)), 0.0)
    crossing = jnp.where(slope > 0, start + room / jnp.where(slope > 0, slope, 1.0), jnp.inf)

    eps = jnp.finfo(most.dtype).eps
    slopes = jnp.where(kinks[None, :] <= ahead[:, None], after[None, :], before[None, :])
    rises = jnp.sum(slopes, axis=1)
    later = (ahead > start) & (rises > 16 * eps * jnp.sum(jnp.abs(slopes), axis=1))
    meets = jnp.where(later, (most - constant + slopes @ kinks) / jnp.where(later, rises, 1.0), jnp.inf)
    line = jnp.argmin(meets)
    earliest = jnp.maximum(meets[line], start)
    sooner = earliest < (1.0 - 64 * eps) * crossing  # else the same but for rounding
    time = jnp.where(sooner, earliest, crossing)

    begin = jnp.where(sooner, ahead[line], start)
    beyond = jnp.where(jnp.isfinite(time) & (time > (1.0 + 64 * eps) * begin), 2.0 * time - begin, 2.0 * begin)
    value, slope = _in_the_middle(load, ahead, begin, jnp.where(beyond > 0, beyond, 1.0))
    # Of a load that hardly grows squares underflow, and what limits the way is something else.
    grows = jnp.isfinite(time) & (slope > jnp.finfo(most.dtype).tiny ** 0.5)
    moved = jnp.where(grows, (budget - value) / jnp.where(grows, slope, 1.0), 0.0)
    return time + jnp.where(jnp.isfinite(moved), moved - stop_gradient(moved), 0.0)


def _in_the_middle(
    load: Callable[[Float[Array, ""]], Float[Array, ""]],
    ahead: Float[Array, " k"],
    begin: Float[Array, ""],
    beyond: Float[Array, ""],
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """The load and its slope between a kink and the next; after the last kink, at the point `beyond`."""
    end = jnp.min(jnp.where(ahead > begin, ahead, jnp.inf))
    middle = jnp.where(jnp.isfinite(end), begin + 0.5 * (end - begin), beyond)
    return jax.jvp(load, (middle,), (jnp.ones_like(middle),))


def convex_chord(
    kinks: Float[Array, " k"],
    before: Float[Array, " k"],
    after: Float[Array, " k"],
    constant: Float[Array, ""],
    budget: Float[Array, ""],
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """How far back and ahead load(t) <= budget, for the load of `convex_exit`, to the rounding of its sums.

    A convex load is the largest of the lines of its pieces: the first line that meets the budget, either way, ends the
    way. One pass finds both ends, without the care that `convex_exit` takes to be exact where slopes nearly cancel.
    """
    slopes = jnp.where(kinks[None, :] <= kinks[:, None], after[None, :], before[None, :])
    flat = 16 * jnp.finfo(budget.dtype).eps * jnp.sum(jnp.maximum(jnp.abs(before), jnp.abs(after)))
    rise, first = jnp.sum(slopes, axis=1), jnp.sum(before)
    meets = (budget - constant + jnp.sum(slopes * kinks[None, :], axis=1)) / jnp.where(jnp.abs(rise) > flat, rise, 1.0)
    start = (budget - constant + jnp.sum(before * kinks)) / jnp.where(first < -flat, first, 1.0)
    back = jnp.min(jnp.where(rise < -flat, -meets, jnp.where(first < -flat, -start, jnp.inf)))
    ahead = jnp.min(jnp.where(rise > flat, meets, jnp.inf))
    return jnp.maximum(back, 0.0), jnp.maximum(ahead, 0.0)
