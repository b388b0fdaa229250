"""Maps: how the output of a network becomes an action. One question to the set serves all that answer inside it.

With c the centre of the feasible set and g(v) = 1 / exit_distance(c, v) its gauge, the least t with c + v / t inside,

| map          | action proposed                 | exploration noise  | derivative of the action              |
|--------------|---------------------------------|--------------------|---------------------------------------|
| `projection` | the output, clipped to the box  | on the output      | the rule's: none, or the projection's |
| `alpha`      | c + v / max(1, g(v))            | on v               | exact; of rank d - 1 where g(v) > 1   |
| `radial`     | c + v tanh(g(v)) / g(v)         | on v               | exact, of full rank                   |

Proposals of `alpha` and `radial` are feasible, with noise too. Both are the identity to first order at v = 0. Where a
set is flat (allocations, equalities), v = B y with the d orthonormal columns B of its affine hull: networks have d
outputs. An output u is in units of the box: y = B^T (m - c) + w u, m the box's middle and w its half widths as the hull
sees them, so that without equalities c + v is the action m + (high - low)/2 u.

With a reference, a known feasible action r, such as the present allocation of bikes or the last action, outputs are
relative to it: `projection` has r + (high - low)/2 u, which may leave the box, and is clipped to it when it is
proposed. The others go out from there, y = w u with r for c, moved inwards by a fiftieth of its way to the centre,
where every direction has room. An output of 0 leaves it at that.

The centre of a set may jump where the set moves with the state: of `Polytope`, where another largest ball takes over,
of `PositivePowerBox` and `HalfSpaceBox`, where a weight changes its sign. Maps jump with it, and actions stay inside. A
centre on the boundary has no gauge: answers are then NaN, which no environment gets.
"""

from abc import abstractmethod
from typing import Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from feasible.algorithms.base import Spec
from feasible.sets.ball import safe_norm
from feasible.sets.base import ActionSet
from feasible.solve.precision import full_precision

Action = Float[Array, " n"]
NEAR = 0.98
"""How far from the centre to a reference a map into the set begins: on whole numbers, rounding ends at the reference
if the centre is within 25 units of it."""


class Chart(Protocol):
    """Coordinates of the affine hull around the centre, of any units: a = centre + lifted(y), `lifted` linear."""

    @property
    def centre(self) -> Action: ...

    def lifted(self, y: Float[Array, " d"]) -> Action: ...


class Hull(eqx.Module):
    """Coordinates of a set's affine hull: a = c + B y."""

    centre: Float[Array, " n"]
    basis: Float[Array, "n d"]
    relative: bool = eqx.field(static=True, default=False)
    """Whether the centre is one to which outputs are relative."""

    @classmethod
    def of(cls, region: ActionSet, reference: Action | None = None) -> "Hull":
        """Around the set's centre, or around a point near the reference, which costs a projection."""
        centre = region.centre()
        if reference is not None:
            centre = centre + NEAR * (region.project(reference) - centre)
        return cls(centre, region.hull_basis(), reference is not None)

    @property
    def dim(self) -> int:
        return self.basis.shape[1]

    def action(self, y: Float[Array, " d"]) -> Action:
        return self.centre + self.lifted(y)

    @full_precision
    def lifted(self, y: Float[Array, " d"]) -> Action:
        """B y."""
        return y if self._full else self.basis @ y

    @full_precision
    def coordinates(self, point: Action) -> Float[Array, " d"]:
        """B^T (a - c): of the hull's point nearest to a."""
        offset = point - self.centre
        return offset if self._full else offset @ self.basis

    @full_precision
    def widths(self, widths: Action) -> Float[Array, " d"]:
        """Deviations of the actions' coordinates as deviations of y."""
        return widths if self._full else jnp.sqrt(jnp.square(widths) @ jnp.square(self.basis))

    def placed(self, spec: Spec, output: Float[Array, " d"]) -> Float[Array, " d"]:
        """y of a network's output, in units of the box."""
        middle, half = 0.5 * (spec.high + spec.low), 0.5 * (spec.high - spec.low)
        if self.relative:
            return self.widths(half) * output
        return self.coordinates(middle) + self.widths(half) * output

    @property
    def _full(self) -> bool:
        """Sets without equalities have the identity for a basis."""
        return self.basis.shape[0] == self.basis.shape[1]


def gauge(region: ActionSet, centre: Action, v: Action) -> Float[Array, ""]:
    """The smallest t >= 0 with centre + v / t inside: 0 with derivative 0 for v = 0; NaN on the boundary."""
    at_rest = jnp.all(v == 0)
    exits = region.exit_distance(centre, jnp.where(at_rest, jnp.ones_like(v), v))
    inside = exits > 0
    times = jnp.where(at_rest | ~inside, 1.0, exits)
    return jnp.where(at_rest, 0.0, jnp.where(inside, 1.0 / times, jnp.nan))


def alpha(region: ActionSet, hull: Chart, y: Float[Array, " d"]) -> Float[Array, " d"]:
    """y / max(1, g): itself inside, else where the ray to it leaves the set."""
    return y / jnp.maximum(gauge(region, hull.centre, hull.lifted(y)), 1.0)


def radial(region: ActionSet, hull: Chart, y: Float[Array, " d"]) -> Float[Array, " d"]:
    """y tanh(g) / g: one to one from the whole space to the set's interior."""
    return y * tanh_ratio(gauge(region, hull.centre, hull.lifted(y)))


def tanh_ratio(g: Float[Array, ""]) -> Float[Array, ""]:
    """tanh(g) / g; its series below 0.01, where that is exact to 1e-9 and the quotient's derivative is not."""
    near = g < 0.01
    far = jnp.where(near, 1.0, g)
    return jnp.where(near, 1.0 - jnp.square(g) / 3.0, jnp.tanh(far) / far)


def has_room(region: ActionSet) -> Bool[Array, ""]:
    """Whether the set's centre has room around it, in both directions of every coordinate of its hull."""
    hull = Hull.of(region)
    ways = jnp.concatenate([hull.basis.T, -hull.basis.T])
    return jnp.all(jax.vmap(lambda way: region.exit_distance(hull.centre, way))(ways) > 0)


def trouble_inside(region: ActionSet, name: str) -> str | None:
    """The sentence for a set into which the map of that name does not lead: one whose centre has no room around it."""
    if bool(has_room(region)):
        return None
    return (
        f"map={name!r} goes out from the centre of the feasible set, and that of this {type(region).__name__} lies on "
        "its boundary (an entry without room, perhaps); use a method with a projection, such as "
        "td3-projected-gradient, sac-projection or ppo-projection, which take every set."
    )


def distance(region: ActionSet, point: Action) -> Float[Array, ""]:
    """From a point to the set. Its derivative is that of the distance to the nearest point, held fixed."""
    return safe_norm(point - jax.lax.stop_gradient(region.project(point)))


def in_the_box(spec: Spec, key: PRNGKeyArray) -> Action:
    """A proposal of the warm-up for critics that value proposals: they must see such outside the set, too."""
    return jax.random.uniform(key, spec.low.shape, spec.low.dtype, spec.low, spec.high)


class ActionMap(eqx.Module):
    """From the output of a network to the action that it proposes."""

    @abstractmethod
    def outputs(self, region: ActionSet) -> int:
        """How many numbers the network puts out."""

    @abstractmethod
    def bounds(self, spec: Spec, region: ActionSet) -> tuple[Array, Array]:
        """What an output through tanh spans."""

    @abstractmethod
    def point(self, spec: Spec, region: ActionSet, output: Array) -> Action:
        """Where the output lies before it is brought inside."""

    @abstractmethod
    def action(self, spec: Spec, region: ActionSet, output: Array) -> Action:
        """The action of an output, with its derivative: what the critic is asked about in the actor's loss."""

    @abstractmethod
    def proposed(self, spec: Spec, region: ActionSet, output: Array) -> Action:
        """The proposal without exploration."""

    @abstractmethod
    def explored(self, spec: Spec, region: ActionSet, output: Array, deviation: Array, normal: Array) -> Action:
        """The proposal with noise: standard normal numbers, one an output, and their deviation in units of actions."""

    @abstractmethod
    def target(self, spec: Spec, region: ActionSet, output: Array, noise: Action | None) -> Action:
        """The action of the critic's target, with smoothing noise in units of actions or without."""


class Projection(ActionMap):
    """The output is the proposal; the feasible set answers it where it is executed."""

    def outputs(self, region: ActionSet) -> int:
        return region.dim

    def bounds(self, spec: Spec, region: ActionSet) -> tuple[Array, Array]:
        if spec.reference is None:
            return spec.low, spec.high
        half = 0.5 * (spec.high - spec.low)
        return -half, half

    def point(self, spec: Spec, region: ActionSet, output: Array) -> Action:
        return output if spec.reference is None else spec.reference + output

    def action(self, spec: Spec, region: ActionSet, output: Array) -> Action:
        return self.point(spec, region, output)

    def proposed(self, spec: Spec, region: ActionSet, output: Array) -> Action:
        return spec.clip(self.point(spec, region, output))

    def explored(self, spec: Spec, region: ActionSet, output: Array, deviation: Array, normal: Array) -> Action:
        return spec.clip(self.point(spec, region, output) + deviation * normal)

    def target(self, spec: Spec, region: ActionSet, output: Array, noise: Action | None) -> Action:
        action = self.action(spec, region, output)
        if noise is None:
            return action if spec.reference is None else spec.clip(action)
        return spec.clip(action + noise)


class Inside(ActionMap):
    """A map into the set itself, in coordinates of its hull."""

    @abstractmethod
    def brought(self, region: ActionSet, hull: Hull, y: Float[Array, " d"]) -> Float[Array, " d"]:
        """The coordinates of a feasible point."""

    def outputs(self, region: ActionSet) -> int:
        return region.hull_dim

    def bounds(self, spec: Spec, region: ActionSet) -> tuple[Array, Array]:
        ones = jnp.ones(region.hull_dim, spec.low.dtype)
        return -ones, ones

    def point(self, spec: Spec, region: ActionSet, output: Array) -> Action:
        hull = Hull.of(region, spec.reference)
        return hull.action(hull.placed(spec, output))

    def action(self, spec: Spec, region: ActionSet, output: Array) -> Action:
        hull = Hull.of(region, spec.reference)
        return hull.action(self.brought(region, hull, hull.placed(spec, output)))

    def proposed(self, spec: Spec, region: ActionSet, output: Array) -> Action:
        return self.action(spec, region, output)

    def explored(self, spec: Spec, region: ActionSet, output: Array, deviation: Array, normal: Array) -> Action:
        hull = Hull.of(region, spec.reference)
        noise = hull.widths(jnp.broadcast_to(deviation, spec.low.shape)) * normal
        return hull.action(self.brought(region, hull, hull.placed(spec, output) + noise))

    def target(self, spec: Spec, region: ActionSet, output: Array, noise: Action | None) -> Action:
        """Smoothing may lead outside, whatever the map: what does is pulled in along its ray."""
        action = self.action(spec, region, output)
        if noise is None:
            return action
        hull = Hull.of(region, spec.reference)
        return hull.action(alpha(region, hull, hull.coordinates(action + noise)))


class Alpha(Inside):
    """c + v / max(1, g(v))."""

    def brought(self, region: ActionSet, hull: Hull, y: Float[Array, " d"]) -> Float[Array, " d"]:
        return alpha(region, hull, y)


class Radial(Inside):
    """c + v tanh(g(v)) / g(v)."""

    def brought(self, region: ActionSet, hull: Hull, y: Float[Array, " d"]) -> Float[Array, " d"]:
        return radial(region, hull, y)


MAPS: dict[str, ActionMap] = {"projection": Projection(), "alpha": Alpha(), "radial": Radial()}
