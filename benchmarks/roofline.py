"""What an update must cost at least: its floating-point operations and bytes, at rates measured on this core."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array

from feasible.algorithms.ddpg import DDPGState


@dataclass(frozen=True)
class Roofline:
    """Work of one update and the rates at which this core does such work."""

    flops: float
    flop_rate: float
    bytes: float
    byte_rate: float

    @property
    def flop_seconds(self) -> float:
        return self.flops / self.flop_rate

    @property
    def byte_seconds(self) -> float:
        return self.bytes / self.byte_rate

    @property
    def seconds(self) -> float:
        return self.flop_seconds + self.byte_seconds


def update_roofline(state: DDPGState, batch: int) -> Roofline:
    """Of NFWPO's update.

    Products: every weight is used once in each of the target networks and the online critic, once more for the
    critic's weight gradient and (but for the first layer) for its input gradient, and likewise in the actor: in all
    four forward passes, two weight gradients and two input gradients of the upper layers, 2 operations a weight and
    sample each. Bytes: Adam reads gradient, parameter and two moments and writes three of them, the target reads two
    numbers and writes one: 10 numbers a parameter.
    """
    actor, critic = (sum(leaf.size for leaf in jax.tree.leaves(net)) for net in (state.actor, state.critic))
    upper_actor = actor - state.actor.layers[0].weight.size
    upper_critic = critic - state.critic.layers[0].weight.size
    products = 2 * (actor + critic) + (actor + critic) + upper_actor + upper_critic
    flops = 2.0 * batch * products
    wide = jnp.ones((400, 300))
    x = jnp.ones((batch, 400))
    product = jax.jit(lambda x, w: x @ w)
    flop_rate = 2.0 * batch * 400 * 300 / _seconds(product, x, wide)
    total = jnp.ones(2 * (actor + critic))
    add = jax.jit(lambda a, b: a + 0.001 * b)
    byte_rate = 12.0 * total.size / _seconds(add, total, 2.0 * total)
    return Roofline(flops, flop_rate, 40.0 * (actor + critic), byte_rate)


def _seconds(function: Callable[..., Array], *inputs: Array) -> float:
    """Least of many calls."""
    jax.block_until_ready(function(*inputs))
    best = float("inf")
    for _ in range(200):
        start = time.process_time()
        jax.block_until_ready(function(*inputs))
        best = min(best, time.process_time() - start)
    return best
