"""Functions of several sets of which some are of one kind: those are one program, batched, instead of one each."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

Thing = TypeVar("Thing")


def each(call: Callable[[Thing, Array], Array], things: Sequence[Thing], values: Array) -> Array:
    """call(thing, value) of every thing and its row of values, as rows; things are alike if their pytrees are."""
    kinds: dict[object, list[int]] = {}
    for index, thing in enumerate(things):
        leaves, structure = jax.tree.flatten(thing)
        shapes = tuple((leaf.shape, leaf.dtype) if eqx.is_array(leaf) else index for leaf in leaves)
        kinds.setdefault((structure, shapes), []).append(index)
    answers: dict[int, Array] = {}
    for members in kinds.values():
        if len(members) == 1:
            answers[members[0]] = call(things[members[0]], values[members[0]])
            continue
        stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *(things[index] for index in members))
        found = jax.vmap(call)(stacked, jnp.stack([values[index] for index in members]))
        answers |= {index: found[place] for place, index in enumerate(members)}
    return jnp.stack([answers[index] for index in range(len(things))])
