"""A ball cut by a box: a limit on the length of a step, or on joint torques, on actions with bounds."""

import jax.numpy as jnp
from jax.lax import stop_gradient
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from feasible.errors import EmptySetError
from feasible.sets.arguments import Numbers, require
from feasible.sets.ball import Ball, safe_norm
from feasible.sets.base import TOLERANCE, ActionSet, compiled, drawn, entries
from feasible.sets.box import Bound, box_exit, inside, limit_in_box, tighter
from feasible.sets.sampling import gaussian, hit_and_run
from feasible.solve.breakpoints import bracket, clamp


class BallBox(ActionSet):
    """{a : ||a - centre|| <= radius, low <= a <= high}: what `Ball & Box` is.

    Around the ball's centre, the projection is a = clip(s z, low, high) with the one s <= 1 that gives the length of
    the radius, and a linear maximiser is clip(s g, low, high) with s up to infinity: the length grows with s, and
    between the places where a coordinate meets a bound its square is a + b s^2. So both are exact by breakpoints:
    O(n^2) operations in one kernel for few coordinates, O(n log n) for many. Radius zero, pinned coordinates (low =
    high) and a box that only touches the ball are ordinary sets.

    The centre is a Chebyshev centre: of the places of a largest ball inside, the one nearest to the ball's own centre.
    Coordinates without room are left out of the ball. Samples: hit-and-run. The diameter is the upper bound that ball
    and bounding box give.
    """

    middle: Float[Array, " n"]
    radius: Float[Array, ""]
    low: Float[Array, " n"]
    high: Float[Array, " n"]

    def __init__(self, centre: Numbers, radius: Numbers, low: Numbers, high: Numbers):
        owner = "BallBox"
        self.middle, self.radius, self.low, self.high = limit_in_box(owner, low, high, centre=centre, radius=radius)
        require(owner, self.radius >= 0, "radius must not be negative", EmptySetError)
        apart = safe_norm(clamp(self.middle, self.low, self.high) - self.middle)
        size = jnp.max(jnp.maximum(jnp.abs(self.low), jnp.abs(self.high)))
        touching = apart <= self.radius + TOLERANCE * jnp.maximum(size, jnp.max(jnp.abs(self.middle)))
        require(owner, touching, "radius must reach from centre to the box between low and high", EmptySetError)

    @property
    def dim(self) -> int:
        return self.middle.shape[-1]

    @property
    def scale(self) -> Float[Array, ""]:
        low, high = self._bounds()
        return jnp.max(jnp.maximum(jnp.abs(low), jnp.abs(high)))

    @compiled
    def residuals(self, a: Float[Array, " n"]) -> Float[Array, " m"]:
        excess = jnp.atleast_1d(safe_norm(a - self.middle) - self.radius)
        return jnp.concatenate([excess, self.low - a, a - self.high])

    def residual_names(self) -> tuple[str, ...]:
        return ("||a - centre|| - radius", *entries("low - a", self.dim), *entries("a - high", self.dim))

    def slopes(self) -> Float[Array, " m"]:
        return jnp.ones(2 * self.dim + 1, self.dtype)

    @compiled
    def project(self, z: Float[Array, " n"]) -> Float[Array, " n"]:
        boxed = clamp(z, self.low, self.high)
        outside = safe_norm(stop_gradient(boxed) - self.middle) > self.radius
        return jnp.where(outside, self._on_the_sphere(z - self.middle), boxed)

    @compiled
    def maximise_linear(self, g: Float[Array, " n"]) -> Float[Array, " n"]:
        idle = clamp(self.middle, self.low, self.high)
        corner = jnp.where(g > 0, self.high, jnp.where(g < 0, self.low, idle))
        outside = safe_norm(corner - self.middle) > self.radius
        best = jnp.where(outside, self._on_the_sphere(g), corner)
        return jnp.where(jnp.any(jnp.isnan(g)), jnp.nan, best)

    @compiled
    def exit_distance(self, origin: Float[Array, " n"], direction: Float[Array, " n"]) -> Float[Array, ""]:
        round_exit = Ball.exit_distance(Ball(self.middle, self.radius), origin, direction)
        return jnp.minimum(round_exit, box_exit(origin, direction, self.low, self.high))

    @compiled
    def centre(self) -> Float[Array, " n"]:
        """The ball's centre, moved into the box that is narrower by the radius r of a largest ball on every side.

        r solves |((r - s_i)_+)_i| = radius - r, with s_i how far the centre is inside the bounds of coordinate i: a
        quadratic equation between the breakpoints s_i.
        """
        half = 0.5 * (self.high - self.low)
        wide = half > 0
        pinned = jnp.where(wide, 0.0, self.low - self.middle)
        length = safe_norm(pinned)
        radius = jnp.sqrt(jnp.maximum((self.radius - length) * (self.radius + length), 0.0))
        spare = jnp.where(wide, jnp.minimum(self.middle - self.low, self.high - self.middle), radius)
        spare = jnp.maximum(spare, -radius)  # a box that only touches the ball may miss it by rounding
        reached = jnp.sqrt(jnp.sum(jnp.maximum(spare[:, None] - spare[None, :], 0.0) ** 2, axis=1)) + spare
        cut = reached < radius  # the bounds that a largest ball touches
        count = jnp.sum(cut.astype(self.dtype))
        offset = jnp.where(cut, radius - spare, 0.0)  # with q = radius - r: |offset - q|^2 = q^2
        first, second = jnp.sum(offset), jnp.sum(offset**2)
        root = jnp.sqrt(jnp.maximum(first**2 - (count - 1.0) * second, 0.0))
        depth = radius - second / jnp.where(first + root > 0, first + root, 1.0)
        narrowest = jnp.min(jnp.where(wide, half, jnp.inf))
        depth = jnp.clip(depth, 0.0, jnp.where(jnp.isfinite(narrowest), narrowest, 0.0))
        around = jnp.where(wide, depth, 0.0)
        return clamp(self.middle, self.low + around, self.high - around)

    def direction(self, key: PRNGKeyArray) -> Float[Array, " n"]:
        low, high = self._bounds()
        return gaussian(key, high - low)

    @drawn
    def sample(self, key: PRNGKeyArray) -> Float[Array, " n"]:
        return hit_and_run(self, key)

    @compiled
    def diameter(self) -> Float[Array, ""]:
        low, high = self._bounds()
        return jnp.minimum(2.0 * self.radius, jnp.linalg.norm(high - low))

    def clipped(self, low: Bound, high: Bound) -> "BallBox":
        if inside(*self._bounds(), low, high):
            return self
        return BallBox(self.middle, self.radius, *tighter(self.low, self.high, low, high))

    def _bounds(self) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
        """The box, cut at the box around the ball."""
        return (
            jnp.minimum(jnp.maximum(self.low, self.middle - self.radius), self.high),
            jnp.maximum(jnp.minimum(self.high, self.middle + self.radius), self.low),
        )

    def _on_the_sphere(self, ray: Float[Array, " n"]) -> Float[Array, " n"]:
        """The a = clip(s ray) at the distance of the radius from the centre, where there is one; differentiable."""
        low, high = self.low - self.middle, self.high - self.middle
        peak = stop_gradient(jnp.max(jnp.abs(ray)))
        ray = ray / jnp.where(peak > 0, peak, 1.0)
        free, begun = _piece(*stop_gradient((ray, low, high, self.radius)))
        nearest = clamp(jnp.zeros_like(ray), low, high)
        held = jnp.where(free, 0.0, jnp.where(begun, jnp.where(ray > 0, high, low), nearest))
        left = self.radius**2 - jnp.sum(held**2)
        square = jnp.sum(jnp.where(free, ray**2, 0.0))
        proper = (left > 0) & (square > 0)
        stretch = jnp.where(proper, jnp.sqrt(jnp.where(proper, left / jnp.where(proper, square, 1.0), 1.0)), 0.0)
        a = jnp.where(free, stretch * ray, held)
        inside = stop_gradient(clamp(a, low, high) - a)  # what rounding left of the bounds
        return self.middle + a + inside


def _piece(
    ray: Float[Array, " n"], low: Float[Array, " n"], high: Float[Array, " n"], radius: Float[Array, ""]
) -> tuple[Bool[Array, " n"], Bool[Array, " n"]]:
    """Which coordinates of clip(s ray, low, high) move with s where its length is the radius; which are past moving.

    Coordinate i is at its point nearest to zero until s = nearest_i / ray_i and at its bound from s = far_i / ray_i.
    """
    nearest, far = clamp(jnp.zeros_like(ray), low, high), jnp.where(ray > 0, high, low)
    moves = (ray != 0) & (nearest != far)
    speed = jnp.where(moves, ray, 1.0)
    begins = jnp.where(moves, nearest / speed, 0.0)
    ends = jnp.where(moves, far / speed, 0.0)
    most = jnp.finfo(ray.dtype).max
    begins, ends = jnp.minimum(begins, most), jnp.minimum(ends, most)

    def shortfall(s: Float[Array, ""]) -> Float[Array, ""]:
        at = jnp.where(moves, jnp.where(s <= begins, nearest, jnp.where(s >= ends, far, s * ray)), nearest)
        return -jnp.sum(at**2)

    first, last = bracket(shortfall, [begins, ends], -(radius**2))
    s = first + 0.5 * (last - first)
    # "Not outside" instead of "inside": a NaN is free, so that it is in the answer, too.
    return moves & ~((s < begins) | (s > ends)), moves & (s > ends)
