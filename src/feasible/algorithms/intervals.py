"""Intervals: what earlier entries of an action leave for the next one, exactly.

For a feasible set C and entries a_1, ..., a_(i-1) of one of its points, the i-th entry ranges over

    [min x_i, max x_i],   x in C with x_j = a_j for j < i.

`ends` answers with two points that attain these ends and agree in the entries before; so do all their mixtures, which
attain every value between. A walk through the entries from any point of C ends in a point of C, with no first phase.

| set                | how                                                                    | cost             |
|--------------------|------------------------------------------------------------------------|------------------|
| `Box`              | its bounds                                                             | O(1)             |
| `Allocation`       | the rest of the total, less what later entries take at least, at most  | O(n)             |
| `AllocationAtMost` | the same from above; from below, its bound                             | O(n)             |
| weighted budgets   | the rest of the budget over the entry's weight: later ones may be zero | O(n)             |
| `Polytope`         | two linear programs (`feasible.solve.lp`) from the point at hand       | O(rows n) a step |

An integer allocation stands for its convex hull.
"""

from functools import singledispatch

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from feasible.sets.allocation import Allocation, AllocationAtMost
from feasible.sets.base import ActionSet
from feasible.sets.box import Box
from feasible.sets.budget import BudgetBox
from feasible.sets.integer_allocation import IntegerAllocation
from feasible.sets.polytope import Polytope
from feasible.solve.lp import highest_in_polytope

Point = Float[Array, " n"]
Entry = Int[Array, ""]
SMALLEST = 1e-6  # of a unit row: what is left of it once entries are fixed, below which it says nothing
ALLOWED = 0.2  # of the set's tolerance


def relaxed(region: ActionSet) -> ActionSet:
    """The convex set that is walked through."""
    return region.hull if isinstance(region, IntegerAllocation) else region


def has_intervals(kind: type[ActionSet]) -> bool:
    """Whether the intervals of a kind of set are known."""
    return ends.dispatch(kind) is not ends.dispatch(object) or issubclass(kind, IntegerAllocation)


@singledispatch
def ends(region: ActionSet, entry: Entry, point: Point) -> tuple[Point, Point]:
    """Two points of the set, the same as `point` before the entry, with the entry at its least and at its most.

    Later entries of the two are feasible for polytopes only; elsewhere they are still to be chosen.
    """
    raise TypeError(f"{type(region).__name__} has no intervals.")


@ends.register
def _(region: Box, entry: Entry, point: Point) -> tuple[Point, Point]:
    return _at(point, entry, region.low[entry], region.high[entry])


@ends.register
def _(region: Allocation, entry: Entry, point: Point) -> tuple[Point, Point]:
    least, most = _left(region, entry, point)
    return _at(point, entry, jnp.maximum(region.low[entry], least), jnp.minimum(region.high[entry], most))


@ends.register
def _(region: AllocationAtMost, entry: Entry, point: Point) -> tuple[Point, Point]:
    _, most = _left(region, entry, point)
    return _at(point, entry, region.low[entry], jnp.minimum(region.high[entry], most))


@ends.register
def _(region: BudgetBox, entry: Entry, point: Point) -> tuple[Point, Point]:
    places = jnp.arange(region.dim)
    left = jnp.maximum(region.budget - region.load(jnp.where(places < entry, point, 0.0)), 0.0)
    unit = jnp.where(places == entry, 1.0, 0.0).astype(point.dtype)

    def reach(load: Array) -> Array:
        """How far the entry can go in a direction in which it draws so much."""
        bound = region.bound[entry]
        return jnp.where(load * bound > left, left / jnp.where(load > 0, load, 1.0), bound)

    return _at(point, entry, -reach(region.load(-unit)), reach(region.load(unit)))


@ends.register
def _(region: Polytope, entry: Entry, point: Point) -> tuple[Point, Point]:
    """Entries before are taken out of the rows: their columns become zeros, and nothing moves them."""
    system, bounds = region.system()
    places = jnp.arange(region.dim)
    free = jnp.where(places >= entry, 1.0, 0.0).astype(point.dtype)
    limits = bounds - system @ jnp.where(places < entry, point, 0.0)
    rows = system * free[None]
    norms = jnp.linalg.norm(rows, axis=1)
    scale = jnp.where(norms > SMALLEST, 1.0 / jnp.where(norms > SMALLEST, norms, 1.0), 0.0)
    ways = jnp.stack([-1.0, 1.0]).astype(point.dtype)[:, None] * jnp.where(places == entry, free, 0.0)[None]

    def furthest(way: Array) -> Point:
        best = highest_in_polytope(way, point, rows * scale[:, None], limits * scale, region.A_eq.shape[0])
        return _held(region, point, best)

    least, most = jax.vmap(furthest)(ways)
    return least, most


def _held(region: Polytope, point: Point, best: Point) -> Point:
    """The furthest on the way from a point of the polytope to another where no row is missed by more than `ALLOWED`.

    In float32 a program whose rows are nearly dependent, once entries are fixed, may end outside: of 20,000 random
    polytopes one in a thousand by up to a hundred tolerances.
    """
    rows, limits = region.system()
    p = region.A_eq.shape[0]
    rows, limits = jnp.concatenate([rows, -rows[:p]]), jnp.concatenate([limits, -limits[:p]])
    before, after = rows @ point - limits, rows @ best - limits
    allowed = jnp.maximum(before, ALLOWED * region.tolerance)
    over = after > allowed
    share = jnp.min(jnp.where(over, (allowed - before) / jnp.where(over, after - before, 1.0), 1.0))
    return jnp.where(share < 1.0, point + share * (best - point), best)


def scaled(region: ActionSet, point: Point) -> tuple[Point, Point]:
    """Where each entry of a point of the set lies in its interval, from 0 to 1, and how wide that is."""

    def one(entry: Entry) -> tuple[Array, Array]:
        least, most = ends(region, entry, point)
        return placed(region, point[entry], least[entry], most[entry])

    return jax.vmap(one)(jnp.arange(region.dim))


def placed(region: ActionSet, value: Array, least: Array, most: Array) -> tuple[Array, Array]:
    """(value - least) / (most - least) and most - least; 1/2 and 0 where these differ by no more than the tolerance."""
    width = most - least
    room = width > region.tolerance
    share = jnp.clip((value - least) / jnp.where(room, width, 1.0), 0.0, 1.0)
    return jnp.where(room, share, 0.5), jnp.where(room, width, 0.0)


def _at(point: Point, entry: Entry, least: Array, most: Array) -> tuple[Point, Point]:
    """The point with the entry at either end, which rounding may not turn round."""
    here = jnp.arange(point.shape[0]) == entry
    return jnp.where(here, least, point), jnp.where(here, jnp.maximum(least, most), point)


def _left(region: Allocation | AllocationAtMost, entry: Entry, point: Point) -> tuple[Array, Array]:
    """What the total leaves for the entry, where later ones are as large or as small as they can be."""
    places = jnp.arange(region.dim)
    left = region.total - jnp.sum(jnp.where(places < entry, point, 0.0))
    later = places > entry
    return left - jnp.sum(jnp.where(later, region.high, 0.0)), left - jnp.sum(jnp.where(later, region.low, 0.0))
