"""Running mean and variance of observations, kept in the training state, by which networks see them normalised."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

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
