"""Gaussian policies: a network for the mean, a spread, samples with their log-densities, and the squashed form."""

from collections.abc import Sequence
from itertools import pairwise

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from feasible.algorithms.nets import HIDDEN, Dense, Hidden, Perceptron, uniform_layers

LOG_STD_RANGE = (-20.0, 2.0)


class Normal(eqx.Module):
    """N(mean, diag(exp(2 log_std)))."""

    mean: Float[Array, "*b n"]
    log_std: Float[Array, "*b n"]

    def sample(self, key: PRNGKeyArray) -> Float[Array, "*b n"]:
        return self.mean + jnp.exp(self.log_std) * jax.random.normal(key, self.mean.shape, self.mean.dtype)

    def log_density(self, x: Float[Array, "*b n"]) -> Float[Array, "*b"]:
        return gaussian_log_density(self._noise(x), self.log_std)

    def log_clipped(self, x: Float[Array, "*b n"], clipped: Float[Array, "*b n"]) -> Float[Array, "*b"]:
        """The same with clipping counted in: of the clipped sample, given the sample and what clipping made of it.

        A coordinate that was clipped has the logarithm of the probability of landing beyond that bound instead of its
        density. The gradient of this by the parameters is the score of clipped-action policy gradients (Fujita and
        Maeda, 2018): the plain score's conditional mean given the clipped sample, so unbiased with less variance.
        """
        bound = self._noise(clipped)
        below, above = jax.scipy.stats.norm.logcdf(bound), jax.scipy.stats.norm.logcdf(-bound)
        beyond = jnp.where(x < clipped, below, above)
        return jnp.sum(jnp.where(x == clipped, _log_densities(self._noise(x), self.log_std), beyond), axis=-1)

    def divergence(self, other: "Normal") -> Float[Array, "*b"]:
        """KL(self || other)."""
        spread = jnp.exp(2.0 * (self.log_std - other.log_std))
        shift = jnp.square((self.mean - other.mean) * jnp.exp(-other.log_std))
        return 0.5 * jnp.sum(spread + shift - 1.0 + 2.0 * (other.log_std - self.log_std), axis=-1)

    def entropy(self) -> Float[Array, "*b"]:
        return jnp.sum(self.log_std + 0.5 * (1.0 + jnp.log(2.0 * jnp.pi)), axis=-1)

    def _noise(self, x: Float[Array, "*b n"]) -> Float[Array, "*b n"]:
        return (x - self.mean) * jnp.exp(-self.log_std)


class GaussianPolicy(eqx.Module):
    """x -> N(mean(x), diag(exp(2 log_std))), the spread the same in every state.

    In units of the action box: -1 and 1 are its bounds. With `bounded` the mean goes through tanh.
    """

    mean: Perceptron
    log_std: Float[Array, " n"]
    bounded: bool = eqx.field(static=True)

    def __init__(
        self,
        inputs: int,
        outputs: int,
        units: Sequence[int],
        hidden: Hidden,
        key: PRNGKeyArray,
        *,
        log_std: float,
        bounded: bool,
    ):
        self.mean = Perceptron(inputs, outputs, units, hidden, key, last=0.01)
        self.log_std = jnp.full(outputs, log_std, jnp.float32)
        self.bounded = bounded

    def __call__(self, x: Float[Array, " o"]) -> Normal:
        mean = self.mean(x)
        return Normal(jnp.tanh(mean) if self.bounded else mean, self.log_std)


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
        shapes = [*pairwise(sizes), *[(sizes[-1], outputs)] * 2]
        *layers, self.mean, self.log_std = uniform_layers(shapes, jax.random.split(key, len(shapes)))
        self.layers = tuple(layers)
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


def gaussian_log_density(noise: Float[Array, "*b n"], log_std: Float[Array, "*b n"]) -> Float[Array, "*b"]:
    """Of mean + exp(log_std) * noise under N(mean, diag(exp(2 log_std)))."""
    return jnp.sum(_log_densities(noise, log_std), axis=-1)


def _log_densities(noise: Float[Array, "*b n"], log_std: Float[Array, "*b n"]) -> Float[Array, "*b n"]:
    return -(0.5 * noise * noise + log_std + 0.5 * jnp.log(2.0 * jnp.pi))
