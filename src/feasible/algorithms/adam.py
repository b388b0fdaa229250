"""Adam on a pytree of parameters: the one optimiser of the networks and tables here."""

from typing import TypeVar

import jax
import optax

Parameters = TypeVar("Parameters")


def adam_state(rate: float, parameters: object) -> optax.OptState:
    return optax.adam(rate).init(parameters)  # pyright: ignore[reportArgumentType] -- Optax's name for pytrees


def adam_step(
    rate: float, gradients: Parameters, state: optax.OptState, parameters: Parameters
) -> tuple[Parameters, optax.OptState]:
    """The parameters after one step against the gradients, and the optimiser's next state."""
    with jax.numpy_dtype_promotion("standard"):  # Optax raises a float to an integer's power
        updates, state = optax.adam(rate).update(gradients, state)  # pyright: ignore[reportArgumentType]
    return optax.apply_updates(parameters, updates), state  # pyright: ignore[reportArgumentType, reportReturnType]
