"""Replay: the last transitions as rows of one array that stays on the device.

A row is [obs | proposed | executed | next_obs | reward | terminated], so that storing is one write, drawing a batch
one gather of contiguous rows, and a million HalfCheetah transitions are 192 MB.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from feasible.algorithms.base import Spec, Transition


class Batch(eqx.Module):
    """Transitions drawn from the replay; the leading axis is the batch's."""

    obs: Float[Array, "b o"]
    proposed: Float[Array, "b n"]
    executed: Float[Array, "b n"]
    next_obs: Float[Array, "b o"]
    reward: Float[Array, " b"]
    continues: Float[Array, " b"]
    """0 where the episode terminated, else 1."""


class Replay(eqx.Module):
    """A ring of rows; `count` is how many were ever stored."""

    rows: Float[Array, "capacity width"]
    count: Int[Array, ""]

    @property
    def capacity(self) -> int:
        return self.rows.shape[0]


def row_width(spec: Spec) -> int:
    return 2 * (spec.observation_size + spec.action_size + 1)


def empty(capacity: int, spec: Spec) -> Replay:
    return Replay(jnp.zeros((capacity, row_width(spec)), spec.low.dtype), jnp.zeros((), jnp.int32))


def store(replay: Replay, transition: Transition, reward: Float[Array, ""]) -> Replay:
    """The replay with the transition instead of the oldest; the reward may be a shaped one."""
    decision = transition.decision
    ends = jnp.stack([reward, transition.terminated.astype(reward.dtype)])
    parts = (transition.obs, decision.proposed, decision.executed, transition.next_obs, ends)
    row = jnp.concatenate(parts)[None]
    place = replay.count % replay.capacity
    rows = jax.lax.dynamic_update_slice(replay.rows, row, (place, jnp.zeros_like(place)))
    return Replay(rows, replay.count + 1)


def draw(replay: Replay, size: int, key: PRNGKeyArray, spec: Spec) -> Batch:
    """A batch of rows, each uniform over those stored so far, with replacement.

    Places are 32 random bits modulo the number of rows: one draw where `randint` makes three, and of a million rows
    none is likelier than another by more than 2.4e-4.
    """
    stored = jnp.minimum(replay.count, replay.capacity).astype(jnp.uint32)
    rows = replay.rows[jax.random.bits(key, (size,), jnp.uint32) % stored]
    o, n = spec.observation_size, spec.action_size
    obs, proposed, executed, next_obs, ends = jnp.split(rows, [o, o + n, o + 2 * n, 2 * o + 2 * n], axis=1)
    return Batch(obs, proposed, executed, next_obs, ends[:, 0], 1.0 - ends[:, 1])
