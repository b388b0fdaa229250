"""Allocations of a total over coordinates with bounds: bikes over stations, bandwidth over flows."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray
from numpy.typing import NDArray

from feasible.errors import EmptySetError
from feasible.sets.arguments import Numbers, floats, require, scalar
from feasible.sets.base import TOLERANCE, ActionSet, compiled, drawn, entries
from feasible.sets.box import Bound, box_exit, inside, ordered_bounds, stays_level, tighter
from feasible.sets.limited_box import LimitedBox
from feasible.sets.sampling import gaussian, hit_and_run
from feasible.solve.breakpoints import fill_by_worth, nearest_on_budget, nearest_on_budget_in_a_loop
from feasible.solve.splitting import Projection


class Allocation(ActionSet):
    """{a : low <= a <= high, sum_i a_i = total}.

    Projection: a = clip(z - t, low, high) with the one t that gives the total, found exactly by breakpoints. Linear
    maximisation: start at `low` and fill coordinates to `high` by falling gradient (ties to the lowest index) until
    the total is used. Costs as for `WeightedL1Box`. Samples: hit-and-run in the hyperplane. The diameter is an upper
    bound, exact for equal bounds when the total fills whole coordinates. low = high pins a coordinate.
    """

    total: Float[Array, ""]
    low: Float[Array, " n"]
    high: Float[Array, " n"]

    def __init__(self, total: Numbers, low: Numbers, high: Numbers):
        self.total, self.low, self.high = allocation_fields("Allocation", total, low, high, equality=True)

    @property
    def dim(self) -> int:
        return self.low.shape[-1]

    @property
    def scale(self) -> Float[Array, ""]:
        return jnp.max(jnp.maximum(jnp.abs(self.low), jnp.abs(self.high)))

    @compiled
    def residuals(self, a: Float[Array, " n"]) -> Float[Array, " m"]:
        excess = jnp.atleast_1d(jnp.sum(a) - self.total)
        return jnp.concatenate([excess, -excess, self.low - a, a - self.high])

    @compiled
    def accepts(self, a: Float[Array, " n"]) -> Bool[Array, ""]:
        """Whether no bound and no total is missed by more than half a unit."""
        return jnp.max(self.residuals(a)) <= 0.5

    def residual_names(self) -> tuple[str, ...]:
        return ("sum a - total", "total - sum a", *entries("low - a", self.dim), *entries("a - high", self.dim))

    def slopes(self) -> Float[Array, " m"]:
        sums = jnp.full(2, self.dim**0.5, self.dtype)
        return jnp.concatenate([sums, jnp.ones(2 * self.dim, self.dtype)])

    @compiled
    def project(self, z: Float[Array, " n"]) -> Float[Array, " n"]:
        return nearest_on_budget(z, jnp.ones_like(z), self.low, self.high, self.total, equality=True)

    @property
    def pieces(self) -> tuple[Projection, ...]:
        ones = jnp.ones_like(self.low)
        return (lambda z: nearest_on_budget_in_a_loop(z, ones, self.low, self.high, self.total, equality=True),)

    @compiled
    def maximise_linear(self, g: Float[Array, " n"]) -> Float[Array, " n"]:
        filled = fill_by_worth(g, jnp.ones_like(g), self.high - self.low, self.total - jnp.sum(self.low))
        return jnp.minimum(self.low + filled, self.high)

    @compiled
    def exit_distance(self, origin: Float[Array, " n"], direction: Float[Array, " n"]) -> Float[Array, ""]:
        time = box_exit(origin, direction, self.low, self.high)
        return jnp.where(stays_level(jnp.sum(direction), time, self.dim, self.scale), time, 0.0)

    @compiled
    def centre(self) -> Float[Array, " n"]:
        room = self.high - self.low
        span = jnp.sum(room)
        share = jnp.where(span > 0, (self.total - jnp.sum(self.low)) / jnp.where(span > 0, span, 1.0), 0.0)
        return self.low + jnp.clip(share, 0.0, 1.0) * room

    def direction(self, key: PRNGKeyArray) -> Float[Array, " n"]:
        room = self.high - self.low
        free = jnp.where(room > 0, 1.0, 0.0).astype(self.dtype)
        line = gaussian(key, room)
        return line - free * jnp.sum(line) / jnp.maximum(jnp.sum(free), 1.0)

    @property
    def hull_dim(self) -> int:
        return self.dim - 1

    def hull_basis(self) -> Float[Array, "n d"]:
        return jnp.asarray(level_basis(self.dim), self.dtype)

    @drawn
    def sample(self, key: PRNGKeyArray) -> Float[Array, " n"]:
        return hit_and_run(self, key, self.chord)

    @compiled
    def diameter(self) -> Float[Array, ""]:
        """Two points differ by d with |d_i| <= room_i whose positive part, like its negative part, sums to at most
        m = min(total - sum low, sum high - total); each part is longest when it fills the widest coordinates."""
        room = self.high - self.low
        movable = jnp.minimum(self.total - jnp.sum(self.low), jnp.sum(self.high) - self.total)
        longest = fill_by_worth(room, jnp.ones_like(room), room, jnp.maximum(movable, 0.0))
        return jnp.sqrt(jnp.minimum(2.0 * jnp.vdot(longest, longest), jnp.vdot(room, room)))

    def clipped(self, low: Bound, high: Bound) -> "Allocation":
        if inside(self.low, self.high, low, high):
            return self
        return Allocation(self.total, *tighter(self.low, self.high, low, high))

    def chord(
        self, origin: Float[Array, " n"], direction: Float[Array, " n"]
    ) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """The exits, and 0 where little is left of a random direction and rounding has turned it out of the plane."""
        drift = jnp.abs(jnp.sum(direction))
        level = drift <= 16 * jnp.finfo(self.dtype).eps * self.dim * jnp.max(jnp.abs(direction))
        back, ahead = (box_exit(origin, way, self.low, self.high) for way in (-direction, direction))
        return jnp.where(level, back, 0.0), jnp.where(level, ahead, 0.0)


class AllocationAtMost(LimitedBox):
    """{a : low <= a <= high, sum_i a_i <= total}.

    As `Allocation`, with a price t >= 0 in the projection and only coordinates of positive gradient filled in the
    linear maximisation. The centre is at most half-way from `low` to `high` and to the total. Samples: hit-and-run.
    The diameter is the upper bound of the box cut off at the total.
    """

    total: Float[Array, ""]
    low: Float[Array, " n"]
    high: Float[Array, " n"]

    def __init__(self, total: Numbers, low: Numbers, high: Numbers):
        self.total, self.low, self.high = allocation_fields("AllocationAtMost", total, low, high, equality=False)

    @property
    def dim(self) -> int:
        return self.low.shape[-1]

    @compiled
    def residuals(self, a: Float[Array, " n"]) -> Float[Array, " m"]:
        return jnp.concatenate([jnp.atleast_1d(jnp.sum(a) - self.total), self.low - a, a - self.high])

    def residual_names(self) -> tuple[str, ...]:
        return ("sum a - total", *entries("low - a", self.dim), *entries("a - high", self.dim))

    def slopes(self) -> Float[Array, " m"]:
        return jnp.ones(2 * self.dim + 1, self.dtype).at[0].set(self.dim**0.5)

    @compiled
    def project(self, z: Float[Array, " n"]) -> Float[Array, " n"]:
        return nearest_on_budget(z, jnp.ones_like(z), self.low, self.high, self.total, equality=False)

    @property
    def pieces(self) -> tuple[Projection, ...]:
        ones = jnp.ones_like(self.low)
        return (lambda z: nearest_on_budget_in_a_loop(z, ones, self.low, self.high, self.total, equality=False),)

    @compiled
    def maximise_linear(self, g: Float[Array, " n"]) -> Float[Array, " n"]:
        room = jnp.where(g > 0, self.high - self.low, 0.0)
        filled = fill_by_worth(g, jnp.ones_like(g), room, self.total - jnp.sum(self.low))
        return jnp.minimum(self.low + filled, self.high)

    @compiled
    def exit_distance(self, origin: Float[Array, " n"], direction: Float[Array, " n"]) -> Float[Array, ""]:
        drift = jnp.sum(direction)
        room = jnp.maximum(self.total - jnp.sum(origin), 0.0)
        rising = drift > 0
        time = jnp.where(rising, room / jnp.where(rising, drift, 1.0), jnp.inf)
        return jnp.minimum(time, box_exit(origin, direction, self.low, self.high))

    @compiled
    def centre(self) -> Float[Array, " n"]:
        room = self.high - self.low
        span = jnp.sum(room)
        share = jnp.where(span > 0, (self.total - jnp.sum(self.low)) / jnp.where(span > 0, span, 1.0), 0.0)
        return self.low + 0.5 * jnp.clip(share, 0.0, 1.0) * room

    def clipped(self, low: Bound, high: Bound) -> "AllocationAtMost":
        if inside(self.low, self.high, low, high):
            return self
        return AllocationAtMost(self.total, *tighter(self.low, self.high, low, high))

    def reach(self) -> Float[Array, " n"]:
        """How far each coordinate can rise above `low` before the total is used."""
        return jnp.clip(self.total - jnp.sum(self.low), 0.0, self.high - self.low)


def allocation_fields(owner: str, total: Numbers, low: Numbers, high: Numbers, *, equality: bool) -> list[Array]:
    """Total and bounds, checked up to rounding: the total must lie between the sums of the bounds."""
    total, low, high = floats(owner, total=total, low=low, high=high)
    low, high = ordered_bounds(owner, low, high)
    total = scalar(owner, "total", total)
    slack = TOLERANCE * jnp.max(jnp.maximum(jnp.abs(low), jnp.abs(high)))
    require(owner, jnp.sum(low) <= total + slack, "total must not be below the sum of low", EmptySetError)
    if equality:
        require(owner, total <= jnp.sum(high) + slack, "total must not exceed the sum of high", EmptySetError)
    return [total, low, high]


def level_basis(dim: int) -> NDArray[np.floating]:
    """Directions that keep the sum, orthonormal. Helmert's: column j has j ones and then -j, over sqrt(j (j + 1))."""
    i, j = np.arange(dim)[:, None], np.arange(1, dim)[None, :]
    return np.where(i < j, 1.0, np.where(i == j, -j, 0.0)) / np.sqrt(j * (j + 1.0))
