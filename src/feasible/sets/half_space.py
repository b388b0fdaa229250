"""A half-space in a box: one linear limit, such as the work of two joints, on actions with bounds."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from feasible.errors import EmptySetError
from feasible.sets.arguments import Numbers, require
from feasible.sets.base import TOLERANCE, compiled, entries
from feasible.sets.box import Bound, box_exit, inside, limit_in_box, tighter
from feasible.sets.limited_box import LimitedBox
from feasible.solve.breakpoints import clamp, fill_by_worth, nearest_on_budget


class HalfSpaceBox(LimitedBox):
    """{a : w . a <= budget, low <= a <= high} for weights of any sign.

    With the sign of w_i taken off, b_i = sign(w_i) a_i, this is the quadratic knapsack of `WeightedL1Box` between any
    bounds. Projection: b = clip(b(z) - t |w|) with the one price t >= 0, exactly by breakpoints. Linear maximisation:
    start where the load is least and fill the coordinates that earn by falling worth. Costs as there: O(n^2) operations
    in one kernel for few coordinates, O(n log n) for many. A zero weight leaves its coordinate to the box, a budget
    that never binds leaves the box.

    The centre is a Chebyshev centre: r = min(half the narrowest width, (budget - least load) / (|w|_1 + |w|_2)) is
    the radius of a largest ball, and of all its places the one of least norm is the centre. Coordinates without room
    are left out of the ball. Samples: hit-and-run. The diameter is the upper bound that the bounding box gives.
    """

    weights: Float[Array, " n"]
    budget: Float[Array, ""]
    low: Float[Array, " n"]
    high: Float[Array, " n"]

    def __init__(self, weights: Numbers, budget: Numbers, low: Numbers, high: Numbers):
        owner = "HalfSpaceBox"
        self.weights, self.budget, self.low, self.high = limit_in_box(owner, low, high, weights=weights, budget=budget)
        slack = TOLERANCE * self.scale * jnp.linalg.norm(self.weights)
        reachable = self.least_load() <= self.budget + slack
        require(owner, reachable, "budget must not be below the least w . a between low and high", EmptySetError)

    @property
    def dim(self) -> int:
        return self.weights.shape[-1]

    def least_load(self) -> Float[Array, ""]:
        """The least w . a in the box."""
        return jnp.sum(self.weights * jnp.where(self.weights < 0, self.high, self.low))

    @compiled
    def residuals(self, a: Float[Array, " n"]) -> Float[Array, " m"]:
        excess = jnp.atleast_1d(jnp.sum(self.weights * a) - self.budget)
        return jnp.concatenate([excess, self.low - a, a - self.high])

    def residual_names(self) -> tuple[str, ...]:
        return ("w . a - budget", *entries("low - a", self.dim), *entries("a - high", self.dim))

    def slopes(self) -> Float[Array, " m"]:
        steepness = jnp.atleast_1d(jnp.linalg.norm(self.weights))
        return jnp.concatenate([steepness, jnp.ones(2 * self.dim, self.dtype)])

    @compiled
    def project(self, z: Float[Array, " n"]) -> Float[Array, " n"]:
        return self._nearest(z, self.budget, self.low, self.high)

    @compiled
    def maximise_linear(self, g: Float[Array, " n"]) -> Float[Array, " n"]:
        weight, worth, (least, most) = jnp.abs(self.weights), self._side() * g, self._ends(self.low, self.high)
        room = jnp.where(worth > 0, most - least, 0.0)
        filled = fill_by_worth(jnp.maximum(worth, 0.0), weight, room, self.budget - self.least_load())
        free = (weight == 0) & (worth == 0)
        b = jnp.where(free, least + 0.5 * (most - least), jnp.minimum(least + filled, most))
        return self._side() * b

    @compiled
    def exit_distance(self, origin: Float[Array, " n"], direction: Float[Array, " n"]) -> Float[Array, ""]:
        speed = jnp.sum(self.weights * direction)
        room = jnp.maximum(self.budget - jnp.sum(self.weights * origin), 0.0)
        rising, boxed = speed > 0, box_exit(origin, direction, self.low, self.high)
        time = jnp.where(rising, room / jnp.where(rising, speed, 1.0), jnp.inf)
        # A direction along the face, as between two of its points, is so only up to their rounding: it leads out of
        # the half-space by no more before it leaves the box, and by less than tolerances see.
        drift = speed * jnp.where(jnp.isfinite(boxed), boxed, 0.0) - room
        rounding = min(64 * jnp.finfo(self.dtype).eps * self.dim, 0.5 * TOLERANCE) * self.scale
        level = drift <= rounding * jnp.linalg.norm(self.weights)
        return jnp.where(level, boxed, jnp.minimum(time, boxed))

    @compiled
    def centre(self) -> Float[Array, " n"]:
        half, weight = 0.5 * (self.high - self.low), jnp.abs(self.weights)
        wide = half > 0
        narrowest = jnp.min(jnp.where(wide, half, jnp.inf))
        narrowest = jnp.where(jnp.isfinite(narrowest), narrowest, 0.0)
        inner = jnp.where(wide, weight, 0.0)
        steepness = jnp.linalg.norm(inner)
        load, spare = jnp.sum(inner) + steepness, self.budget - self.least_load()
        flat = spare <= 16 * jnp.finfo(self.dtype).eps * jnp.sum(weight) * self.scale  # no more than rounding
        weighty = load > 0
        limit = jnp.where(flat, 0.0, spare) / jnp.where(weighty, load, 1.0)
        radius = jnp.where(weighty, jnp.minimum(narrowest, limit), narrowest)
        around = jnp.where(wide, radius, 0.0)
        nought, budget = jnp.zeros_like(self.weights), self.budget - radius * steepness
        deepest = self._nearest(nought, budget, self.low + around, self.high - around)
        # On a face of the box: weighted coordinates are where the load is least, the others have a ball of their own.
        around = jnp.where(wide, narrowest, 0.0)
        idle = clamp(nought, self.low + around, self.high - around)
        corner = jnp.where(self.weights < 0, self.high, jnp.where(self.weights > 0, self.low, idle))
        return jnp.where(flat & weighty, corner, deepest)

    def clipped(self, low: Bound, high: Bound) -> "HalfSpaceBox":
        if inside(self.low, self.high, low, high):
            return self
        return HalfSpaceBox(self.weights, self.budget, *tighter(self.low, self.high, low, high))

    def _side(self) -> Float[Array, " n"]:
        return jnp.where(self.weights < 0, -1.0, 1.0).astype(self.dtype)

    def _ends(self, low: Float[Array, " n"], high: Float[Array, " n"]) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
        """The bounds of sign(w) a: where a coordinate's load is least, and where it is most."""
        turned = self.weights < 0
        return jnp.where(turned, -high, low), jnp.where(turned, -low, high)

    def _nearest(
        self, z: Float[Array, " n"], budget: Float[Array, ""], low: Float[Array, " n"], high: Float[Array, " n"]
    ) -> Float[Array, " n"]:
        side, (least, most) = self._side(), self._ends(low, high)
        b = nearest_on_budget(side * z, jnp.abs(self.weights), least, most, budget, equality=False)
        return side * b

    def reach(self) -> Float[Array, " n"]:
        """How far each coordinate can go from where the load is least before the budget is used."""
        weight, room = jnp.abs(self.weights), self.high - self.low
        spare = jnp.maximum(self.budget - self.least_load(), 0.0)
        spent = weight * room > spare
        return jnp.where(spent, spare / jnp.where(spent, weight, 1.0), room)
