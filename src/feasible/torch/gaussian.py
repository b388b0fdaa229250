"""Gaussian policies whose actions are feasible: samples with their log-densities, and log-densities of given actions.

Mean and deviation come from a network, in units of the action box: 0 is its middle and 1 half its width. They describe
a Gaussian in coordinates u of the set's hull, which a map brings inside (`feasible.algorithms.maps`); the densities are
those of `feasible.algorithms.densities`. `radial` has a density in the set. `alpha` has the Gaussian's inside and one
with respect to the surface's measure on the boundary. Where a set is flat they are densities in its hull.

A given action is mapped back: for `radial` by u = p atanh(s) / s, s the gauge at the action's coordinates p, which is
held below 1 - 8 eps, where the inverse has no digits left; for `alpha` it counts as one of the boundary from
1 - 128 eps on. A sample's own density needs no inverse.
"""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
# The type checker also runs where PyTorch is not installed, and then takes this folder for it.

from dataclasses import dataclass

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import torch
from jaxtyping import Array, Float

from feasible.algorithms.densities import alpha_log_density, radial_log_det
from feasible.algorithms.gaussian import gaussian_log_density
from feasible.algorithms.maps import Hull, alpha, gauge, radial, tanh_ratio
from feasible.errors import unknown
from feasible.sets.arguments import Numbers
from feasible.sets.base import ActionSet
from feasible.torch.crossing import Observations, Tensor, crossed
from feasible.torch.functions import Region, sized

Coordinates = Float[Array, " d"]
Scalar = Float[Array, ""]
INWARD = {"alpha": alpha, "radial": radial}


class MappedGaussian:
    """A Gaussian brought into the feasible set by `map`, "radial" or "alpha".

    >>> policy = MappedGaussian(constraint, env.action_space.low, env.action_space.high)
    >>> action, log_prob = policy.sample(mean, log_std, obs)

    `mean` and `log_std` have shape (..., d), d the dimension of the set's hull; `log_std` may be one row for all.
    With `scaled` actions are in units of the box, too, from -1 to 1, and so are densities.
    """

    def __init__(self, constraint: Region, low: Numbers, high: Numbers, map: str = "radial", *, scaled: bool = False):
        if map not in INWARD:
            raise unknown("map", map, INWARD, "MappedGaussian: ")
        bounds = [tuple(np.asarray(bound, float).reshape(-1).tolist()) for bound in (low, high)]
        if not np.isfinite(bounds).all():
            raise ValueError("MappedGaussian: low and high must be finite, since means are in units of the box.")
        self.constraint, self.map = constraint, map
        self._box = Box(bounds[0], bounds[1], scaled)

    def sample(
        self, mean: Tensor, log_std: Tensor, obs: Observations = None, noise: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Actions, differentiable in mean and deviation, and the logarithms of their densities, of shape (...).

        The noise is standard normal; where none is given PyTorch's generator draws it.
        """
        drawn = torch.randn_like(mean) if noise is None else noise
        action, density = crossed("sample", Sample(self._box, self.map), self.constraint, obs, mean, log_std, drawn)
        return action, density

    def log_prob(self, action: Tensor, mean: Tensor, log_std: Tensor, obs: Observations = None) -> Tensor:
        """The logarithms of the densities at given actions, which must be feasible."""
        return crossed("log_prob", Density(self._box, self.map), self.constraint, obs, mean, log_std, action)[0]

    def mode(self, mean: Tensor, obs: Observations = None) -> Tensor:
        """The action of the mean: acting without exploration."""
        return crossed("mode", Mode(self._box, self.map), self.constraint, obs, mean)[0]


class Frame(eqx.Module):
    """Coordinates of the hull that are orthonormal in the units in which densities are taken: a = c + units * (Q u)."""

    centre: Float[Array, " n"]
    units: Float[Array, " n"]
    directions: Float[Array, "n d"] | None
    """Q, None for the identity."""

    def lifted(self, y: Coordinates) -> Float[Array, " n"]:
        return self.units * (y if self.directions is None else self.directions @ y)

    def coordinates(self, action: Float[Array, " n"]) -> Coordinates:
        offset = (action - self.centre) / self.units
        return offset if self.directions is None else offset @ self.directions

    def widths(self, half: Float[Array, " n"]) -> Coordinates:
        """Half widths of the box as deviations of u."""
        ratio = half / self.units
        return ratio if self.directions is None else jnp.sqrt(jnp.square(ratio) @ jnp.square(self.directions))


@dataclass(frozen=True)
class Box:
    """The action box, and whether actions and densities are in its units."""

    low: tuple[float, ...]
    high: tuple[float, ...]
    scaled: bool

    def half(self, dtype: np.dtype) -> Array:
        """Half widths; 1 for an entry without room."""
        half = 0.5 * (np.asarray(self.high) - np.asarray(self.low))
        return jnp.asarray(np.where(half > 0, half, 1.0), dtype)

    def middle(self, dtype: np.dtype) -> Array:
        return jnp.asarray(0.5 * (np.asarray(self.high) + np.asarray(self.low)), dtype)

    def frame(self, region: ActionSet) -> Frame:
        sized(len(self.low), region.centre(), "the set's dimension")
        hull, half = Hull.of(region), self.half(region.dtype)
        units = half if self.scaled else jnp.ones_like(half)
        if hull.basis.shape[0] == hull.basis.shape[1]:
            return Frame(hull.centre, units, None)
        directions = jnp.linalg.qr(hull.basis / units[:, None])[0] if self.scaled else hull.basis
        return Frame(hull.centre, units, directions)

    def law(self, frame: Frame, mean: Coordinates, log_std: Coordinates) -> tuple[Coordinates, Coordinates]:
        """Mean and deviation of u."""
        width = frame.widths(self.half(mean.dtype))
        sized(width.shape[0], mean, "the dimension of the set's hull")
        return frame.coordinates(self.middle(mean.dtype)) + width * mean, width * jnp.exp(log_std)

    def outward(self, action: Float[Array, " n"]) -> Float[Array, " n"]:
        """From the units of actions to those of answers."""
        return (action - self.middle(action.dtype)) / self.half(action.dtype) if self.scaled else action

    def inward(self, action: Float[Array, " n"]) -> Float[Array, " n"]:
        return self.middle(action.dtype) + self.half(action.dtype) * action if self.scaled else action


@dataclass(frozen=True)
class Sample:
    """The action of a standard normal number per coordinate, and its log-density."""

    box: Box
    map: str

    def __call__(
        self, region: ActionSet, mean: Coordinates, log_std: Coordinates, noise: Coordinates
    ) -> tuple[Array, Scalar]:
        frame = self.box.frame(region)
        middle, std = self.box.law(frame, mean, log_std)
        u = middle + std * noise
        g = gauge(region, frame.centre, frame.lifted(u))
        if self.map == "radial":
            density = gaussian_log_density(noise, jnp.log(std)) - radial_log_det(g, u.shape[0])
            return self.box.outward(frame.centre + frame.lifted(u * tanh_ratio(g))), density
        point = u / jnp.maximum(g, 1.0)
        density = alpha_log_density(region, frame, point, noise, std, g, g > 1)
        return self.box.outward(frame.centre + frame.lifted(point)), density


@dataclass(frozen=True)
class Density:
    """The log-density at an action."""

    box: Box
    map: str

    def __call__(self, region: ActionSet, mean: Coordinates, log_std: Coordinates, action: Array) -> Scalar:
        frame = self.box.frame(region)
        middle, std = self.box.law(frame, mean, log_std)
        point = frame.coordinates(self.box.inward(sized(region.dim, action, "the set's dimension")))
        reached, eps = gauge(region, frame.centre, frame.lifted(point)), float(jnp.finfo(mean.dtype).eps)
        if self.map == "alpha":
            on_edge = reached > 1 - 128 * eps
            return alpha_log_density(region, frame, point, (point - middle) / std, std, 1.0, on_edge)
        held = jnp.minimum(reached, 1 - 8 * eps)
        g = jnp.arctanh(held)
        beyond = reached > held  # taken for the point of its ray that is held
        u = point * jnp.where(beyond, held / jnp.where(beyond, reached, 1.0), 1.0) / tanh_ratio(g)
        return gaussian_log_density((u - middle) / std, jnp.log(std)) - radial_log_det(g, u.shape[0])


@dataclass(frozen=True)
class Mode:
    """The action of the mean."""

    box: Box
    map: str

    def __call__(self, region: ActionSet, mean: Coordinates) -> Array:
        frame = self.box.frame(region)
        middle, _ = self.box.law(frame, mean, jnp.zeros_like(mean))
        return self.box.outward(frame.centre + frame.lifted(INWARD[self.map](region, frame, middle)))
