"""The intersection of sets that have no closed form together: the parts are solved together."""

import functools
import operator
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.lax import stop_gradient
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from feasible.compiling import inlined_or_soon
from feasible.errors import EmptySetError
from feasible.sets.allocation import Allocation, AllocationAtMost
from feasible.sets.arguments import known, require
from feasible.sets.base import ActionSet, compiled, drawn
from feasible.sets.box import Bound, Box
from feasible.sets.ellipsoid import EllipsoidBox
from feasible.sets.half_space import HalfSpaceBox
from feasible.sets.polytope import Polytope
from feasible.sets.positive_power import PositivePowerBox
from feasible.sets.sampling import hit_and_run
from feasible.sets.turnover import TurnoverAllocation
from feasible.sets.weighted_l1 import WeightedL1Box
from feasible.sets.weighted_l1_ellipsoid import WeightedL1EllipsoidBox
from feasible.solve.alike import each
from feasible.solve.splitting import Projection, minimise_over_intersection
from feasible.solve.tangent import with_tangent_of

# How far inside its parts the centre of an intersection is looked for, as shares of the parts' own extents.
DEPTHS = (0.5, 0.2, 0.05, 0.01, 0.0)
WELL_INSIDE = 0.05


# Sets of linear rows, and those that are symmetric about zero with a bound for each entry.
LINEAR = (Box, Allocation, AllocationAtMost, HalfSpaceBox, Polytope)
SYMMETRIC = (WeightedL1Box, PositivePowerBox, EllipsoidBox, WeightedL1EllipsoidBox)


class Intersection(ActionSet):
    """{a : a in every part}.

    Projection and linear maximisation: Newton on the splitting of the parts (`feasible.solve.splitting`), which uses
    only each part's own projection and its Jacobian; error about 1e-9 of scale in float64 and 1e-5 in float32, as a
    rule after 3 to 20 rounds. What is then still outside a part is pulled in along the ray to the centre. The centre
    is the mean of the parts' centres where that lies well inside all parts, otherwise a point of the intersection of
    the parts shrunk about their centres by the largest of a few shares. Samples: hit-and-run. The diameter is the
    smallest of the parts' (an upper bound).
    """

    parts: tuple[ActionSet, ...]
    middle: Float[Array, " n"]
    size: Float[Array, ""]  # half the extent of the smallest part: the unit of the splitting

    def __init__(self, parts: Sequence[ActionSet]):
        self.parts = _of_one_dtype(parts)
        parts = jax.tree.map(stop_gradient, self.parts)
        self.middle, easy, self.size = _mean_of_centres(parts)
        if known(easy) and easy:
            return
        self.middle = _searched_centre(parts, self.middle, easy, self.size)
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

    def in_action_units(self, residuals: Float[Array, " m"]) -> Float[Array, " m"]:
        ends = np.cumsum([len(part.residual_names()) for part in self.parts])[:-1]
        apart = zip(self.parts, jnp.split(residuals, ends), strict=True)
        return jnp.concatenate([part.in_action_units(own) for part, own in apart])

    @compiled
    def project(self, z: Float[Array, " n"]) -> Float[Array, " n"]:
        middle = self.middle
        a = middle + self._minimise(z - middle, middle, curvature=1.0)
        here, there = self._violations(stop_gradient(jnp.stack([z, a])))
        a = with_tangent_of(a, self._pulled_in(a, there))
        return jnp.where(jnp.max(here) <= 4 * jnp.finfo(self.dtype).eps * self.scale, z, a)

    @compiled
    def maximise_linear(self, g: Float[Array, " n"]) -> Float[Array, " n"]:
        best = self.middle + self._minimise(g, self.middle, curvature=0.0)
        best = self._pulled_in(best, self._violations(best[None])[0])
        return jnp.where(jnp.any(g != 0), best, self.middle)

    @compiled
    def exit_distance(self, origin: Float[Array, " n"], direction: Float[Array, " n"]) -> Float[Array, ""]:
        return jnp.min(self._exits(origin, direction))

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
        return min(self.parts, key=lambda part: (part.hull_dim, not isinstance(part, (*LINEAR, TurnoverAllocation))))

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
            operator.and_, [part if new is None else new for new, part in zip(clipped, self.parts, strict=True)]
        )

    @property
    def pieces(self) -> tuple[Projection, ...]:
        return _pieces(self.parts)

    def _minimise(self, target: Array, middle: Array, *, curvature: float) -> Float[Array, " n"]:
        """In coordinates around the centre, so that rounding follows the set's extent, not its place."""
        around = [_Around(near, middle) for near in self.pieces]
        return minimise_over_intersection(around, target, self.size, curvature=curvature)

    def _violations(self, points: Float[Array, "p n"]) -> Float[Array, "p k"]:
        """By how much every point violates every part."""
        return each(
            lambda part, points: jax.vmap(part.violation)(points), self.parts, jnp.stack([points] * len(self.parts))
        ).T

    def _exits(self, origin: Float[Array, " n"], direction: Float[Array, " n"]) -> Float[Array, " k"]:
        """How far the ray stays in every part."""
        return each(
            lambda part, ray: part.exit_distance(ray[0], ray[1]),
            self.parts,
            jnp.stack([jnp.stack([origin, direction])] * len(self.parts)),
        )

    def _pulled_in(self, a: Float[Array, " n"], violations: Float[Array, " k"]) -> Float[Array, " n"]:
        middle, scales = self.middle, jnp.stack([part.scale for part in self.parts])
        outside = violations > 4 * jnp.finfo(self.dtype).eps * scales
        shares = jnp.where(outside, jnp.minimum(self._exits(middle, a - middle), 1.0), 1.0)
        return middle + jnp.min(shares) * (a - middle)


class _Around(eqx.Module):
    """A projection in coordinates around a point."""

    near: Projection
    middle: Float[Array, " n"]

    def __call__(self, x: Float[Array, " n"]) -> Float[Array, " n"]:
        return self.near(x + self.middle) - self.middle


class _Shrunk(eqx.Module):
    """A projection on a set around zero, for the set shrunk to a share and moved."""

    near: Projection
    moved: Float[Array, " n"]
    keep: Float[Array, ""]

    def __call__(self, x: Float[Array, " n"]) -> Float[Array, " n"]:
        return self.moved + self.keep * self.near((x - self.moved) / self.keep)


def _pieces(parts: Sequence[ActionSet]) -> tuple[Projection, ...]:
    """The parts' own, without the box of an ellipsoid beside another symmetric part: they share one bound."""
    boxed, found = any(isinstance(part, SYMMETRIC) and len(part.pieces) == 1 for part in parts), []
    for part in parts:
        bare = boxed and isinstance(part, EllipsoidBox) and len(part.pieces) == 2
        found += part.pieces[1:] if bare else part.pieces
        boxed = boxed or isinstance(part, EllipsoidBox)
    return tuple(found)


def _size(parts: Sequence[ActionSet]) -> Float[Array, ""]:
    """Half the extent of the smallest part: the unit of the splitting."""
    extent = jnp.min(jnp.stack([part.diameter() for part in parts]))
    return jnp.maximum(stop_gradient(0.5 * extent), jnp.finfo(extent.dtype).tiny)


@inlined_or_soon
def _mean_of_centres(
    parts: tuple[ActionSet, ...],
) -> tuple[Float[Array, " n"], Bool[Array, ""], Float[Array, ""]]:
    """The mean of the parts' centres, whether it lies well inside all of them (then no search is made), and half the
    extent of the smallest part."""
    mean = functools.reduce(jnp.add, [part.centre() for part in parts]) / len(parts)
    return mean, _inside_all(parts, mean, jnp.asarray(WELL_INSIDE, mean.dtype)), _size(parts)


@inlined_or_soon
def _searched_centre(
    parts: tuple[ActionSet, ...], mean: Float[Array, " n"], easy: Bool[Array, ""], size: Float[Array, ""]
) -> Float[Array, " n"]:
    """A point of the parts shrunk about their centres, by the first of the depths at which they have one."""
    centres, depths = [part.centre() for part in parts], jnp.asarray(DEPTHS, mean.dtype)

    def nearest(depth: Float[Array, ""]) -> Float[Array, " n"]:
        keep = 1.0 - depth
        shrunk = [
            _Shrunk(_Around(near, c), c - mean, keep)
            for part, c in zip(parts, centres, strict=True)
            for near in part.pieces
        ]
        return mean + minimise_over_intersection(shrunk, jnp.zeros_like(mean), size, curvature=1.0)

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
    grown = jnp.stack([c + (x - c) / (1.0 - depth) for c in (part.centre() for part in parts)])
    return jnp.all(each(lambda part, y: part.contains(y), parts, grown))


def _of_one_dtype(parts: Sequence[ActionSet]) -> tuple[ActionSet, ...]:
    widest = np.result_type(*(part.dtype for part in parts))
    return tuple(jax.tree.map(lambda leaf: leaf.astype(widest), part) for part in parts)
