"""Policies that draw the entries of an action one after the other, each from a Beta distribution on its interval.

    a_i = least_i + width_i z_i,   z_i ~ Beta(alpha_i, beta_i),   (alpha_i, beta_i) by x and z_1, ..., z_(i-1)

    log p(a) = sum over entries with room of  log Beta(z_i; alpha_i, beta_i) - log width_i

The map from z to a is triangular with the widths on its diagonal, so this is the density of a with respect to the
Lebesgue measure of the entries that have room: of all, or in the coordinates of a flat set that are not determined.

Draws nearer to an end of their interval than e = `EDGE` are put there, at e or 1 - e: with small parameters that is
almost every draw (91% for alpha = e^-5), and the density at e says the contrary of how likely they are. So their
density is the mean over the piece, with m = P(z < e) = e^alpha / (alpha B(alpha, beta)), to a factor of 1 + e beta:

    log(m / e) = (alpha - 1) log e - log B(alpha, beta) - log alpha,

the density at e less log alpha. The entropy is larger by m (1 / alpha - 1 + log alpha) than without that; the
divergence from Beta(gamma, delta) is smaller by m (gamma / alpha - 1 - log(gamma / alpha)). The other end is alike.
"""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.special import betaln, digamma
from jaxtyping import Array, Float, Int, PRNGKeyArray

from feasible.algorithms.intervals import scaled
from feasible.algorithms.nets import HIDDEN, Hidden, Perceptron
from feasible.sets.base import ActionSet

EDGE = 1e-6  # draws keep this distance from the ends of their intervals
REACH = 5.0  # logarithms of the parameters stay within this of zero
NARROWEST, WIDEST = 0.3, 50.0  # parameters of the first policy


class Betas(eqx.Module):
    """The entries' distributions, given the entries before each of them."""

    alpha: Float[Array, "*b n"]
    beta: Float[Array, "*b n"]
    width: Float[Array, "*b n"]
    """0 for entries without room, which have no distribution."""

    def log_density(self, z: Float[Array, "*b n"]) -> Float[Array, "*b"]:
        a, b, z = self.alpha, self.beta, jnp.clip(z, EDGE, 1.0 - EDGE)
        each = (a - 1.0) * jnp.log(z) + (b - 1.0) * jnp.log1p(-z) - betaln(a, b)
        ends = jnp.where(z <= EDGE, jnp.log(a), 0.0) + jnp.where(z >= 1.0 - EDGE, jnp.log(b), 0.0)
        return self._over_room(each - ends - self._log_width)

    def entropy(self) -> Float[Array, "*b"]:
        """Of the entries, given those before; its mean over draws of the policy is the policy's entropy."""
        a, b = self.alpha, self.beta
        each = betaln(a, b) - (a - 1.0) * digamma(a) - (b - 1.0) * digamma(b) + (a + b - 2.0) * digamma(a + b)
        low, high = self._at_the_ends
        ends = low * (1.0 / a - 1.0 + jnp.log(a)) + high * (1.0 / b - 1.0 + jnp.log(b))
        return self._over_room(each + ends + self._log_width)

    def divergence(self, other: "Betas") -> Float[Array, "*b"]:
        """KL(self || other) of the entries, given those before; widths are the same and cancel."""
        a, b, c, d = self.alpha, self.beta, other.alpha, other.beta
        each = betaln(c, d) - betaln(a, b) + (a - c) * digamma(a) + (b - d) * digamma(b)
        low, high = self._at_the_ends
        ends = low * (c / a - 1.0 - jnp.log(c / a)) + high * (d / b - 1.0 - jnp.log(d / b))
        return self._over_room(each + (c - a + d - b) * digamma(a + b) - ends)

    @property
    def _at_the_ends(self) -> tuple[Float[Array, "*b n"], Float[Array, "*b n"]]:
        """How likely a draw is put at either end."""
        a, b, both = self.alpha, self.beta, betaln(self.alpha, self.beta)
        return jnp.exp(a * math.log(EDGE) - both) / a, jnp.exp(b * math.log(EDGE) - both) / b

    @property
    def _log_width(self) -> Float[Array, "*b n"]:
        return jnp.log(jnp.where(self.width > 0, self.width, 1.0))

    def _over_room(self, each: Float[Array, "*b n"]) -> Float[Array, "*b"]:
        return jnp.sum(jnp.where(self.width > 0, each, 0.0), axis=-1)


class SequentialPolicy(eqx.Module):
    """x -> features, shared; then a head for each entry, which sees the features and the scaled entries before its own.

    Parameters are exp(5 tanh(output / 5)): positive, bounded, and never without a derivative.
    """

    trunk: Perceptron
    heads: Perceptron
    """With a leading axis over the entries."""
    hidden: Hidden = eqx.field(static=True)

    def __init__(
        self,
        inputs: int,
        start: Float[Array, "n 2"],
        units: tuple[int, ...],
        head_units: int,
        hidden: Hidden,
        key: PRNGKeyArray,
    ):
        """`start` are the parameters of the first policy, up to a hundredth of what the features say."""
        trunk_key, head_key = jax.random.split(key)
        n, features = start.shape[0], units[-1]
        self.trunk = Perceptron(inputs, features, units[:-1], hidden, trunk_key)
        heads = eqx.filter_vmap(lambda k: Perceptron(features + n, 2, (head_units,), hidden, k, last=0.01))(
            jax.random.split(head_key, n)
        )
        bias = REACH * jnp.arctanh(jnp.log(start) / REACH)
        self.heads = eqx.tree_at(lambda h: h.layers[-1].bias, heads, bias)
        self.hidden = hidden

    def features(self, x: Float[Array, " o"]) -> Float[Array, " f"]:
        return HIDDEN[self.hidden](self.trunk(x))

    def entry(
        self, features: Float[Array, " f"], z: Float[Array, " n"], entry: Int[Array, ""]
    ) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """alpha and beta of one entry; scaled entries from it on are not looked at."""
        head = jax.tree.map(lambda leaf: leaf[entry], self.heads)
        return self._parameters(head, features, z, entry)

    def given(self, x: Float[Array, " o"], z: Float[Array, " n"], width: Float[Array, " n"]) -> Betas:
        """The distributions of all entries of a draw."""
        features = self.features(x)
        places = jnp.arange(z.shape[0])
        alpha, beta = jax.vmap(lambda head, i: self._parameters(head, features, z, i))(self.heads, places)
        return Betas(alpha, beta, width)

    def _parameters(self, head: Perceptron, features: Array, z: Array, entry: Array) -> tuple[Array, Array]:
        before = jnp.where(jnp.arange(z.shape[0]) < entry, 2.0 * z - 1.0, 0.0)
        alpha, beta = jnp.exp(REACH * jnp.tanh(head(jnp.concatenate([features, before])) / REACH))
        return alpha, beta


def uniform_parameters(region: ActionSet, key: PRNGKeyArray, count: int) -> Float[Array, "n 2"]:
    """alpha and beta of each entry that have the moments of (almost) uniform points of the set; 1 where there are none.

    For a box they are 1 and 1, for a simplex 1 and the number of free entries after: then the walk is exactly uniform.
    """
    points = jax.vmap(region.sample)(jax.random.split(key, count))
    z, width = jax.vmap(lambda point: scaled(region, point))(points)
    room = jnp.mean((width > 0).astype(z.dtype), axis=0)
    mean, variance = jnp.mean(z, axis=0), jnp.var(z, axis=0)
    sound = (room > 0.5) & (variance > 1e-6) & jnp.isfinite(mean + variance)
    total = jnp.where(sound, mean * (1.0 - mean) / jnp.where(sound, variance, 1.0) - 1.0, 2.0)
    mean = jnp.where(sound, mean, 0.5)
    return jnp.clip(jnp.stack([mean * total, (1.0 - mean) * total], axis=1), NARROWEST, WIDEST)
