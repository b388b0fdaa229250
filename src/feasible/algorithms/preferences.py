"""Weights of two objectives, and the critics that know them."""

from itertools import pairwise

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from feasible.algorithms.nets import HIDDEN, Dense, Hidden, uniform_layers

Preference = Float[Array, " 2"]


class VectorCritic(eqx.Module):
    """Q(s, a, l): the values of the return and of the cost of rejection, under the preference l."""

    layers: tuple[Dense, ...]
    hidden: Hidden = eqx.field(static=True)

    def __init__(self, inputs: int, units: tuple[int, ...], hidden: Hidden, key: PRNGKeyArray):
        sizes = [inputs, *units, 2]
        self.layers = uniform_layers(list(pairwise(sizes)), jax.random.split(key, len(sizes) - 1))
        self.hidden = hidden

    def __call__(self, obs: Float[Array, " o"], action: Float[Array, " n"], preference: Preference) -> Preference:
        x = jnp.concatenate([obs, action, preference])
        for layer in self.layers[:-1]:
            x = HIDDEN[self.hidden](layer(x))
        return self.layers[-1](x)


VectorCritics = tuple[VectorCritic, VectorCritic]


def dirichlet(key: PRNGKeyArray, count: int, dtype: jnp.dtype) -> Float[Array, "count 2"]:
    """Preferences uniform on the segment: Dirichlet(1, 1)."""
    first = jax.random.uniform(key, (count,), dtype)
    return jnp.stack([first, 1.0 - first], axis=1)


def kept(
    old: VectorCritics | None, critics: VectorCritics, learned: Int[Array, ""], interval: int
) -> VectorCritics | None:
    """The ring of old critics after `learned` updates: every `interval` of them the present ones take a place."""
    if old is None:
        return None
    capacity = jax.tree.leaves(old)[0].shape[0]
    place = jnp.maximum(learned // interval - 1, 0) % capacity
    due = learned % interval == 0
    return jax.tree.map(lambda ring, now: ring.at[place].set(jnp.where(due, now, ring[place])), old, critics)
