"""Intersections `a & b`: one set in closed form where one is known, otherwise the parts solved together."""

import functools
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.lax import stop_gradient
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from feasible.errors import EmptySetError
from feasible.sets.allocation import Allocation, AllocationAtMost
from feasible.sets.arguments import Numbers, known, require
from feasible.sets.ball import Ball
from feasible.sets.ball_box import BallBox
from feasible.sets.base import ActionSet, compiled, drawn
from feasible.sets.box import Bound, Box, inside
from feasible.sets.ellipsoid import EllipsoidBox
from feasible.sets.half_space import HalfSpaceBox
from feasible.sets.integer_allocation import IntegerAllocation
from feasible.sets.polytope import Polytope
from feasible.sets.positive_power import PositivePowerBox
from feasible.sets.sampling import hit_and_run
from feasible.sets.turnover import TurnoverAllocation
from feasible.sets.weighted_l1 import WeightedL1Box
from feasible.sets.weighted_l1_ellipsoid import WeightedL1EllipsoidBox
from feasible.solve.splitting import Projection, minimise_over_intersection

# How far inside its parts the centre of an intersection is looked for, as shares of the parts' own extents.
DEPTHS = (0.5, 0.2, 0.05, 0.01, 0.0)
WELL_INSIDE = 0.05


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
    bounds = [part.bound for part in parts if isinstance(part, _SYMMETRIC)]
    if len(bounds) > 1:
        bound = functools.reduce(jnp.minimum, bounds)
        parts = [_with_bound(part, bound) if isinstance(part, _SYMMETRIC) else part for part in parts]
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
        if isinstance(right, _SYMMETRIC) and mirrored:
            return _with_bound(right, jnp.minimum(right.bound, left.high))
    if isinstance(right, WeightedL1Box):
        left, right = right, left
    if isinstance(left, WeightedL1Box) and isinstance(right, EllipsoidBox) and right.diagonal:
        bound = jnp.minimum(left.bound, right.bound)
        return WeightedL1EllipsoidBox(left.weights, left.budget, right.Q, right.level, bound)
    if isinstance(left, _LINEAR) and isinstance(right, _LINEAR):
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


_LINEAR = (Box, Allocation, AllocationAtMost, HalfSpaceBox, Polytope)
_SYMMETRIC = (WeightedL1Box, PositivePowerBox, EllipsoidBox, WeightedL1EllipsoidBox)


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


@functools.partial(jax.jit, inline=True)
def _extent(region: ActionSet) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
    """The smallest and the largest value of every entry."""
    eye = jnp.eye(region.dim, dtype=region.dtype)
    least, most = (jnp.diag(jax.vmap(region.maximise_linear)(way * eye)) for way in (-1, 1))
    return least, most


class Intersection(ActionSet):
    """{a : a in every part}.

    Projection and linear maximisation: Newton on the splitting of the parts (`feasible.solve.splitting`), which uses
    only each part's own projection and its Jacobian; error about 1e-9 of scale in float64 and 1e-5 in float32, as a
    rule after 5 to 20 rounds. What is then still outside a part is pulled in along the ray to the centre. The centre
    is the mean of the parts' centres where that lies well inside all parts, otherwise a point of the intersection of
    the parts shrunk about their centres by the largest of a few shares. Samples: hit-and-run. The diameter is the
    smallest of the parts' (an upper bound).
    """

    parts: tuple[ActionSet, ...]
    middle: Float[Array, " n"]

    def __init__(self, parts: Sequence[ActionSet]):
        self.parts = _of_one_dtype(parts)
        parts = jax.tree.map(stop_gradient, self.parts)
        self.middle, easy = _mean_of_centres(parts)
        if known(easy) and easy:
            return
        self.middle = _searched_centre(parts, self.middle, easy)
        require("Intersection", self.contains(self.middle), "the sets have no common point", EmptySetError)

    @property
    def dim(self) -> int:
        return self.parts[0].dim

    @property
    def scale(self) -> Float[Array, ""]:
        return jnp.min(jnp.stack([part.scale for part in self.parts]))

    @compiled
    def residuals(self, a: Float[Array, " n"]) -> Float[Array, " m"]:
        return jnp.concatenate([part.residuals(a) for part in self.parts])

    def residual_names(self) -> tuple[str, ...]:
        return tuple(name for part in self.parts for name in part.residual_names())

    def slopes(self) -> Float[Array, " m"]:
        return jnp.concatenate([part.slopes() for part in self.parts])

    @compiled
    def project(self, z: Float[Array, " n"]) -> Float[Array, " n"]:
        middle = self.middle
        a = middle + self._minimise(z - middle, middle, curvature=1.0)
        a = a + stop_gradient(self._pulled_in(a, middle) - a)
        return jnp.where(self._inside(stop_gradient(z)), z, a)

    @compiled
    def maximise_linear(self, g: Float[Array, " n"]) -> Float[Array, " n"]:
        best = self._pulled_in(self.middle + self._minimise(g, self.middle, curvature=0.0), self.middle)
        return jnp.where(jnp.any(g != 0), best, self.middle)

    @compiled
    def exit_distance(self, origin: Float[Array, " n"], direction: Float[Array, " n"]) -> Float[Array, ""]:
        return jnp.min(jnp.stack([part.exit_distance(origin, direction) for part in self.parts]))

    def centre(self) -> Float[Array, " n"]:
        return self.middle

    def direction(self, key: PRNGKeyArray) -> Float[Array, " n"]:
        return self._flattest.direction(key)

    @property
    def hull_dim(self) -> int:
        return self._flattest.hull_dim

    def hull_basis(self) -> Float[Array, "n d"]:
        return self._flattest.hull_basis()

    @property
    def _flattest(self) -> ActionSet:
        """The part whose plane must not be left: all linear parts, which may have equalities, are one."""
        return min(self.parts, key=lambda part: (part.hull_dim, not isinstance(part, (*_LINEAR, TurnoverAllocation))))

    @drawn
    def sample(self, key: PRNGKeyArray) -> Float[Array, " n"]:
        return hit_and_run(self, key)

    @compiled
    def diameter(self) -> Float[Array, ""]:
        return jnp.min(jnp.stack([part.diameter() for part in self.parts]))

    def clipped(self, low: Bound, high: Bound) -> ActionSet | None:
        """One part in the box is enough; those that know how to be are cut, the others stay."""
        clipped = [part.clipped(low, high) for part in self.parts]
        if any(new is part for new, part in zip(clipped, self.parts, strict=True)):
            return self
        if all(new is None for new in clipped):
            return None
        return functools.reduce(
            intersect, [part if new is None else new for new, part in zip(clipped, self.parts, strict=True)]
        )

    @property
    def pieces(self) -> tuple[Projection, ...]:
        return _pieces(self.parts)

    def _minimise(self, target: Array, middle: Array, *, curvature: float) -> Float[Array, " n"]:
        """In coordinates around the centre, so that rounding follows the set's extent, not its place."""
        around = [lambda x, near=near: near(x + middle) - middle for near in self.pieces]
        return minimise_over_intersection(around, target, _size(self.parts), curvature=curvature)

    def _inside(self, a: Float[Array, " n"]) -> Bool[Array, ""]:
        return self.violation(a) <= 4 * jnp.finfo(self.dtype).eps * self.scale

    def _pulled_in(self, a: Float[Array, " n"], middle: Float[Array, " n"]) -> Float[Array, " n"]:
        shares = [
            jnp.where(
                part.violation(a) > 4 * jnp.finfo(self.dtype).eps * part.scale,
                jnp.minimum(part.exit_distance(middle, a - middle), 1.0),
                1.0,
            )
            for part in self.parts
        ]
        return middle + jnp.min(jnp.stack(shares)) * (a - middle)


def _pieces(parts: Sequence[ActionSet]) -> tuple[Projection, ...]:
    """The parts' own, without the box of an ellipsoid beside another symmetric part: they share one bound."""
    boxed, found = any(isinstance(part, _SYMMETRIC) and len(part.pieces) == 1 for part in parts), []
    for part in parts:
        bare = boxed and isinstance(part, EllipsoidBox) and len(part.pieces) == 2
        found += part.pieces[1:] if bare else part.pieces
        boxed = boxed or isinstance(part, EllipsoidBox)
    return tuple(found)


def _size(parts: Sequence[ActionSet]) -> Float[Array, ""]:
    """Half the extent of the smallest part: the unit of the splitting."""
    extent = jnp.min(jnp.stack([part.diameter() for part in parts]))
    return jnp.maximum(stop_gradient(0.5 * extent), jnp.finfo(extent.dtype).tiny)


@functools.partial(jax.jit, inline=True)
def _mean_of_centres(parts: tuple[ActionSet, ...]) -> tuple[Float[Array, " n"], Bool[Array, ""]]:
    """The mean of the parts' centres, and whether it lies well inside all of them: then no search is made."""
    mean = functools.reduce(jnp.add, [part.centre() for part in parts]) / len(parts)
    return mean, _inside_all(parts, mean, jnp.asarray(WELL_INSIDE, mean.dtype))


@functools.partial(jax.jit, inline=True)
def _searched_centre(
    parts: tuple[ActionSet, ...], mean: Float[Array, " n"], easy: Bool[Array, ""]
) -> Float[Array, " n"]:
    """A point of the parts shrunk about their centres, by the first of the depths at which they have one."""
    centres, depths = [part.centre() for part in parts], jnp.asarray(DEPTHS, mean.dtype)

    def nearest(depth: Float[Array, ""]) -> Float[Array, " n"]:
        keep = 1.0 - depth
        shrunk = [
            lambda y, near=near, c=c: c + keep * (near(c + (y + mean - c) / keep) - c) - mean
            for part, c in zip(parts, centres, strict=True)
            for near in part.pieces
        ]
        return mean + minimise_over_intersection(shrunk, jnp.zeros_like(mean), _size(parts), curvature=1.0)

    def deeper(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        tried, _, _ = state
        point = nearest(depths[tried])
        return tried + 1, point, _inside_all(parts, point, depths[tried])

    def unfinished(state: tuple[Array, Array, Array]) -> Bool[Array, ""]:
        tried, _, found = state
        return ~found & (tried < len(DEPTHS))

    return jax.lax.while_loop(unfinished, deeper, (jnp.asarray(0), mean, easy))[1]


def _inside_all(parts: tuple[ActionSet, ...], x: Float[Array, " n"], depth: Float[Array, ""]) -> Bool[Array, ""]:
    """Whether x is in every part shrunk about its centre by the depth."""
    grown = [c + (x - c) / (1.0 - depth) for c in (part.centre() for part in parts)]
    return jnp.all(jnp.stack([part.contains(y) for part, y in zip(parts, grown, strict=True)]))


def _of_one_dtype(parts: Sequence[ActionSet]) -> tuple[ActionSet, ...]:
    widest = np.result_type(*(part.dtype for part in parts))
    return tuple(jax.tree.map(lambda leaf: leaf.astype(widest), part) for part in parts)
