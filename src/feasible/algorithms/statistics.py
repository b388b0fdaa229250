"""Running mean and variance of observations, kept in the training state, by which networks see them normalised."""

from typing import TypeVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

Net = TypeVar("Net")

LIMIT = 5.0  # normalised observations are clipped to so many standard deviations


class Statistics(eqx.Module):
    """Mean and variance of all observations absorbed so far."""

    mean: Float[Array, " o"]
    variance: Float[Array, " o"]
    count: Int[Array, ""]

    def absorb(self, obs: Float[Array, " o"]) -> "Statistics":
        """The statistics with one observation more (Welford's recursion, on the variance so that nothing grows)."""
        count = self.count + 1
        share = 1.0 / count.astype(obs.dtype)
        shift = obs - self.mean
        mean = self.mean + share * shift
        variance = self.variance + share * (shift * (obs - mean) - self.variance)
        return Statistics(mean, variance, count)

    def normalise(self, obs: Float[Array, " o"]) -> Float[Array, " o"]:
        """(obs - mean) / standard deviation, within +-5. A constant entry, of variance zero, stays near zero.

        Before the second observation there is no variance: one takes its place.
        """
        variance = jnp.where(self.count > 1, self.variance, jnp.ones_like(self.variance))
        return jnp.clip((obs - self.mean) / jnp.sqrt(variance + 1e-8), -LIMIT, LIMIT)


def no_statistics(size: int, dtype: jnp.dtype) -> Statistics:
    return Statistics(jnp.zeros(size, dtype), jnp.zeros(size, dtype), jnp.zeros((), jnp.int32))


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
