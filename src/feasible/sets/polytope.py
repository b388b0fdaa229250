"""Polytopes: linear rows in a box, such as the link capacities of a network."""

import jax
import jax.numpy as jnp
from jax.lax import stop_gradient
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from feasible.compiling import inlined_or_soon
from feasible.errors import EmptySetError
from feasible.sets.arguments import Numbers, floats, known, read, require, vectors
from feasible.sets.base import TOLERANCE, ActionSet, compiled, drawn, entries, rows
from feasible.sets.box import Bound, inside, ordered_bounds, stays_level, tighter
from feasible.sets.sampling import gaussian, hit_and_run
from feasible.sets.vertices import enumerate_vertices
from feasible.solve.bounded_qp import nearest_in_bounded_polytope
from feasible.solve.lp import chebyshev_centre, highest_in_polytope
from feasible.solve.qp import nearest_in_polytope
from feasible.solve.splitting import Projection
from feasible.solve.tangent import with_tangent_of
from feasible.solve.working_set import hold_equalities

FEW = 12  # rows or variables up to which a place for each row costs less than looking for one


class Polytope(ActionSet):
    """{a : A a <= b, low <= a <= high, A_eq a = b_eq}; every array may depend on the state.

    Projection: a dual active-set method, exact at the end of finitely many steps (at most 4 (rows + n), usually about
    as many as rows bind), each O(rows n). Linear maximisation: a primal active-set method of the same cost from the
    centre; for gradient zero, the centre. Where rounding leaves a point outside, it is pulled in along the ray to the
    centre. The centre is a Chebyshev centre (of a largest ball inside, within the plane of the equalities); of a
    polytope without interior, some point.

    A polytope whose values are known (one built outside `jit`) keeps its vertices, in up to 10 dimensions and if they
    are no more than 512: linear maximisation is then one matrix product and the diameter exact;
    otherwise the diameter is that of the box. Samples: hit-and-run in the plane of the equalities.
    """

    A: Float[Array, "m n"]
    b: Float[Array, " m"]
    low: Float[Array, " n"]
    high: Float[Array, " n"]
    A_eq: Float[Array, "p n"]
    b_eq: Float[Array, " p"]
    middle: Float[Array, " n"]
    vertices: Float[Array, "v n"] | None

    def __init__(
        self,
        A: Numbers,
        b: Numbers,
        low: Numbers,
        high: Numbers,
        A_eq: Numbers | None = None,
        b_eq: Numbers | None = None,
    ):
        if (A_eq is None) != (b_eq is None):
            raise ValueError("Polytope: A_eq and b_eq must be given together.")
        fields = floats("Polytope", A=A, b=b, low=low, high=high)
        if A_eq is not None and b_eq is not None:
            fields += floats("Polytope", A_eq=A_eq, b_eq=b_eq)
            common = jnp.promote_types(fields[0].dtype, fields[-1].dtype)
            fields = [field.astype(common) for field in fields]
        self.A, self.b = _rows("Polytope", "A", fields[0], "b", fields[1])
        n = self.A.shape[1]
        low, high, _ = vectors("Polytope", low=fields[2], high=fields[3], columns_of_A=jnp.zeros(n, self.A.dtype))
        self.low, self.high = ordered_bounds("Polytope", low, high)
        if len(fields) == 6:
            self.A_eq, self.b_eq = _rows("Polytope", "A_eq", fields[4], "b_eq", fields[5])
            if self.A_eq.shape[1] != n:
                raise ValueError(f"Polytope: A_eq must have {n} columns like A, but has shape {self.A_eq.shape}.")
        else:
            self.A_eq, self.b_eq = jnp.zeros((0, n), self.A.dtype), jnp.zeros(0, self.A.dtype)
        fields = (self.A, self.b, self.low, self.high, self.A_eq, self.b_eq)
        self.middle, radius, least, rows, limits = _deepest(*map(stop_gradient, fields))
        p = self.A_eq.shape[0]
        require("Polytope", read(radius) >= read(least), "A, b and the bounds leave no point", EmptySetError)
        self.vertices = enumerate_vertices(rows, limits, p, self.middle, radius) if known(radius) else None

    @property
    def dim(self) -> int:
        return self.low.shape[-1]

    @property
    def scale(self) -> Float[Array, ""]:
        return jnp.max(jnp.maximum(jnp.abs(self.low), jnp.abs(self.high)))

    @compiled
    def residuals(self, a: Float[Array, " n"]) -> Float[Array, " m"]:
        gap = self.A_eq @ a - self.b_eq
        return jnp.concatenate([gap, -gap, self.A @ a - self.b, self.low - a, a - self.high])

    @compiled
    def accepts(self, a: Float[Array, " n"]) -> Bool[Array, ""]:
        """With equalities: whether no row and no bound is missed by more than half a unit."""
        return jnp.max(self.residuals(a)) <= 0.5 if len(self.A_eq) else self.contains(a)

    def residual_names(self) -> tuple[str, ...]:
        return (
            *rows("A_eq a - b_eq", len(self.A_eq)),
            *rows("b_eq - A_eq a", len(self.A_eq)),
            *rows("A a - b", len(self.A)),
            *entries("low - a", self.dim),
            *entries("a - high", self.dim),
        )

    def slopes(self) -> Float[Array, " m"]:
        equal = jnp.linalg.norm(self.A_eq, axis=1)
        ones = jnp.ones(2 * self.dim, self.dtype)
        return jnp.concatenate([equal, equal, jnp.linalg.norm(self.A, axis=1), ones])

    @compiled
    def project(self, z: Float[Array, " n"]) -> Float[Array, " n"]:
        a = self._nearest(z)
        return with_tangent_of(a, self.pulled_in(a))

    @property
    def pieces(self) -> tuple[Projection, ...]:
        return (self._nearest,)

    def _nearest(self, z: Float[Array, " n"]) -> Float[Array, " n"]:
        rows, limits = self.system()
        equalities, own = self.A_eq.shape[0], len(rows) - 2 * self.dim
        if max(own, self.dim) <= FEW:
            return nearest_in_polytope(z, rows, limits, equalities)
        return nearest_in_bounded_polytope(z, rows[:own], limits[:own], self.low, self.high, equalities)

    @compiled
    def maximise_linear(self, g: Float[Array, " n"]) -> Float[Array, " n"]:
        if self.vertices is not None:
            best = self.vertices[jnp.argmax(self.vertices @ g)]
            best = jnp.where(jnp.any(jnp.isnan(g)), jnp.nan, best)
            return jnp.where(jnp.any(g != 0), best, self.centre())
        return self.pulled_in(highest_in_polytope(g, self.centre(), *self.system(), self.A_eq.shape[0]))

    @compiled
    def exit_distance(self, origin: Float[Array, " n"], direction: Float[Array, " n"]) -> Float[Array, ""]:
        rows, limits = self.system()
        p = self.A_eq.shape[0]
        speed, room = rows @ direction, jnp.maximum(limits - rows @ origin, 0.0)
        rising = (speed > 0) & (jnp.arange(rows.shape[0]) >= p)
        time = jnp.min(jnp.where(rising, room / jnp.where(rising, speed, 1.0), jnp.inf))
        return jnp.where(jnp.all(stays_level(speed[:p], time, self.dim, self.scale)), time, 0.0)

    def centre(self) -> Float[Array, " n"]:
        return self.middle

    def direction(self, key: PRNGKeyArray) -> Float[Array, " n"]:
        width = self.high - self.low
        pins = jnp.where((width > 0)[:, None], 0.0, jnp.eye(self.dim, dtype=self.dtype))
        equalities = self.system()[0][: self.A_eq.shape[0]]
        plane = hold_equalities(jnp.concatenate([equalities, pins]), len(equalities) + self.dim)
        return plane.null @ gaussian(key, width)

    @property
    def hull_dim(self) -> int:
        return self.dim - self.A_eq.shape[0]

    def hull_basis(self) -> Float[Array, "n d"]:
        """By Householder reflections of the equalities; of dependent ones, a part of the directions."""
        p = self.A_eq.shape[0]
        if p == 0:
            return super().hull_basis()
        return jnp.linalg.qr(self.A_eq.T, mode="complete")[0][:, p:]

    @drawn
    def sample(self, key: PRNGKeyArray) -> Float[Array, " n"]:
        return hit_and_run(self, key)

    @compiled
    def diameter(self) -> Float[Array, ""]:
        if self.vertices is not None:
            return jnp.max(jax.vmap(lambda v: jnp.max(jnp.linalg.norm(self.vertices - v[None], axis=1)))(self.vertices))
        return jnp.linalg.norm(self.high - self.low)

    def clipped(self, low: Bound, high: Bound) -> "Polytope":
        if inside(self.low, self.high, low, high):
            return self
        return Polytope(self.A, self.b, *tighter(self.low, self.high, low, high), self.A_eq, self.b_eq)

    def system(self) -> tuple[Float[Array, "m n"], Float[Array, " m"]]:
        """All rows as unit vectors, equalities first: rows a <= limits."""
        return _system(self.A, self.b, self.low, self.high, self.A_eq, self.b_eq)

    def pulled_in(self, a: Float[Array, " n"]) -> Float[Array, " n"]:
        """The point on the ray from the centre to a where the last row violated beyond rounding is met."""
        rows, limits = self.system()
        middle = self.middle
        plane = hold_equalities(rows, self.A_eq.shape[0])
        a = a - jnp.where(plane.held, rows @ a - limits, 0.0) @ plane.inverse  # what rounding left of the equalities
        over = rows @ a - limits
        room = jnp.maximum(limits - rows @ middle, 0.0)
        rounding = 16 * jnp.finfo(self.dtype).eps * self.scale
        outside = (over > rounding) & (jnp.arange(rows.shape[0]) >= self.A_eq.shape[0])
        share = jnp.min(jnp.where(outside, room / jnp.where(outside, room + over, 1.0), 1.0))
        return middle + share * (a - middle)


def _system(
    A: Float[Array, "m n"],
    b: Float[Array, " m"],
    low: Float[Array, " n"],
    high: Float[Array, " n"],
    A_eq: Float[Array, "p n"],
    b_eq: Float[Array, " p"],
) -> tuple[Float[Array, "r n"], Float[Array, " r"]]:
    eye = jnp.eye(low.shape[0], dtype=A.dtype)
    rows = jnp.concatenate([A_eq, A])
    limits = jnp.concatenate([b_eq, b])
    square = jnp.sum(rows**2, axis=1)
    norms = jnp.sqrt(jnp.where(square > 0, square, 1.0))
    return jnp.concatenate([rows / norms[:, None], eye, -eye]), jnp.concatenate([limits / norms, high, -low])


@inlined_or_soon
def _deepest(
    A: Float[Array, "m n"],
    b: Float[Array, " m"],
    low: Float[Array, " n"],
    high: Float[Array, " n"],
    A_eq: Float[Array, "p n"],
    b_eq: Float[Array, " p"],
) -> tuple[Float[Array, " n"], Float[Array, ""], Float[Array, ""], Float[Array, "r n"], Float[Array, " r"]]:
    """Centre and radius of a largest ball inside, the radius of an empty set, and the rows: one program for all."""
    system = _system(A, b, low, high, A_eq, b_eq)
    middle, radius = chebyshev_centre(*system, A_eq.shape[0], low + 0.5 * (high - low))
    scale = jnp.max(jnp.maximum(jnp.abs(low), jnp.abs(high)))
    return middle, radius, -TOLERANCE * scale, *system


def _rows(owner: str, name: str, matrix: Array, limit_name: str, limits: Array) -> tuple[Array, Array]:
    if matrix.ndim != 2 or matrix.shape[1] == 0:
        raise ValueError(f"{owner}: {name} must be a matrix with a row a constraint, but has shape {matrix.shape}.")
    if limits.shape not in ((), (matrix.shape[0],)):
        raise ValueError(
            f"{owner}: {limit_name} must have one entry for each of the {matrix.shape[0]} rows of {name}, "
            f"but has shape {limits.shape}."
        )
    return matrix, jnp.broadcast_to(limits, (matrix.shape[0],))
