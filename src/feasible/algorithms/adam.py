"""Adam on a pytree of parameters: the one optimiser of the networks and tables here."""

from typing import TypeVar

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PyTree

Parameters = TypeVar("Parameters")


def adam_state(rate: float, parameters: object) -> optax.OptState:
    return optax.adam(rate).init(parameters)  # pyright: ignore[reportArgumentType] -- Optax's name for pytrees


def adam_step(
    rate: float | Float[Array, ""], gradients: Parameters, state: optax.OptState, parameters: Parameters
) -> tuple[Parameters, optax.OptState]:
    """The parameters after one step against the gradients, and the optimiser's next state."""
    with jax.numpy_dtype_promotion("standard"):  # Optax raises a float to an integer's power
        updates, state = optax.adam(rate).update(gradients, state)  # pyright: ignore[reportArgumentType]
    return optax.apply_updates(parameters, updates), state  # pyright: ignore[reportArgumentType, reportReturnType]


def after(gradients: PyTree[Array], *rates: float) -> tuple[Float[Array, ""], ...]:
    """The rates, to be had only when all gradients are known.

    Then all reading of the networks comes before any writing, and XLA updates them in place; otherwise it copies
    every weight that another gradient still needs, a tenth of a training step.
    """
    known = jnp.stack([leaf.ravel()[0] for leaf in jax.tree.leaves(gradients)]).sum()
    return tuple(rate + 0.0 * known for rate in rates)
