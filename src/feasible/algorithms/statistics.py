"""Running mean and variance of observations, kept in the training state, by which networks see them normalised."""

from typing import Literal, TypeVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

Net = TypeVar("Net")

Normalised = bool | Literal["shrunk"]
"""How networks see observations: raw, normalised, or with deviations below one counting as one, so that they are made
smaller only and what hardly changes is not magnified."""
LIMIT = 5.0  # normalised observations are clipped to so many standard deviations


class Statistics(eqx.Module):
    """Mean and variance of all observations absorbed so far."""

    mean: Float[Array, " o"]
    variance: Float[Array, " o"]
    count: Int[Array, ""]
    least: float = eqx.field(static=True, default=0.0)
    """Deviations below it count as this."""

    def absorb(self, obs: Float[Array, " o"]) -> "Statistics":
        """The statistics with one observation more (Welford's recursion, on the variance so that nothing grows)."""
        count = self.count + 1
        share = 1.0 / count.astype(obs.dtype)
        shift = obs - self.mean
        mean = self.mean + share * shift
        variance = self.variance + share * (shift * (obs - mean) - self.variance)
        return Statistics(mean, variance, count, self.least)

    def normalise(self, obs: Float[Array, " o"]) -> Float[Array, " o"]:
        """(obs - mean) / max(deviation, least), within +-5. A constant entry, of variance zero, stays near zero.

        Before the second observation there is no variance: one takes its place.
        """
        variance = jnp.where(self.count > 1, self.variance, jnp.ones_like(self.variance))
        deviation = jnp.maximum(jnp.sqrt(variance + 1e-8), self.least)
        return jnp.clip((obs - self.mean) / deviation, -LIMIT, LIMIT)


def no_statistics(size: int, dtype: jnp.dtype, least: float = 0.0) -> Statistics:
    return Statistics(jnp.zeros(size, dtype), jnp.zeros(size, dtype), jnp.zeros((), jnp.int32), least)


def statistics_for(normalised: Normalised, size: int, dtype: jnp.dtype) -> Statistics | None:
    """Those to begin with, where networks see by some."""
    return no_statistics(size, dtype, 1.0 if normalised == "shrunk" else 0.0) if normalised else None


def seen(statistics: Statistics | None, obs: Float[Array, " o"]) -> Float[Array, " o"]:
    """The observation as networks see it: raw, where no statistics are kept."""
    return obs if statistics is None else statistics.normalise(obs)


def absorbed(statistics: Statistics | None, obs: Float[Array, " o"]) -> Statistics | None:
    """The statistics, where some are kept, with one observation more."""
    return None if statistics is None else statistics.absorb(obs)


def with_statistics(net: Net, statistics: Statistics | None) -> Net | tuple[Net, Statistics]:
    """A policy: the network alone, or with the statistics by which it sees observations."""
    return net if statistics is None else (net, statistics)


def taken_apart(policy: Net | tuple[Net, Statistics]) -> tuple[Net, Statistics | None]:
    """The network of a policy, and its statistics."""
    return policy if isinstance(policy, tuple) else (policy, None)
