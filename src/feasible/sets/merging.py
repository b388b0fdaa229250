"""`a & b`: one set in closed form where one is known, otherwise an `Intersection` of the parts."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from feasible.compiling import inlined_or_soon
from feasible.sets.allocation import Allocation, AllocationAtMost
from feasible.sets.arguments import Numbers, known
from feasible.sets.ball import Ball
from feasible.sets.ball_box import BallBox
from feasible.sets.base import ActionSet
from feasible.sets.box import Box, inside
from feasible.sets.ellipsoid import EllipsoidBox
from feasible.sets.half_space import HalfSpaceBox
from feasible.sets.integer_allocation import IntegerAllocation
from feasible.sets.intersection import LINEAR, SYMMETRIC, Intersection
from feasible.sets.polytope import Polytope
from feasible.sets.turnover import TurnoverAllocation
from feasible.sets.weighted_l1 import WeightedL1Box
from feasible.sets.weighted_l1_ellipsoid import WeightedL1EllipsoidBox


def intersect(left: ActionSet, right: ActionSet) -> ActionSet:
    """left & right. Linear sets become one `Polytope` (or a tighter `Box`, allocation or half-space), ball and box a
    `BallBox`, a weighted L1 budget and a diagonal ellipsoid a `WeightedL1EllipsoidBox`; a box that is symmetric and
    known tightens the bound of a symmetric set; everything else becomes an `Intersection`."""
    if left.dim != right.dim:
        raise ValueError(f"Intersection: both sets must have one dim, got {left.dim} and {right.dim}.")
    parts: list[ActionSet] = []
    for incoming in (*_parts(left), *_parts(right)):
        for i, part in enumerate(parts):
            merged = _merge(part, incoming)
            if merged is not None:
                parts[i] = merged
                break
        else:
            parts.append(incoming)
    if len(parts) == 1:
        return parts[0]
    bounds = [part.bound for part in parts if isinstance(part, SYMMETRIC)]
    if len(bounds) > 1:
        bound = functools.reduce(jnp.minimum, bounds)
        parts = [_with_bound(part, bound) if isinstance(part, SYMMETRIC) else part for part in parts]
    return Intersection(parts)


def _parts(one: ActionSet) -> tuple[ActionSet, ...]:
    if isinstance(one, IntegerAllocation):
        raise ValueError("Intersection: an IntegerAllocation cannot take part, use its hull or tighten its bounds.")
    return one.parts if isinstance(one, Intersection) else (one,)


def _merge(left: ActionSet, right: ActionSet) -> ActionSet | None:
    """The two sets as one, where a set of the library says it."""
    if isinstance(right, Box) and not isinstance(left, Box):
        left, right = right, left
    if isinstance(left, Box):
        if isinstance(right, Ball):
            return BallBox(right.middle, right.radius, left.low, left.high)
        if isinstance(right, Box | Allocation | AllocationAtMost | BallBox | HalfSpaceBox | TurnoverAllocation):
            return _tightened(right, jnp.maximum(left.low, right.low), jnp.minimum(left.high, right.high))
        mirrored = known(left.low, left.high) and np.array_equal(left.low, -left.high)
        if isinstance(right, SYMMETRIC) and mirrored:
            return _with_bound(right, jnp.minimum(right.bound, left.high))
    if isinstance(right, WeightedL1Box):
        left, right = right, left
    if isinstance(left, WeightedL1Box) and isinstance(right, EllipsoidBox) and right.diagonal:
        bound = jnp.minimum(left.bound, right.bound)
        return WeightedL1EllipsoidBox(left.weights, left.budget, right.Q, right.level, bound)
    if isinstance(left, LINEAR) and isinstance(right, LINEAR):
        a, b = _as_polytope(left), _as_polytope(right)
        return Polytope(
            jnp.concatenate([a.A, b.A]),
            jnp.concatenate([a.b, b.b]),
            jnp.maximum(a.low, b.low),
            jnp.minimum(a.high, b.high),
            jnp.concatenate([a.A_eq, b.A_eq]),
            jnp.concatenate([a.b_eq, b.b_eq]),
        )
    return None


def _tightened(
    one: Box | Allocation | AllocationAtMost | BallBox | HalfSpaceBox | TurnoverAllocation,
    low: Float[Array, " n"],
    high: Float[Array, " n"],
) -> ActionSet:
    """The set between other bounds, which lie within its own."""
    if isinstance(one, Box):
        return Box(low, high)
    if isinstance(one, BallBox):
        return BallBox(one.middle, one.radius, low, high)
    if isinstance(one, HalfSpaceBox):
        return HalfSpaceBox(one.weights, one.budget, low, high)
    if isinstance(one, TurnoverAllocation):
        return one.between(low, high)
    return type(one)(one.total, low, high)


def _with_bound(one: ActionSet, bound: Float[Array, " n"]) -> ActionSet:
    return eqx.tree_at(lambda s: s.bound, one, bound)


def _as_polytope(one: ActionSet) -> Polytope:
    if isinstance(one, Polytope):
        return one
    assert isinstance(one, Box | Allocation | AllocationAtMost | HalfSpaceBox)
    none, ones = jnp.zeros((0, one.dim), one.dtype), jnp.ones((1, one.dim), one.dtype)
    nothing = jnp.zeros(0, one.dtype)
    if isinstance(one, Box):
        return Polytope(none, nothing, one.low, one.high)
    if isinstance(one, HalfSpaceBox):
        return Polytope(one.weights[None], jnp.atleast_1d(one.budget), one.low, one.high)
    total = jnp.atleast_1d(one.total)
    if isinstance(one, Allocation):
        return Polytope(none, nothing, one.low, one.high, ones, total)
    return Polytope(ones, total, one.low, one.high)


def cut(region: ActionSet, low: Numbers, high: Numbers) -> ActionSet:
    """`ActionSet.within`."""
    low, high = (np.broadcast_to(np.asarray(bound, region.dtype), region.dim) for bound in (low, high))
    clipped = region.clipped(low, high)
    if clipped is region:
        return region
    least, most = _extent(region)
    if inside(least, most, low, high):
        return region
    if clipped is not None:
        return clipped
    return region & Box(jnp.where(np.isfinite(low), low, least), jnp.where(np.isfinite(high), high, most))


@inlined_or_soon
def _extent(region: ActionSet) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
    """The smallest and the largest value of every entry."""
    eye = jnp.eye(region.dim, dtype=region.dtype)
    least, most = (jnp.diag(jax.vmap(region.maximise_linear)(way * eye)) for way in (-1, 1))
    return least, most
