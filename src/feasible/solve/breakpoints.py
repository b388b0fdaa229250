"""One-dimensional duals solved exactly by their breakpoints: the quadratic and the fractional knapsack.

The dual of a projection on one budget row in a box is a scalar root of a piecewise linear, monotone function. Its
kinks are known in closed form, so the piece with the root is found by evaluating at all of them: no iteration, no
tolerance. Up to `DENSE` coordinates all kinks are tried at once, O(n^2); above, they are sorted and searched,
O(n log n).

One formula serves two layouts. XLA's GPU compiler ends a fusion at every reduction and sends what it has through
memory; written out coordinate by coordinate, the whole answer is one pass over the inputs, a few copies' time. XLA's
CPU compiler computes such a program many times over (100 times slower), and is best given whole vectors.
"""

import functools
import math
import operator
from collections.abc import Callable, Iterable

import jax
import jax.numpy as jnp
from jax.lax import stop_gradient
from jaxtyping import Array, Bool, Float

DENSE = 16
UNROLLED = 8

# A vector as the blocks that one formula runs over: its coordinates, or itself as the only one.
Blocks = list[Array]
Spent = Callable[[Float[Array, ""]], Float[Array, ""]]
OnBudget = Callable[..., Float[Array, " n"]]


def whole(x: Float[Array, " n"]) -> Blocks:
    return [x]


def coordinates(x: Float[Array, " n"]) -> Blocks:
    return [x[i] for i in range(x.shape[0])]


def joined(parts: Blocks) -> Float[Array, " n"]:
    return jnp.stack(parts) if parts[0].ndim == 0 else parts[0]


def summed(parts: Iterable[Array]) -> Float[Array, ""]:
    return functools.reduce(operator.add, [part if part.ndim == 0 else jnp.sum(part) for part in parts])


def clamp(x: Float[Array, "..."], low: Float[Array, "..."], high: Float[Array, "..."]) -> Float[Array, "..."]:
    """min(max(x, low), high) whose derivative in x is 1 on the whole closed interval, ends included."""
    return jnp.where(x < low, low, jnp.where(x > high, high, x))


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

    The answer is a(t) = clamp(z - t w, low, high) at the price t for which w . a(t) = budget; with an inequality the
    price is zero where the budget does not bind. What rounding leaves of the budget is then spread over the room that
    the weighted coordinates have, so that it holds for any input. The last step, from the start of the linear piece to
    its root, is a Newton step with the set of unclamped coordinates held fixed: it has the exact derivative in z,
    weights, bounds and budget.
    """
    inputs = (z, weights, low, high, budget)
    vectorised = functools.partial(_nearest, split=whole, equality=equality)
    if z.shape[0] > UNROLLED:
        return vectorised(*inputs)
    written_out = functools.partial(_nearest, split=coordinates, equality=equality)
    return jax.lax.platform_dependent(*inputs, default=vectorised, cuda=written_out)


@functools.partial(jax.jit, static_argnames=("split", "equality"), inline=True)
def _nearest(
    z: Float[Array, " n"],
    weights: Float[Array, " n"],
    low: Float[Array, " n"],
    high: Float[Array, " n"],
    budget: Float[Array, ""],
    *,
    split: Callable[[Float[Array, " n"]], Blocks],
    equality: bool,
) -> Float[Array, " n"]:
    live = Columns(*map(split, (z, weights, low, high)))
    fixed = Columns(*stop_gradient((live.z, live.weights, live.low, live.high)))
    limit = stop_gradient(budget)
    price, free, at_high = fixed.piece(limit)
    charged = jnp.asarray(True) if equality else fixed.spent(jnp.zeros_like(price)) > limit
    curvature = summed(jnp.where(f, w**2, 0.0) for f, w in zip(free, live.weights, strict=True))

    held = [jnp.where(top, hi, lo) for top, hi, lo in zip(at_high, live.high, live.low, strict=True)]
    moving = [x - price * w for x, w in zip(live.z, live.weights, strict=True)]
    placed = [jnp.where(f, m, k) for f, m, k in zip(free, moving, held, strict=True)]
    excess = summed(w * x for w, x in zip(live.weights, placed, strict=True)) - budget
    newton = jnp.where(charged & (curvature > 0), excess / jnp.where(curvature > 0, curvature, 1.0), 0.0)
    a = [
        jnp.where(charged, jnp.where(f, m - newton * w, k), clamp(x, lo, hi))
        for f, m, w, k, x, lo, hi in zip(free, moving, live.weights, held, live.z, live.low, live.high, strict=True)
    ]
    exact = stop_gradient(a) if equality else fixed.refined(stop_gradient(a), free, limit)
    exact = fixed.balanced(exact, limit, both_ways=equality)
    return joined([x + (y - stop_gradient(x)) for x, y in zip(a, exact, strict=True)])


# `nearest_on_budget` for the body of a solver, whose passes are many on any device: one layout is traced, not two,
# which saves most of the time that tracing takes.
nearest_on_budget_in_a_loop: OnBudget = functools.partial(_nearest, split=whole)


class Columns:
    """The data of a budget problem, in blocks. Its methods need no derivative: they find what is held fixed."""

    def __init__(self, z: Blocks, weights: Blocks, low: Blocks, high: Blocks):
        self.z, self.weights, self.low, self.high = z, weights, low, high

    def spent(self, price: Float[Array, ""]) -> Float[Array, ""]:
        """sum_i w_i clamp(z_i - price w_i, low_i, high_i): falls as the price rises."""
        return summed(
            w * jnp.minimum(jnp.maximum(x - price * w, lo), hi)
            for x, w, lo, hi in zip(self.z, self.weights, self.low, self.high, strict=True)
        )

    def piece(
        self, budget: Float[Array, ""]
    ) -> tuple[Float[Array, ""], list[Bool[Array, "..."]], list[Bool[Array, "..."]]]:
        """Where the piece with the root of spent(t) = budget begins, and which coordinates are free or at `high` in it.

        A coordinate leaves `high` at t = (z - high)/w and reaches `low` at t = (z - low)/w. Coordinates of weight zero
        do not depend on t: they count as free, and their kinks are put where they do no harm.
        """
        weighty = [w > 0 for w in self.weights]
        inverse = [
            jnp.where(some, 1.0 / jnp.where(some, w, 1.0), 0.0) for some, w in zip(weighty, self.weights, strict=True)
        ]
        leaves_high = [(x - hi) * i for x, hi, i in zip(self.z, self.high, inverse, strict=True)]
        reaches_low = [(x - lo) * i for x, lo, i in zip(self.z, self.low, inverse, strict=True)]

        def spent_at(kink: Float[Array, ""]) -> Float[Array, ""]:
            """`spent` at a kink, where the coordinate that it belongs to is at its bound exactly."""
            return summed(
                w * jnp.where(kink <= top, hi, jnp.where(kink >= bottom, lo, x - kink * w))
                for x, w, lo, hi, top, bottom in zip(
                    self.z, self.weights, self.low, self.high, leaves_high, reaches_low, strict=True
                )
            )

        start, end = bracket(spent_at, leaves_high + reaches_low, budget)
        middle = start + 0.5 * (end - start)
        # "Not outside" instead of "inside": a NaN is free, so that it is in the answer, too.
        free = [
            jnp.where(some, ~((middle < top) | (bottom < middle)), ~((x < lo) | (hi < x)))
            for some, top, bottom, lo, x, hi in zip(
                weighty, leaves_high, reaches_low, self.low, self.z, self.high, strict=True
            )
        ]
        at_high = [
            jnp.where(some, middle < top, x > hi)
            for some, top, x, hi in zip(weighty, leaves_high, self.z, self.high, strict=True)
        ]
        return start, free, at_high

    def refined(self, a: Blocks, free: Blocks, budget: Float[Array, ""]) -> Blocks:
        """a after one more Newton step on what rounding left of the budget, where that is more than a few roundings.

        An error of rounding in a coordinate of large weight is a large part of the budget, which only that coordinate
        can give back: its error times the ratio of the weights is what one of small weight would have to.
        """
        inside = [jnp.minimum(jnp.maximum(x, lo), hi) for x, lo, hi in zip(a, self.low, self.high, strict=True)]
        excess = summed(w * x for w, x in zip(self.weights, inside, strict=True)) - budget
        curvature = summed(jnp.where(f, w**2, 0.0) for f, w in zip(free, self.weights, strict=True))
        coarse = (excess > 64 * jnp.finfo(excess.dtype).eps * jnp.abs(budget)) & (curvature > 0)
        step = jnp.where(coarse, excess / jnp.where(curvature > 0, curvature, 1.0), 0.0)
        return [jnp.where(f & coarse, x - step * w, x) for x, f, w in zip(inside, free, self.weights, strict=True)]

    def balanced(self, a: Blocks, budget: Float[Array, ""], *, both_ways: bool) -> Blocks:
        """a in its box, with w . a above (or, both ways, off) the budget spread over the weighted coordinates' room."""
        a = [jnp.minimum(jnp.maximum(x, lo), hi) for x, lo, hi in zip(a, self.low, self.high, strict=True)]
        missing = budget - summed(w * x for w, x in zip(self.weights, a, strict=True))
        if not both_ways:
            missing = jnp.minimum(missing, 0.0)
        bounds = zip(a, self.low, self.high, self.weights, strict=True)
        room = [jnp.where(w > 0, jnp.where(missing > 0, hi - x, x - lo), 0.0) for x, lo, hi, w in bounds]
        space = summed(w * r for w, r in zip(self.weights, room, strict=True))
        share = jnp.where(space > 0, missing / jnp.where(space > 0, space, 1.0), 0.0)
        if not both_ways:  # a shade more, so that rounding does not leave the budget again
            share = share - jnp.where(missing < 0, 4.0 * jnp.finfo(share.dtype).eps, 0.0)
        share = jnp.clip(share, -1.0, 1.0)
        return [
            jnp.minimum(jnp.maximum(x + share * r, lo), hi)
            for x, r, lo, hi in zip(a, room, self.low, self.high, strict=True)
        ]


def bracket(spent: Spent, kinks: Blocks, budget: Float[Array, ""]) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """The kinks next to the root of spent(t) = budget, for a falling function."""
    if kinks[0].ndim == 0:
        tried, levels = kinks, [spent(kink) for kink in kinks]
    elif kinks[0].shape[0] > DENSE:
        return _bracket_sorted(spent, kinks, budget)
    else:
        tried = [jnp.concatenate(kinks)]
        levels = [jax.vmap(spent)(tried[0])]
    first, last = _extreme(jnp.minimum, tried), _extreme(jnp.maximum, tried)
    pairs = list(zip(tried, levels, strict=True))
    start = _extreme(jnp.maximum, [jnp.where(level >= budget, kink, first) for kink, level in pairs])
    end = _extreme(jnp.minimum, [jnp.where(level <= budget, kink, last) for kink, level in pairs])
    return start, jnp.maximum(start, end)


def _extreme(pick: Callable[[Array, Array], Array], parts: Blocks) -> Float[Array, ""]:
    """Smallest or largest entry of all blocks."""
    reduction = jnp.min if pick is jnp.minimum else jnp.max
    return functools.reduce(pick, [part if part.ndim == 0 else reduction(part) for part in parts])


def _bracket_sorted(spent: Spent, kinks: Blocks, budget: Float[Array, ""]) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """The same by binary search over the sorted kinks."""
    ordered = jnp.sort(jnp.concatenate(kinks))
    last = ordered.shape[0] - 1

    def halve(_: int, bracket: tuple[Array, Array]) -> tuple[Array, Array]:
        start, end = bracket
        middle = (start + end) // 2
        above = spent(ordered[middle]) >= budget
        return jnp.where(above, middle, start), jnp.where(above, end, middle)

    rounds = math.ceil(math.log2(last + 1)) + 1
    start, end = jax.lax.fori_loop(0, rounds, halve, (jnp.asarray(0), jnp.asarray(last)))
    return ordered[start], ordered[end]


def fill_by_worth(
    worth: Float[Array, " n"],
    weights: Float[Array, " n"],
    caps: Float[Array, " n"],
    budget: Float[Array, ""],
) -> Float[Array, " n"]:
    """The fractional knapsack: fill x_i up to cap_i in falling order of worth_i / w_i until w . x = budget.

    That maximises worth . x over {0 <= x <= caps, w . x <= budget} for worth, weights >= 0 (or, with unit weights and
    caps that sum to more than the budget, over w . x = budget for any worth). Ties go to the lowest index. Of NaN comes
    NaN.
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
    return jnp.where(jnp.isnan(worth), worth, jnp.clip(affordable, 0.0, caps))
