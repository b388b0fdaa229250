"""Heads: how mean and deviation from a network become an action with its log-density, for SAC.

| head        | action                                          | log-density                                         |
|-------------|-------------------------------------------------|-----------------------------------------------------|
| `squash`    | tanh of the sample, spanning the box; projected | of the proposal, exact in the box                   |
| `alpha`     | y / max(1, g) in the set's hull                 | of the Gaussian inside, of the surface on the edge  |
| `radial`    | y tanh(g) / g                                   | exact                                               |
| `truncated` | from the Gaussian restricted to the set         | log Z by rays (`feasible.algorithms.truncated`)     |

All but `squash` propose feasible actions only. Where a set is flat they are densities in its hull.
"""

from abc import abstractmethod

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from feasible.algorithms.base import Spec
from feasible.algorithms.densities import alpha_log_density, radial_log_det
from feasible.algorithms.gaussian import SquashedGaussian, gaussian_log_density
from feasible.algorithms.maps import Hull, alpha, gauge, radial, tanh_ratio
from feasible.algorithms.truncated import WITHIN, Truncated, spread_directions
from feasible.sets.base import ActionSet

Action = Float[Array, " n"]
Scalar = Float[Array, ""]


class Drawn(eqx.Module):
    """An action, differentiable in the network's parameters, with the logarithm of its density."""

    action: Action
    log_density: Scalar
    log_choice: Scalar | None = None
    """Logarithm of the probability of what was chosen among a few on the way, where something was."""


class Head(eqx.Module):
    """One of the table's rows."""

    @abstractmethod
    def outputs(self, region: ActionSet) -> int:
        """Dimensions of the Gaussian."""

    @abstractmethod
    def sample(
        self, actor: SquashedGaussian, spec: Spec, region: ActionSet, x: Float[Array, " o"], key: PRNGKeyArray
    ) -> Drawn: ...

    @abstractmethod
    def mode(self, actor: SquashedGaussian, spec: Spec, region: ActionSet, x: Float[Array, " o"]) -> Action:
        """What acting without exploration proposes."""


class Squash(Head):
    """The squashed Gaussian, in the box."""

    def outputs(self, region: ActionSet) -> int:
        return region.dim

    def sample(
        self, actor: SquashedGaussian, spec: Spec, region: ActionSet, x: Float[Array, " o"], key: PRNGKeyArray
    ) -> Drawn:
        return Drawn(*actor.sample(x, key, spec.low, spec.high))

    def mode(self, actor: SquashedGaussian, spec: Spec, region: ActionSet, x: Float[Array, " o"]) -> Action:
        return actor.mode(x, spec.low, spec.high)


class InHull(Head):
    """A Gaussian in coordinates of the set's hull."""

    def outputs(self, region: ActionSet) -> int:
        return region.hull_dim

    @abstractmethod
    def drawn(
        self, region: ActionSet, hull: Hull, mean: Float[Array, " d"], std: Float[Array, " d"], key: PRNGKeyArray
    ) -> Drawn: ...

    @abstractmethod
    def brought(self, region: ActionSet, hull: Hull, mean: Float[Array, " d"]) -> Float[Array, " d"]:
        """What the mean becomes."""

    def sample(
        self, actor: SquashedGaussian, spec: Spec, region: ActionSet, x: Float[Array, " o"], key: PRNGKeyArray
    ) -> Drawn:
        hull, (mean, log_std) = Hull.of(region), actor(x)
        std = hull.widths(0.5 * (spec.high - spec.low)) * jnp.exp(log_std)
        return self.drawn(region, hull, hull.placed(spec, mean), std, key)

    def mode(self, actor: SquashedGaussian, spec: Spec, region: ActionSet, x: Float[Array, " o"]) -> Action:
        hull, (mean, _) = Hull.of(region), actor(x)
        return hull.action(self.brought(region, hull, hull.placed(spec, mean)))


class AlphaHead(InHull):
    """c + v / max(1, g)."""

    def drawn(
        self, region: ActionSet, hull: Hull, mean: Float[Array, " d"], std: Float[Array, " d"], key: PRNGKeyArray
    ) -> Drawn:
        noise = jax.random.normal(key, mean.shape, mean.dtype)
        y = mean + std * noise
        g = gauge(region, hull.centre, hull.lifted(y))
        point = y / jnp.maximum(g, 1.0)
        return Drawn(hull.action(point), alpha_log_density(region, hull, point, noise, std, g, g > 1))

    def brought(self, region: ActionSet, hull: Hull, mean: Float[Array, " d"]) -> Float[Array, " d"]:
        return alpha(region, hull, mean)


class RadialHead(InHull):
    """c + v tanh(g) / g."""

    def drawn(
        self, region: ActionSet, hull: Hull, mean: Float[Array, " d"], std: Float[Array, " d"], key: PRNGKeyArray
    ) -> Drawn:
        noise = jax.random.normal(key, mean.shape, mean.dtype)
        y = mean + std * noise
        g = gauge(region, hull.centre, hull.lifted(y))
        density = gaussian_log_density(noise, jnp.log(std)) - radial_log_det(g, hull.dim)
        return Drawn(hull.action(y * tanh_ratio(g)), density)

    def brought(self, region: ActionSet, hull: Hull, mean: Float[Array, " d"]) -> Float[Array, " d"]:
        return radial(region, hull, mean)


class TruncatedHead(InHull):
    """The Gaussian restricted to the set, its mean brought inside by `radial`."""

    directions: int

    def drawn(
        self, region: ActionSet, hull: Hull, mean: Float[Array, " d"], std: Float[Array, " d"], key: PRNGKeyArray
    ) -> Drawn:
        ways_key, key = jax.random.split(key)
        ways = spread_directions(ways_key, self.directions, hull.dim, mean.dtype)
        policy = Truncated.of(region, hull, self.brought(region, hull, mean), std, ways)
        y, log_choice = policy.sample(key)
        return Drawn(hull.action(y), policy.log_density(y), log_choice)

    def brought(self, region: ActionSet, hull: Hull, mean: Float[Array, " d"]) -> Float[Array, " d"]:
        return WITHIN * radial(region, hull, mean)


HEADS: dict[str, Head] = {"squash": Squash(), "alpha": AlphaHead(), "radial": RadialHead()}
"""Those without settings of their own."""
