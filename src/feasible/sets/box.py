"""The box {low <= a <= high}."""

from typing import Protocol, TypeAlias, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from feasible.errors import EmptySetError
from feasible.sets.arguments import Numbers, floats, known, read, require, scalar, vectors
from feasible.sets.base import TOLERANCE, ActionSet, compiled, drawn, entries
from feasible.sets.sampling import gaussian
from feasible.solve.breakpoints import clamp

# One side of a box, known, of a set's length and dtype; entries may be infinite.
Bound: TypeAlias = Float[np.ndarray, " n"]


class _Symmetric(Protocol):
    @property
    def bound(self) -> Float[Array, " n"]: ...


Symmetric = TypeVar("Symmetric", bound=_Symmetric)


class Box(ActionSet):
    """{a : low <= a <= high}, coordinate by coordinate.

    Projection clips, linear maximisation takes the end that the gradient's sign names (the middle where the gradient
    is zero), both O(n). Samples are uniform. The diameter is exact. A point (low = high) is an ordinary box.
    """

    low: Float[Array, " n"]
    high: Float[Array, " n"]

    def __init__(self, low: Numbers, high: Numbers):
        self.low, self.high = ordered_bounds("Box", *floats("Box", low=low, high=high))

    @property
    def dim(self) -> int:
        return self.low.shape[-1]

    @property
    def scale(self) -> Float[Array, ""]:
        return jnp.max(jnp.maximum(jnp.abs(self.low), jnp.abs(self.high)))

    @compiled
    def residuals(self, a: Float[Array, " n"]) -> Float[Array, " m"]:
        return jnp.concatenate([self.low - a, a - self.high])

    def residual_names(self) -> tuple[str, ...]:
        return entries("low - a", self.dim) + entries("a - high", self.dim)

    def slopes(self) -> Float[Array, " m"]:
        return jnp.ones(2 * self.dim, self.dtype)

    @compiled
    def project(self, z: Float[Array, " n"]) -> Float[Array, " n"]:
        return clamp(z, self.low, self.high)

    @compiled
    def maximise_linear(self, g: Float[Array, " n"]) -> Float[Array, " n"]:
        level = jnp.where(g == 0, self.centre(), jnp.nan)
        return jnp.where(g > 0, self.high, jnp.where(g < 0, self.low, level))

    @compiled
    def exit_distance(self, origin: Float[Array, " n"], direction: Float[Array, " n"]) -> Float[Array, ""]:
        return box_exit(origin, direction, self.low, self.high)

    @compiled
    def centre(self) -> Float[Array, " n"]:
        return self.low + 0.5 * (self.high - self.low)

    def direction(self, key: PRNGKeyArray) -> Float[Array, " n"]:
        return gaussian(key, self.high - self.low)

    @drawn
    def sample(self, key: PRNGKeyArray) -> Float[Array, " n"]:
        share = jax.random.uniform(key, self.low.shape, self.dtype)
        return clamp(self.low + share * (self.high - self.low), self.low, self.high)

    @compiled
    def diameter(self) -> Float[Array, ""]:
        return jnp.linalg.norm(self.high - self.low)

    def clipped(self, low: Bound, high: Bound) -> "Box":
        return self if inside(self.low, self.high, low, high) else Box(*tighter(self.low, self.high, low, high))


def inside(low: Array | Bound, high: Array | Bound, least: Bound, most: Bound) -> bool:
    """Whether low and high are known to lie between least and most, up to the tolerance of the smaller of the boxes."""
    if not known(low, high):
        return False
    sides = np.stack([least, most])
    scale = min(np.max(np.abs([low, high])), np.max(np.abs(sides), where=np.isfinite(sides), initial=0.0))
    slack = TOLERANCE * scale
    return bool(np.all(np.asarray(low) >= least - slack) and np.all(np.asarray(high) <= most + slack))


def tighter(low: Array, high: Array, least: Bound, most: Bound) -> tuple[Array, Array]:
    """The bounds of the box that lies in both."""
    return jnp.maximum(low, least), jnp.minimum(high, most)


def narrower(one: Symmetric, least: Bound, most: Bound) -> Symmetric | None:
    """A set in a box |a_i| <= bound_i in another box as well, where that is symmetric too or excludes nothing."""
    if known(one.bound) and inside(-np.asarray(one.bound), one.bound, least, most):
        return one
    return eqx.tree_at(lambda s: s.bound, one, jnp.minimum(one.bound, most)) if np.array_equal(least, -most) else None


def ordered_bounds(owner: str, low: Array, high: Array) -> list[Array]:
    """The bounds as vectors of one length with low <= high."""
    low, high = vectors(owner, low=low, high=high)
    require(owner, read(low) <= read(high), "low must not exceed high in any entry", EmptySetError)
    return [low, high]


def limit_in_box(owner: str, low: Numbers, high: Numbers, **limit: Numbers) -> list[Array]:
    """A vector and a number that limit what is between the bounds, given by name in this order, and the bounds."""
    vector, number = limit
    given, value, lowest, highest = floats(owner, **limit, low=low, high=high)
    given, lowest, highest = vectors(owner, **{vector: given}, low=lowest, high=highest)
    bounds = ordered_bounds(owner, lowest, highest)
    return [given, scalar(owner, number, value), *bounds]


def box_exit(
    origin: Float[Array, " n"],
    direction: Float[Array, " n"],
    low: Float[Array, " n"],
    high: Float[Array, " n"],
) -> Float[Array, ""]:
    """Largest t with low <= origin + t direction <= high."""
    moving = direction != 0
    room = jnp.where(direction > 0, high - origin, low - origin)
    times = jnp.where(moving, room / jnp.where(moving, direction, 1.0), jnp.inf)
    return jnp.maximum(jnp.min(times), 0.0)


def stays_level(speed: Float[Array, "*p"], time: Float[Array, ""], dim: int, scale: Float[Array, ""]) -> Array:
    """Whether a direction keeps equalities until `time`, when it leaves the rest of the set; `speed` is their change.

    One between two points of the set keeps them up to the points' rounding, which is of their scale however near they
    are: it may lead off by no more than a hundred roundings, or, if its speed is a rounding itself, by what tolerances
    do not see. Any other direction leaves the set at once.
    """
    rounding = jnp.finfo(scale.dtype).eps * dim * scale
    drift = jnp.abs(speed) * jnp.where(jnp.isfinite(time), time, 0.0)
    return (drift <= 128 * rounding) | ((jnp.abs(speed) <= 4 * rounding) & (drift <= 0.1 * TOLERANCE * scale))
