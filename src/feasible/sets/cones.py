"""A polytope cut by second-order cones: friction cones, chance constraints, ellipsoids that are not centred."""

import functools
from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.lax import stop_gradient
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from feasible.compiling import inlined_or_soon
from feasible.errors import EmptySetError
from feasible.sets.arguments import Numbers, floats, require
from feasible.sets.ball import safe_norm
from feasible.sets.base import ActionSet, compiled, drawn
from feasible.sets.box import Bound
from feasible.sets.polytope import Polytope
from feasible.sets.sampling import hit_and_run
from feasible.solve.conic import minimise_over_cones
from feasible.solve.lp import depth_rows
from feasible.solve.quadratic import quadratic_exit
from feasible.solve.tangent import with_tangent_of


class Cone(NamedTuple):
    """||F a + f|| <= c . a + d."""

    F: Numbers
    f: Numbers
    c: Numbers
    d: Numbers


class ConePolytope(ActionSet):
    """{a in polytope : ||F_j a + f_j|| <= c_j . a + d_j for every cone j}; every array may depend on the state.

    Projection and linear maximisation: Newton on the splitting between the polytope and the cones
    (`feasible.solve.conic`); error about 1e-9 of scale in float64 and 1e-5 in float32, as a rule after 3 to 20 rounds,
    each a few Jacobians of n + k columns for k rows of cones. The answer lies in the polytope, equalities included;
    what rounding leaves outside a cone is pulled in along the ray to the centre. The centre has the largest smallest
    slack, rows and cones brought to action units; it is found once, at construction, by the same method. A cone
    without a point in the polytope is an empty set. Samples: hit-and-run. The diameter is the upper bound of the
    polytope's.
    """

    polytope: Polytope
    map: Float[Array, "k n"]
    offset: Float[Array, " k"]
    sizes: tuple[int, ...] = eqx.field(static=True)
    middle: Float[Array, " n"]

    def __init__(self, polytope: Polytope, cones: Sequence[Cone]):
        blocks = [_block(cone, polytope) for cone in cones]
        if not blocks:
            raise ValueError("ConePolytope: cones must name at least one; without any, the polytope is the set.")
        self.polytope = polytope
        self.map = jnp.concatenate([block[:, :-1] for block in blocks])
        self.offset = jnp.concatenate([block[:, -1] for block in blocks])
        self.sizes = tuple(len(block) for block in blocks)
        self.middle = _deepest(*jax.tree.map(stop_gradient, (polytope, self.map, self.offset)), self.sizes)
        require("ConePolytope", self.contains(self.middle), "polytope and cones have no common point", EmptySetError)

    @property
    def dim(self) -> int:
        return self.polytope.dim

    @property
    def scale(self) -> Float[Array, ""]:
        return self.polytope.scale

    @compiled
    def residuals(self, a: Float[Array, " n"]) -> Float[Array, " m"]:
        return jnp.concatenate([self.polytope.residuals(a), self._overhang(a)])

    def residual_names(self) -> tuple[str, ...]:
        cones = (f"||F a + f|| - c a - d, cone {j}" for j in range(len(self.sizes)))
        return *self.polytope.residual_names(), *cones

    @compiled
    def accepts(self, a: Float[Array, " n"]) -> Bool[Array, ""]:
        """As of the polytope, with its half a unit where there are equalities."""
        return self.polytope.accepts(a) & jnp.all(self._overhang(a) <= 0.5) if self._equalities else self.contains(a)

    def slopes(self) -> Float[Array, " m"]:
        cones = [jnp.linalg.norm(block[0]) + jnp.linalg.norm(block[1:]) for block in self._split(self.map)]
        return jnp.concatenate([self.polytope.slopes(), jnp.stack(cones)])

    @compiled
    def project(self, z: Float[Array, " n"]) -> Float[Array, " n"]:
        a = self._pulled_in_tangent(self._minimise(z - self.middle, curvature=1.0))
        return jnp.where(self.violation(stop_gradient(z)) <= 4 * jnp.finfo(self.dtype).eps * self.scale, z, a)

    @compiled
    def maximise_linear(self, g: Float[Array, " n"]) -> Float[Array, " n"]:
        best = self._pulled_in_tangent(self._minimise(g, curvature=0.0))
        return jnp.where(jnp.any(g != 0), best, self.middle)

    @compiled
    def exit_distance(self, origin: Float[Array, " n"], direction: Float[Array, " n"]) -> Float[Array, ""]:
        return jnp.minimum(self.polytope.exit_distance(origin, direction), jnp.min(self._exits(origin, direction)))

    def centre(self) -> Float[Array, " n"]:
        return self.middle

    def direction(self, key: PRNGKeyArray) -> Float[Array, " n"]:
        return self.polytope.direction(key)

    @property
    def hull_dim(self) -> int:
        return self.polytope.hull_dim

    def hull_basis(self) -> Float[Array, "n d"]:
        return self.polytope.hull_basis()

    @drawn
    def sample(self, key: PRNGKeyArray) -> Float[Array, " n"]:
        return hit_and_run(self, key)

    def diameter(self) -> Float[Array, ""]:
        return self.polytope.diameter()

    def clipped(self, low: Bound, high: Bound) -> "ConePolytope":
        polytope = self.polytope.clipped(low, high)
        if polytope is self.polytope:
            return self
        blocks = zip(self._split(self.map), self._split(self.offset), strict=True)
        return ConePolytope(polytope, [Cone(rows[1:], rest[1:], rows[0], rest[0]) for rows, rest in blocks])

    @property
    def _equalities(self) -> int:
        return self.polytope.A_eq.shape[0]

    def _split(self, stacked: Array) -> list[Array]:
        ends = [sum(self.sizes[: j + 1]) for j in range(len(self.sizes) - 1)]
        return jnp.split(stacked, ends)

    def _overhang(self, a: Float[Array, " n"]) -> Float[Array, " j"]:
        """||F a + f|| - (c . a + d), cone by cone."""
        return jnp.stack([safe_norm(block[1:]) - block[0] for block in self._split(self.map @ a + self.offset)])

    def _minimise(self, target: Float[Array, " n"], *, curvature: float) -> Float[Array, " n"]:
        """In coordinates around the centre and in units of the cones, so that rounding follows the set's extent."""
        rows, limits = self.polytope.system()
        size = stop_gradient(jnp.maximum(0.5 * self.polytope.diameter(), jnp.finfo(self.dtype).tiny))
        units = jnp.concatenate([jnp.full(len(block), 1.0) / _unit(block) for block in self._split(self.map)])
        moved = minimise_over_cones(
            target,
            rows,
            limits - rows @ self.middle,
            self._equalities,
            units[:, None] * self.map,
            units * (self.map @ self.middle + self.offset),
            self.sizes,
            size,
            curvature=curvature,
        )
        return self.middle + moved

    def _pulled_in_tangent(self, a: Float[Array, " n"]) -> Float[Array, " n"]:
        """The point pulled in, with the derivative of the point itself."""
        inside = self.polytope.pulled_in(stop_gradient(a))
        rounding = 4 * jnp.finfo(self.dtype).eps * self.scale
        outside = self.in_action_units(self.residuals(inside))[-len(self.sizes) :] > rounding
        exits = jnp.where(outside, self._exits(self.middle, inside - self.middle), 1.0)
        share = jnp.minimum(jnp.min(exits), 1.0)
        return with_tangent_of(a, self.middle + share * (inside - self.middle))

    def _exits(self, origin: Float[Array, " n"], direction: Float[Array, " n"]) -> Float[Array, " j"]:
        """Largest t for which ||w + t v|| <= h + t k, cone by cone: the first root of a quadratic."""
        at, along = self._split(self.map @ origin + self.offset), self._split(self.map @ direction)
        return jnp.stack([_cone_exit(x, v) for x, v in zip(at, along, strict=True)])


def _block(cone: Cone, polytope: Polytope) -> Float[Array, "k n+1"]:
    """The rows (c, d) and (F, f) of a cone, in the dtype of the polytope."""
    F, f, c, d = floats("ConePolytope", F=cone.F, f=cone.f, c=cone.c, d=cone.d)
    n = polytope.dim
    if F.ndim != 2 or F.shape[1] != n or f.shape != F.shape[:1] or c.shape != (n,) or d.shape != ():
        raise ValueError(
            f"ConePolytope: a cone of {n} actions has F of shape (k, {n}), f of shape (k,), c of shape ({n},) and a "
            f"number d, but the shapes are {F.shape}, {f.shape}, {c.shape} and {d.shape}."
        )
    head = jnp.append(c, d)[None]
    return jnp.concatenate([head, jnp.concatenate([F, f[:, None]], axis=1)]).astype(polytope.dtype)


def _unit(block: Float[Array, "k n"]) -> Float[Array, ""]:
    """How steep the rows of a cone are; 1 where they do not depend on the action."""
    square = jnp.sum(block**2)
    return jnp.sqrt(jnp.where(square > 0, square, 1.0))


def _cone_exit(at: Float[Array, " k"], along: Float[Array, " k"]) -> Float[Array, ""]:
    """The t at which at + t along leaves the cone."""
    peak = stop_gradient(jnp.max(jnp.abs(along)))
    unit = jnp.where(peak > 0, peak, 1.0)  # of the direction, whose squares would underflow where it is slow
    along = along / unit
    bend = jnp.vdot(along[1:], along[1:]) - along[0] ** 2
    lean = jnp.vdot(at[1:], along[1:]) - at[0] * along[0]
    reach = safe_norm(at[1:])
    room = jnp.maximum((at[0] - reach) * (at[0] + reach), 0.0)
    return quadratic_exit(bend, lean, room) / unit


@functools.partial(inlined_or_soon, static_argnums=3)
def _deepest(
    polytope: Polytope, map: Float[Array, "k n"], offset: Float[Array, " k"], sizes: tuple[int, ...]
) -> Float[Array, " n"]:
    """The x with the largest r for which a ball of radius r about it is in the polytope and the cones' heads spare r.

    A linear maximisation over (x, r), with cones in units of their steepness.
    """
    start, n = polytope.centre(), polytope.dim
    rows, limits = depth_rows(*polytope.system(), polytope.A_eq.shape[0])
    size = jnp.maximum(0.5 * polytope.diameter(), jnp.finfo(map.dtype).tiny)
    top = jnp.zeros((1, n + 1), map.dtype).at[0, -1].set(1.0)  # r is bounded also where no row bounds it
    ends = [sum(sizes[: j + 1]) for j in range(len(sizes) - 1)]
    blocks = [
        jnp.concatenate([block, (map @ start + offset)[first : first + len(block), None]], axis=1) / _unit(block)
        for first, block in zip([0, *ends], jnp.split(map, ends), strict=True)
    ]
    spared = [jnp.zeros((len(block), 1), map.dtype).at[0].set(-1.0) for block in blocks]
    found = minimise_over_cones(
        top[0],
        jnp.concatenate([rows, top]),
        jnp.append(limits - rows[:, :-1] @ start, size),
        polytope.A_eq.shape[0],
        jnp.concatenate([jnp.concatenate([b[:, :-1], s], axis=1) for b, s in zip(blocks, spared, strict=True)]),
        jnp.concatenate([block[:, -1] for block in blocks]),
        sizes,
        size,
        curvature=0.0,
    )
    return start + found[:-1]
