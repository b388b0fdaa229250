"""Gaussian policies: a network for the mean, a spread, samples with their log-densities, and the squashed form."""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from feasible.algorithms.nets import HIDDEN, Dense, Hidden

LOG_STD_RANGE = (-20.0, 2.0)


class SquashedGaussian(eqx.Module):
    """a = low + (high - low)/2 (1 + tanh(u)), u ~ N(mean(s), diag(exp(2 log_std(s)))): always in the action box.

    The density of a is that of u divided by the product of da/du = (high - low)/2 (1 - tanh(u)^2), with
    log(1 - tanh(u)^2) = 2 (log 2 - u - softplus(-2u)), which is exact for large |u| too.
    """

    layers: tuple[Dense, ...]
    mean: Dense
    log_std: Dense
    hidden: Hidden = eqx.field(static=True)

    def __init__(self, inputs: int, outputs: int, units: Sequence[int], hidden: Hidden, key: PRNGKeyArray):
        sizes = [inputs, *units]
        *keys, mean_key, std_key = jax.random.split(key, len(units) + 2)
        self.layers = tuple(Dense(i, o, k) for i, o, k in zip(sizes[:-1], sizes[1:], keys, strict=True))
        self.mean = Dense(sizes[-1], outputs, mean_key)
        self.log_std = Dense(sizes[-1], outputs, std_key)
        self.hidden = hidden

    def __call__(self, obs: Float[Array, " o"]) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
        """Mean and logarithm of the standard deviation of u."""
        x = obs
        for layer in self.layers:
            x = HIDDEN[self.hidden](layer(x))
        return self.mean(x), jnp.clip(self.log_std(x), *LOG_STD_RANGE)

    def sample(
        self, obs: Float[Array, " o"], key: PRNGKeyArray, low: Float[Array, " n"], high: Float[Array, " n"]
    ) -> tuple[Float[Array, " n"], Float[Array, ""]]:
        """An action, differentiable in the parameters, and the logarithm of its density."""
        mean, log_std = self(obs)
        noise = jax.random.normal(key, mean.shape, mean.dtype)
        u = mean + jnp.exp(log_std) * noise
        half = 0.5 * (high - low)
        # A coordinate without room has no density of its own; a constant in its place has no gradient either.
        stretched = jnp.log(jnp.where(half > 0, half, 1.0)) + 2.0 * (jnp.log(2.0) - u - jax.nn.softplus(-2.0 * u))
        density = gaussian_log_density(noise, log_std) - jnp.sum(stretched)
        return low + half * (1.0 + jnp.tanh(u)), density

    def mode(self, obs: Float[Array, " o"], low: Float[Array, " n"], high: Float[Array, " n"]) -> Float[Array, " n"]:
        """The action of the mean: what acting without exploration proposes."""
        mean, _ = self(obs)
        return low + 0.5 * (high - low) * (1.0 + jnp.tanh(mean))


def gaussian_log_density(noise: Float[Array, " n"], log_std: Float[Array, " n"]) -> Float[Array, ""]:
    """Of mean + exp(log_std) * noise under N(mean, diag(exp(2 log_std)))."""
    return -jnp.sum(0.5 * noise * noise + log_std + 0.5 * jnp.log(2.0 * jnp.pi))
