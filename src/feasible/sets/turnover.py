"""Allocations with a turnover limit: portfolio weights that may change by so much from one step to the next."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from feasible.errors import EmptySetError
from feasible.sets.allocation import Allocation, allocation_fields
from feasible.sets.arguments import Numbers, floats, require, scalar, vectors
from feasible.sets.base import TOLERANCE, ActionSet, compiled, drawn, entries
from feasible.sets.box import Bound, inside, tighter
from feasible.sets.sampling import gaussian, hit_and_run
from feasible.solve.breakpoints import fill_by_worth, nearest_on_budget
from feasible.solve.convex_load import convex_chord, convex_exit


class TurnoverAllocation(ActionSet):
    """{a : sum_i a_i = total, low <= a <= high, sum_i |a_i - previous_i| <= turnover}.

    A market may drive a weight across its bound by more than the turnover that would bring it back. So the bounds in
    use are min(low_i, previous_i) and max(high_i, previous_i): what lies outside may stay or come in, never go further
    out, and an allocation whose previous one has the same total is never empty.

    Projection: a_i = clip(previous_i + soft(z_i - t - previous_i, l)). Where the turnover binds, what is bought and
    what is sold are both known, (turnover +- (total - sum previous)) / 2, and each is an `Allocation` of its own with
    the prices t + l and t - l; so three quadratic knapsacks, exact by breakpoints, answer all. Linear maximisation: the
    allocation's, where its turnover is allowed, otherwise the best is bought and the worst is sold for those sums.
    Costs: three times those of `Allocation`.

    The centre lies on the line from the allocation nearest to `previous` to the centre of the allocation, where at most
    half of the spare turnover is used. Samples: hit-and-run in the hyperplane. The diameter is the upper bound of
    `Allocation` with no more moved than the turnover.
    """

    total: Float[Array, ""]
    low: Float[Array, " n"]
    high: Float[Array, " n"]
    previous: Float[Array, " n"]
    turnover: Float[Array, ""]

    def __init__(self, total: Numbers, low: Numbers, high: Numbers, previous: Numbers, turnover: Numbers):
        owner = "TurnoverAllocation"
        total, low, high, previous, turnover = floats(
            owner, total=total, low=low, high=high, previous=previous, turnover=turnover
        )
        low, high, self.previous = vectors(owner, low=low, high=high, previous=previous)
        self.total, low, high = allocation_fields(owner, total, low, high, equality=True)
        self.turnover = scalar(owner, "turnover", turnover)
        self.low, self.high = jnp.minimum(low, self.previous), jnp.maximum(high, self.previous)
        require(owner, self.turnover >= 0, "turnover must not be negative", EmptySetError)
        least = jnp.abs(self.total - jnp.sum(self.previous))
        enough = self.turnover + TOLERANCE * self.scale >= least
        require(owner, enough, "turnover must be at least |total - sum of previous|", EmptySetError)

    @property
    def allocation(self) -> Allocation:
        """The set without the turnover limit."""
        return Allocation(self.total, self.low, self.high)

    @property
    def dim(self) -> int:
        return self.low.shape[-1]

    @property
    def scale(self) -> Float[Array, ""]:
        return jnp.max(jnp.maximum(jnp.abs(self.low), jnp.abs(self.high)))

    def moved(self, a: Float[Array, " n"]) -> Float[Array, ""]:
        """sum_i |a_i - previous_i|."""
        return jnp.sum(jnp.abs(a - self.previous))

    @compiled
    def residuals(self, a: Float[Array, " n"]) -> Float[Array, " m"]:
        return jnp.concatenate([jnp.atleast_1d(self.moved(a) - self.turnover), self.allocation.residuals(a)])

    @compiled
    def accepts(self, a: Float[Array, " n"]) -> Bool[Array, ""]:
        """Whether no bound, total or turnover is missed by more than half a unit."""
        return jnp.max(self.residuals(a)) <= 0.5

    def residual_names(self) -> tuple[str, ...]:
        bounds = (*entries("low - a", self.dim), *entries("a - high", self.dim))
        return ("sum |a - previous| - turnover", "sum a - total", "total - sum a", *bounds)

    def slopes(self) -> Float[Array, " m"]:
        return jnp.ones(2 * self.dim + 3, self.dtype).at[:3].set(self.dim**0.5)

    @compiled
    def project(self, z: Float[Array, " n"]) -> Float[Array, " n"]:
        ones, change, (buys, sells) = jnp.ones_like(z), z - self.previous, self._trades()
        free = self.allocation.project(z)
        bought, sold = self._sums()
        up = nearest_on_budget(change, ones, *buys, bought, equality=True)
        down = nearest_on_budget(-change, ones, *sells, sold, equality=True)
        return jnp.where(self.moved(free) > self.turnover, self.previous + (up - down), free)

    @compiled
    def maximise_linear(self, g: Float[Array, " n"]) -> Float[Array, " n"]:
        ones, (buys, sells) = jnp.ones_like(g), self._trades()
        free = self.allocation.maximise_linear(g)
        bought, sold = self._sums()
        up = buys[0] + fill_by_worth(g, ones, buys[1] - buys[0], bought - jnp.sum(buys[0]))
        down = sells[0] + fill_by_worth(-g, ones, sells[1] - sells[0], sold - jnp.sum(sells[0]))
        best = jnp.clip(self.previous + (up - down), self.low, self.high)
        return jnp.where(self.moved(free) > self.turnover, best, free)

    @compiled
    def exit_distance(self, origin: Float[Array, " n"], direction: Float[Array, " n"]) -> Float[Array, ""]:
        planar = self.allocation.exit_distance(origin, direction)
        end = origin + jnp.where(jnp.isfinite(planar), planar, 0.0) * direction
        # As in the plane of the allocation: what leads along a face of the turnover is off it by rounding.
        limit = self.turnover + 32 * jnp.finfo(self.dtype).eps * self.dim**0.5 * self.scale
        ends = convex_exit(lambda t: self.moved(origin + t * direction), *self._pieces(origin, direction), limit)
        return jnp.where(self.moved(end) <= limit, planar, jnp.minimum(ends, planar))

    @compiled
    def centre(self) -> Float[Array, " n"]:
        nearest, middle = self._nearest(), self.allocation.centre()
        start, end = self.moved(nearest), self.moved(middle)
        spare, way = jnp.maximum(self.turnover - start, 0.0), end - start
        far = way > 0.5 * spare
        return nearest + jnp.where(far, 0.5 * spare / jnp.where(far, way, 1.0), 1.0) * (middle - nearest)

    def direction(self, key: PRNGKeyArray) -> Float[Array, " n"]:
        room = jnp.minimum(self.high - self.low, 2.0 * self.turnover)
        free = jnp.where(room > 0, 1.0, 0.0).astype(self.dtype)
        line = gaussian(key, room)
        return line - free * jnp.sum(line) / jnp.maximum(jnp.sum(free), 1.0)

    @property
    def hull_dim(self) -> int:
        return self.dim - 1

    def hull_basis(self) -> Float[Array, "n d"]:
        return self.allocation.hull_basis()

    @drawn
    def sample(self, key: PRNGKeyArray) -> Float[Array, " n"]:
        return hit_and_run(self, key, self._chord)

    @compiled
    def diameter(self) -> Float[Array, ""]:
        """As of `Allocation`; between two points no more than the turnover is sold."""
        room = self.high - self.low
        movable = jnp.minimum(self.total - jnp.sum(self.low), jnp.sum(self.high) - self.total)
        movable = jnp.clip(movable, 0.0, self.turnover)
        longest = fill_by_worth(room, jnp.ones_like(room), room, movable)
        return jnp.sqrt(jnp.minimum(2.0 * jnp.vdot(longest, longest), jnp.vdot(room, room)))

    def clipped(self, low: Bound, high: Bound) -> "TurnoverAllocation":
        if inside(self.low, self.high, low, high):
            return self
        return self.between(*tighter(self.low, self.high, low, high))

    def between(self, low: Float[Array, " n"], high: Float[Array, " n"]) -> "TurnoverAllocation":
        """The part between bounds that hold whatever `previous` is: what it has outside them must come in."""
        part = eqx.tree_at(lambda s: (s.low, s.high), self, (low, high))
        reachable = (low <= high) & (part.moved(part._nearest()) <= self.turnover + self.tolerance)
        sentence = "turnover must reach from previous to the box that the set is cut at"
        require("TurnoverAllocation", reachable, sentence, EmptySetError)
        return part

    def _trades(self) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        """The least and the most that can be bought of every coordinate, and that can be sold."""
        down, up = self.low - self.previous, self.high - self.previous
        buys = jnp.maximum(down, 0.0), jnp.maximum(up, 0.0)
        return buys, (jnp.maximum(-up, 0.0), jnp.maximum(-down, 0.0))

    def _sums(self) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """What is bought and what is sold in all where the turnover binds."""
        excess = self.total - jnp.sum(self.previous)
        return 0.5 * (self.turnover + excess), 0.5 * (self.turnover - excess)

    def _nearest(self) -> Float[Array, " n"]:
        """A point of least turnover: the previous allocation, with what it lacks spread over the room there is."""
        start = jnp.clip(self.previous, self.low, self.high)
        missing = self.total - jnp.sum(start)
        room = jnp.where(missing > 0, self.high - start, start - self.low)
        space = jnp.sum(room)
        share = jnp.where(space > 0, missing / jnp.where(space > 0, space, 1.0), 0.0)
        return start + jnp.clip(share, -1.0, 1.0) * room

    def _pieces(self, origin: Float[Array, " n"], direction: Float[Array, " n"]) -> tuple[Array, Array, Array, Array]:
        """The turnover along a line: each coordinate's kink, its slopes before and after, and what does not change."""
        moving, way, speed = direction != 0, self.previous - origin, jnp.abs(direction)
        kinks = jnp.where(moving, way / jnp.where(moving, direction, 1.0), 0.0)
        return kinks, -speed, speed, jnp.sum(jnp.where(moving, 0.0, jnp.abs(way)))

    def _chord(
        self, origin: Float[Array, " n"], direction: Float[Array, " n"]
    ) -> tuple[Float[Array, ""], Float[Array, ""]]:
        back, ahead = convex_chord(*self._pieces(origin, direction), self.turnover)
        behind, before = self.allocation.chord(origin, direction)
        return jnp.minimum(back, behind), jnp.minimum(ahead, before)
