"""One-dimensional duals solved exactly by their breakpoints: the quadratic and the fractional knapsack.

The dual of a projection on one budget row in a box is a scalar root of a piecewise linear, monotone function. Its
kinks are known in closed form, so the piece with the root is found by evaluating at all of them: no iteration, no
tolerance. Up to `DENSE` coordinates all pairs are compared at once (O(n^2) work that fuses into one kernel); above,
kinks are sorted and searched (O(n log n)).
"""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.lax import stop_gradient
from jaxtyping import Array, Bool, Float

DENSE = 16


def clamp(x: Float[Array, " n"], low: Float[Array, " n"], high: Float[Array, " n"]) -> Float[Array, " n"]:
    """min(max(x, low), high) whose derivative in x is 1 on the whole closed interval, ends included."""
    return jnp.where(x < low, low, jnp.where(x > high, high, x))


def spend(
    z: Float[Array, " n"],
    weights: Float[Array, " n"],
    low: Float[Array, " n"],
    high: Float[Array, " n"],
    price: Float[Array, ""],
) -> Float[Array, ""]:
    """sum_i w_i clamp(z_i - price w_i, low_i, high_i): falls as the price rises."""
    return jnp.sum(weights * clamp(z - price * weights, low, high))


def nearest_on_budget(
    z: Float[Array, " n"],
    weights: Float[Array, " n"],
    low: Float[Array, " n"],
    high: Float[Array, " n"],
    budget: Float[Array, ""],
    *,
    equality: bool,
) -> Float[Array, " n"]:
    """argmin ||a - z|| over {low <= a <= high, w . a = budget} (or <= budget), for weights >= 0.

    The answer is a(t) = clamp(z - t w, low, high) at the price t for which w . a(t) = budget; with an inequality
    t = max(t, 0). Derivatives: the set of unclamped coordinates is held fixed and one Newton step on the budget
    equation is taken at the root, which leaves the value and has the exact derivative in z, weights, bounds, budget.
    """
    frozen = stop_gradient((z, weights, low, high, budget))
    price, free, at_high = _price(*frozen)
    if equality:
        charged = jnp.asarray(True)
    else:
        charged = spend(*frozen[:4], jnp.zeros_like(price)) > frozen[4]
        price = jnp.where(charged, jnp.maximum(price, 0.0), 0.0)
    curvature = jnp.sum(jnp.where(free, frozen[1] ** 2, 0.0))
    unclamped = z - price * weights
    excess = jnp.sum(weights * jnp.where(free, unclamped, jnp.where(at_high, high, low))) - budget
    newton = jnp.where(charged & (curvature > 0), excess / jnp.where(curvature > 0, curvature, 1.0), 0.0)
    return jnp.where(
        charged,
        _within(jnp.where(free, unclamped - newton * weights, jnp.where(at_high, high, low)), low, high),
        clamp(z, low, high),
    )


def _within(x: Float[Array, " n"], low: Float[Array, " n"], high: Float[Array, " n"]) -> Float[Array, " n"]:
    """x, with rounding errors that leave the box taken off and no change of derivative."""
    return x + stop_gradient(jnp.minimum(jnp.maximum(x, low), high) - x)


def _price(
    z: Float[Array, " n"],
    weights: Float[Array, " n"],
    low: Float[Array, " n"],
    high: Float[Array, " n"],
    budget: Float[Array, ""],
) -> tuple[Float[Array, ""], Bool[Array, " n"], Bool[Array, " n"]]:
    """The root t of spend(t) = budget, with the coordinates that are free and that sit at `high` there.

    A coordinate leaves `high` at t = (z - high)/w and reaches `low` at t = (z - low)/w. Coordinates of weight zero
    do not depend on t: they count as free, and their kinks are put where they do no harm.
    """
    weighty = weights > 0
    divisor = jnp.where(weighty, weights, 1.0)
    leaves_high = jnp.where(weighty, (z - high) / divisor, 0.0)
    reaches_low = jnp.where(weighty, (z - low) / divisor, 0.0)
    kinks = jnp.concatenate([leaves_high, reaches_low])

    def spent(price: Float[Array, ""]) -> Float[Array, ""]:
        return spend(z, weights, low, high, price)

    search = _bracket_dense if z.shape[0] <= DENSE else _bracket_sorted
    start, end = search(spent, kinks, budget)
    middle = start + 0.5 * (end - start)
    free = jnp.where(weighty, (leaves_high <= middle) & (middle <= reaches_low), (low <= z) & (z <= high))
    at_high = jnp.where(weighty, middle < leaves_high, z > high)
    slope = jnp.sum(jnp.where(free, weights**2, 0.0))
    price = start + jnp.where(slope > 0, (spent(start) - budget) / jnp.where(slope > 0, slope, 1.0), 0.0)
    return jnp.clip(price, start, end), free, at_high


def _bracket_dense(
    spent: Callable[[Float[Array, ""]], Float[Array, ""]], kinks: Float[Array, " k"], budget: Float[Array, ""]
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """The kinks next to the root of a falling function, by evaluating it at all of them."""
    levels = jax.vmap(spent)(kinks)
    start = jnp.max(jnp.where(levels >= budget, kinks, jnp.min(kinks)))
    end = jnp.min(jnp.where(levels <= budget, kinks, jnp.max(kinks)))
    return start, jnp.maximum(start, end)


def _bracket_sorted(
    spent: Callable[[Float[Array, ""]], Float[Array, ""]], kinks: Float[Array, " k"], budget: Float[Array, ""]
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """The same by binary search over the sorted kinks."""
    kinks = jnp.sort(kinks)
    last = kinks.shape[0] - 1

    def halve(_: int, bracket: tuple[Array, Array]) -> tuple[Array, Array]:
        start, end = bracket
        middle = (start + end) // 2
        above = spent(kinks[middle]) >= budget
        return jnp.where(above, middle, start), jnp.where(above, end, middle)

    rounds = math.ceil(math.log2(last + 1)) + 1
    start, end = jax.lax.fori_loop(0, rounds, halve, (jnp.asarray(0), jnp.asarray(last)))
    return kinks[start], kinks[end]


def fill_by_worth(
    worth: Float[Array, " n"],
    weights: Float[Array, " n"],
    caps: Float[Array, " n"],
    budget: Float[Array, ""],
) -> Float[Array, " n"]:
    """The fractional knapsack: fill x_i up to cap_i in falling order of worth_i / w_i until w . x = budget.

    That maximises worth . x over {0 <= x <= caps, w . x <= budget} for worth, weights >= 0 (or, with unit weights and
    caps that sum to more than the budget, over w . x = budget for any worth). Ties go to the lowest index.
    """
    weighty = weights > 0
    ratio = jnp.where(weighty, worth / jnp.where(weighty, weights, 1.0), jnp.inf)
    loads = weights * caps
    if ratio.shape[0] <= DENSE:
        index = jnp.arange(ratio.shape[0])
        ahead = (ratio[None, :] > ratio[:, None]) | (
            (ratio[None, :] == ratio[:, None]) & (index[None, :] < index[:, None])
        )
        before = jnp.sum(jnp.where(ahead, loads[None, :], 0.0), axis=1)
    else:
        order = jnp.argsort(-ratio, stable=True)
        running = jnp.cumsum(loads[order])
        before = jnp.zeros_like(loads).at[order].set(running - loads[order])
    affordable = jnp.where(weighty, (budget - before) / jnp.where(weighty, weights, 1.0), caps)
    return jnp.clip(affordable, 0.0, caps)


def convex_exit(
    load: Callable[[Float[Array, ""]], Float[Array, ""]],
    kinks: Float[Array, " k"],
    budget: Float[Array, ""],
) -> Float[Array, ""]:
    """Largest t >= 0 with load(t) <= budget, for a convex piecewise linear load with load(0) <= budget.

    The last kink below the budget starts the piece that crosses it; its slope is taken in the piece's middle.
    """
    kinks = jnp.where(jnp.isfinite(kinks) & (kinks > 0), kinks, 0.0)
    start = jnp.max(jnp.where(jax.vmap(load)(kinks) <= budget, kinks, 0.0))
    end = jnp.min(jnp.where(kinks > start, kinks, jnp.inf))
    middle = jnp.where(jnp.isfinite(end), start + 0.5 * (end - start), 2.0 * start + 1.0)
    _, slope = jax.jvp(load, (middle,), (jnp.ones_like(middle),))
    room = jnp.maximum(budget - load(start), 0.0)
    return jnp.where(slope > 0, start + room / jnp.where(slope > 0, slope, 1.0), jnp.inf)
