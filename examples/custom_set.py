"""Your own feasible set: a ball cut by a half-space, {a : ||a|| <= radius, normal . a <= limit}.

    python examples/custom_set.py

A set is a subclass of `ActionSet`: an immutable pytree with arrays for fields. What it must define is below;
membership, violation, support and Frank-Wolfe gap then come with it, as do batches (`jax.vmap`) and every algorithm.
`compiled` and `drawn` accept plain numbers and compile a method once.

Where no closed form is at hand, `Ball(...) & Polytope(...)` is the same set without writing any of this; closed forms
are worth it where a projection sits in every step of a training loop.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from feasible.sets import ActionSet, Ball
from feasible.sets.arguments import Numbers, floats
from feasible.sets.ball import safe_norm, unit
from feasible.sets.base import compiled, drawn
from feasible.sets.sampling import gaussian, hit_and_run


class CutBall(ActionSet):
    """{a : ||a|| <= radius, normal . a <= limit} for a unit normal and |limit| < radius.

    Projection: if neither the ball's nor the half-space's own projection lies in the other, both constraints bind, and
    the answer lies on the sphere in the cutting plane; all three are closed forms, O(n). Linear maximisation likewise.
    """

    normal: Float[Array, " n"]
    limit: Float[Array, ""]
    radius: Float[Array, ""]

    def __init__(self, normal: Numbers, limit: Numbers, radius: Numbers):
        self.normal, self.limit, self.radius = floats("CutBall", normal=normal, limit=limit, radius=radius)

    # What the set is: its size, and its constraints as residuals that are <= 0 inside.

    @property
    def dim(self) -> int:
        return self.normal.shape[-1]

    @property
    def scale(self) -> Float[Array, ""]:
        return self.radius  # the unit of tolerances: the largest entry that an action can have

    @compiled
    def residuals(self, a: Float[Array, " n"]) -> Float[Array, " m"]:
        return jnp.stack([safe_norm(a) - self.radius, self.normal @ a - self.limit])

    def residual_names(self) -> tuple[str, ...]:
        return "||a|| - radius", "normal . a - limit"  # error messages name the residual that is violated

    def slopes(self) -> Float[Array, " m"]:
        return jnp.ones(2, self.dtype)  # how fast each residual can grow

    # What algorithms ask: the nearest point, the furthest point along a gradient, and where a ray leaves the set.

    @compiled
    def project(self, z: Float[Array, " n"]) -> Float[Array, " n"]:
        in_ball = self._ball().project(z)
        below = z - jnp.maximum(self.normal @ z - self.limit, 0.0) * self.normal
        on_both = self._on_rim(z)
        return jnp.where(
            self.normal @ in_ball <= self.limit, in_ball, jnp.where(safe_norm(below) <= self.radius, below, on_both)
        )

    @compiled
    def maximise_linear(self, g: Float[Array, " n"]) -> Float[Array, " n"]:
        in_ball = self._ball().maximise_linear(g)
        return jnp.where(self.normal @ in_ball <= self.limit, in_ball, self._on_rim(g))

    @compiled
    def exit_distance(self, origin: Float[Array, " n"], direction: Float[Array, " n"]) -> Float[Array, ""]:
        speed, room = self.normal @ direction, jnp.maximum(self.limit - self.normal @ origin, 0.0)
        cut = jnp.where(speed > 0, room / jnp.where(speed > 0, speed, 1.0), jnp.inf)
        return jnp.minimum(cut, self._ball().exit_distance(origin, direction))

    # A point well inside, random points, and the largest distance between two points.

    def centre(self) -> Float[Array, " n"]:
        return 0.5 * (self.limit - self.radius) * self.normal

    def direction(self, key: PRNGKeyArray) -> Float[Array, " n"]:
        return gaussian(key, jnp.broadcast_to(self.radius, self.normal.shape))

    @drawn
    def sample(self, key: PRNGKeyArray) -> Float[Array, " n"]:
        return hit_and_run(self, key)

    def diameter(self) -> Float[Array, ""]:
        return 2.0 * jnp.where(self.limit >= 0, self.radius, self._rim())

    def _ball(self) -> Ball:
        return Ball(jnp.zeros_like(self.normal), self.radius)

    def _rim(self) -> Float[Array, ""]:
        """Radius of the disc that the plane cuts out of the ball."""
        return jnp.sqrt(self.radius**2 - self.limit**2)

    def _on_rim(self, v: Float[Array, " n"]) -> Float[Array, " n"]:
        return self.limit * self.normal + self._rim() * unit(v - (self.normal @ v) * self.normal)


if __name__ == "__main__":
    cut = CutBall(normal=[0.6, 0.8, 0.0], limit=0.3, radius=1.0)
    keys = jax.random.split(jax.random.key(0), 500)
    z = 3.0 * jax.random.normal(keys[0], (500, 3))
    nearest, inside = jax.vmap(cut.project)(z), jax.vmap(cut.sample)(keys)
    print(f"largest violation of {len(z)} projections: {float(jnp.max(jax.vmap(cut.violation)(nearest))):.1e}")

    # What makes a point the projection, checked on samples: no feasible direction leads nearer to z.
    nearer = np.einsum("in,jn->ij", z - nearest, inside) - np.sum((z - nearest) * nearest, axis=1)[:, None]
    print(f"largest <z - a, y - a> over {len(inside)} samples y: {nearer.max():.1e} (not above rounding)")

    best = jax.vmap(cut.maximise_linear)(z)
    ahead = np.einsum("in,jn->ij", z, inside).max(axis=1) - np.sum(z * best, axis=1)
    print(f"samples beat the linear maximiser by at most {ahead.max():.1e} (not above rounding)")
    print("projection of [2, 2, 1]:", np.round(cut.project([2.0, 2.0, 1.0]), 4))
