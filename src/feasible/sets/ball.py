"""The Euclidean ball: Reacher's joint-torque limit u1^2 + u2^2 <= 0.05."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from feasible.errors import EmptySetError
from feasible.sets.arguments import Numbers, floats, require, scalar, vectors
from feasible.sets.base import ActionSet, compiled, drawn
from feasible.sets.sampling import gaussian


class Ball(ActionSet):
    """{a : ||a - centre|| <= radius}.

    Projection scales the offset from the centre to the radius; linear maximisation goes a radius along the gradient
    (to the centre for gradient zero); both O(n). Norms are computed after division by the largest entry, so that
    neither 1e30 nor 1e-30 overflows. Samples are uniform. The diameter is exact. Radius zero is an ordinary ball.
    """

    middle: Float[Array, " n"]
    radius: Float[Array, ""]

    def __init__(self, centre: Numbers, radius: Numbers):
        middle, length = floats("Ball", centre=centre, radius=radius)
        (self.middle,) = vectors("Ball", centre=middle)
        self.radius = scalar("Ball", "radius", length)
        require("Ball", self.radius >= 0, "radius must not be negative", EmptySetError)

    @property
    def dim(self) -> int:
        return self.middle.shape[-1]

    @property
    def scale(self) -> Float[Array, ""]:
        return jnp.max(jnp.abs(self.middle)) + self.radius

    @compiled
    def residuals(self, a: Float[Array, " n"]) -> Float[Array, " m"]:
        return jnp.atleast_1d(safe_norm(a - self.middle) - self.radius)

    def residual_names(self) -> tuple[str, ...]:
        return ("||a - centre|| - radius",)

    def slopes(self) -> Float[Array, " m"]:
        return jnp.ones(1, self.dtype)

    @compiled
    def project(self, z: Float[Array, " n"]) -> Float[Array, " n"]:
        offset = z - self.middle
        distance = safe_norm(offset)
        tiny = jnp.finfo(self.dtype).tiny
        outside = distance > jnp.maximum(self.radius, tiny)
        # The derivative divides by the squared distance. Where that underflows, a ball that is nearer than z is as good
        # as a point, and the distance counts as constant: the Jacobian is radius / distance, 0 for a point.
        close = outside & (distance < 2.0 * tiny**0.5)
        share = self.radius / jnp.where(outside & ~close, distance, 1.0)
        share = jnp.where(close, self.radius / jax.lax.stop_gradient(jnp.where(close, distance, 1.0)), share)
        shrunk = self.middle + share * offset
        return jnp.where(outside, shrunk, z)

    @compiled
    def maximise_linear(self, g: Float[Array, " n"]) -> Float[Array, " n"]:
        return self.middle + self.radius * unit(g)

    @compiled
    def exit_distance(self, origin: Float[Array, " n"], direction: Float[Array, " n"]) -> Float[Array, ""]:
        speed = safe_norm(direction)
        heading = unit(direction)
        offset = origin - self.middle
        along = jnp.vdot(heading, offset)
        across = offset - along * heading
        half_chord = jnp.sqrt(jnp.maximum(self.radius**2 - jnp.vdot(across, across), 0.0))
        moving = speed > 0
        return jnp.where(moving, jnp.maximum(half_chord - along, 0.0) / jnp.where(moving, speed, 1.0), jnp.inf)

    def centre(self) -> Float[Array, " n"]:
        return self.middle

    def direction(self, key: PRNGKeyArray) -> Float[Array, " n"]:
        return gaussian(key, jnp.broadcast_to(self.radius, self.middle.shape))

    @drawn
    def sample(self, key: PRNGKeyArray) -> Float[Array, " n"]:
        return self.project(self.middle + self.radius * jax.random.ball(key, self.dim, dtype=self.dtype))

    def diameter(self) -> Float[Array, ""]:
        return 2.0 * self.radius


def safe_norm(x: Float[Array, " n"]) -> Float[Array, ""]:
    """||x|| without overflow or underflow, with derivative zero at the origin; NaN for a NaN."""
    peak = jax.lax.stop_gradient(jnp.max(jnp.abs(x)))
    nonzero = peak != 0
    unscaled = x / jnp.where(nonzero, peak, 1.0)
    square = jnp.vdot(unscaled, unscaled)
    return jnp.where(nonzero, peak * jnp.sqrt(jnp.where(nonzero, square, 1.0)), 0.0)


def unit(x: Float[Array, " n"]) -> Float[Array, " n"]:
    """x / ||x||, and 0 for the zero vector; NaN for a NaN."""
    length = safe_norm(x)
    return jnp.where(length == 0, 0.0, x / jnp.where(length == 0, 1.0, length))
