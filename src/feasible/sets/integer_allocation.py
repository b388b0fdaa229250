"""Integer allocations: whole bikes over stations."""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from feasible.sets.allocation import Allocation, allocation_fields
from feasible.sets.arguments import Numbers, floats, require
from feasible.sets.base import ActionSet, compiled, drawn
from feasible.sets.box import Bound, inside, tighter
from feasible.solve.exact import exact_difference


class IntegerAllocation(ActionSet):
    """The integer points of {a : low <= a <= high, sum_i a_i = total}, for an integer total.

    Learning sees the convex hull: bounds become ceil(low) and floor(high), and since the constraint matrix (one row
    of ones and the identity) is totally unimodular, the hull of the integer points is the `Allocation` with those
    bounds. Residuals, projection, linear maximisation (whose answers are vertices, hence integers), gap and diameter
    are the hull's. `execute` returns the EXACT nearest integer point, ties to the lowest index; `integrality(a)` says
    how far a point is from the integers. Samples: the nearest integer points of the hull's hit-and-run samples.

    Why `execute` is exact. Let U be the set of units (i, v), low_i <= v < high_i, where taking (i, v) means raising
    a_i from v to v + 1, at the cost (v + 1 - z_i)^2 - (v - z_i)^2 = 2 (v - z_i) + 1. Costs rise with v, so any
    choice of the cheapest total - sum(low) units takes every coordinate's units from the bottom: it is an allocation,
    and no allocation is cheaper. So the answer takes the units of smallest key v - z_i, in order of (key, i).
    The continuous projection clip(z - t, low, high) takes, up to a fraction, the units with key below -t; rounding it
    to integers with the right sum differs from the answer by at most one unit a coordinate (units with keys in
    (-t - 1, -t] are in, those with keys above -t + 1 out). Hence it is enough to rank, for each coordinate, the
    units from one below to one above the rounded value: 3 n keys instead of sum(high - low). Keys are compared with
    the rounding error of v - z_i as second digit, so the order is that of exact arithmetic. Cost: one sort of 3 n.

    Above 1 / eps (2^23 in float32) a dtype has no halves between whole numbers and sums miss units: a total or a bound
    beyond is refused, and where it is traced, `execute` answers NaN.
    """

    hull: Allocation

    def __init__(self, total: Numbers, low: Numbers, high: Numbers):
        total, low, high = floats("IntegerAllocation", total=total, low=low, high=high)
        require("IntegerAllocation", total == jnp.round(total), "total must be an integer")
        fields = allocation_fields("IntegerAllocation", total, jnp.ceil(low), jnp.floor(high), equality=True)
        self.hull = Allocation(*fields)
        largest = f"2^{-round(math.log2(jnp.finfo(self.dtype).eps))}"
        require(
            "IntegerAllocation",
            self._exact(),
            f"total, low and high must not exceed {largest} in {self.dtype}, which cannot count further; use float64",
        )

    @property
    def dim(self) -> int:
        return self.hull.dim

    @property
    def scale(self) -> Float[Array, ""]:
        return self.hull.scale

    def residuals(self, a: Numbers) -> Float[Array, " m"]:
        return self.hull.residuals(a)

    def accepts(self, a: Numbers) -> Bool[Array, ""]:
        return self.hull.accepts(a)

    def residual_names(self) -> tuple[str, ...]:
        return self.hull.residual_names()

    def slopes(self) -> Float[Array, " m"]:
        return self.hull.slopes()

    def project(self, z: Numbers) -> Float[Array, " n"]:
        return self.hull.project(z)

    def maximise_linear(self, g: Numbers) -> Float[Array, " n"]:
        return self.hull.maximise_linear(g)

    @property
    def hull_dim(self) -> int:
        return self.hull.hull_dim

    def hull_basis(self) -> Float[Array, "n d"]:
        return self.hull.hull_basis()

    def exit_distance(self, origin: Numbers, direction: Numbers) -> Float[Array, ""]:
        return self.hull.exit_distance(origin, direction)

    def centre(self) -> Float[Array, " n"]:
        return self.hull.centre()

    def direction(self, key: PRNGKeyArray) -> Float[Array, " n"]:
        return self.hull.direction(key)

    @drawn
    def sample(self, key: PRNGKeyArray) -> Float[Array, " n"]:
        return self.execute(self.hull.sample(key))

    def diameter(self) -> Float[Array, ""]:
        return self.hull.diameter()

    @compiled
    def execute(self, z: Float[Array, " n"]) -> Float[Array, " n"]:
        low, high = self.hull.low, self.hull.high
        base = jnp.clip(jnp.round(self.hull.project(z)) - 1.0, low, high)
        units = base[:, None] + jnp.arange(3, dtype=self.dtype)[None, :]
        key, rest = exact_difference(units, z[:, None])
        key = jnp.where(units < high[:, None], key, jnp.inf)
        index = jnp.arange(3 * self.dim)
        *_, order = jax.lax.sort((key.ravel(), rest.ravel(), index), num_keys=3)
        rank = jnp.zeros_like(index).at[order].set(index).reshape(self.dim, 3)
        wanted = jnp.round(self.hull.total - jnp.sum(base)).astype(rank.dtype)
        return jnp.where(self._exact(), base + jnp.sum(rank < wanted, axis=1).astype(self.dtype), jnp.nan)

    @compiled
    def integrality(self, a: Float[Array, " n"]) -> Float[Array, ""]:
        """Largest distance of a coordinate from the nearest integer."""
        return jnp.max(jnp.abs(a - jnp.round(a)))

    def clipped(self, low: Bound, high: Bound) -> "IntegerAllocation":
        hull = self.hull
        if inside(hull.low, hull.high, low, high):
            return self
        return IntegerAllocation(hull.total, *tighter(hull.low, hull.high, low, high))

    def _exact(self) -> Bool[Array, ""]:
        """Whether the dtype tells all the numbers of units that occur apart."""
        return jnp.maximum(jnp.abs(self.hull.total), self.scale) <= 1.0 / jnp.finfo(self.dtype).eps
