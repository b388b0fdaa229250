"""The box {low <= a <= high}."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from feasible.errors import EmptySetError
from feasible.sets.arguments import Numbers, floats, require, vectors
from feasible.sets.base import ActionSet, compiled, drawn, entries
from feasible.sets.sampling import gaussian
from feasible.solve.breakpoints import clamp


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
        return jnp.where(g > 0, self.high, jnp.where(g < 0, self.low, self.centre()))

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

    def execute(self, z: Numbers) -> Float[Array, " n"]:
        return self.project(z)


def ordered_bounds(owner: str, low: Array, high: Array) -> list[Array]:
    """The bounds as vectors of one length with low <= high."""
    low, high = vectors(owner, low=low, high=high)
    require(owner, low <= high, "low must not exceed high in any entry", EmptySetError)
    return [low, high]


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
