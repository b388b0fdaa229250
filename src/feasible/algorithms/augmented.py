"""The two buffers of ARAM, and batches that mix them in a given proportion.

    D_real   executed steps, a row [obs | action | next_obs | reward, failed, terminated]: the action is the draw that
             was taken, `failed` is 1 where no draw was accepted
    D_aug    rejected draws, a row [obs | action]: the step of the augmented process that stays where it is

D_real is a `Replay`, so that checkpoints append its new rows; D_aug is saved whole.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from feasible.algorithms.base import Spec, Transition
from feasible.algorithms.replay import Replay


class Rejected(eqx.Module):
    """D_aug: a ring of `stored` rows; the next one takes the place `place`."""

    rows: Float[Array, "capacity width"]
    place: Int[Array, ""]
    stored: Int[Array, ""]


class Mixed(eqx.Module):
    """A batch of both buffers: rows of D_aug first, then those of D_real."""

    obs: Float[Array, "b o"]
    action: Float[Array, "b n"]
    next_obs: Float[Array, "b o"]
    reward: Float[Array, "b 2"]
    continues: Float[Array, " b"]
    """0 where the episode terminated, else 1."""
    rejected: Bool[Array, " b"]
    """Which rows are of D_aug."""


def no_steps(capacity: int, spec: Spec) -> Replay:
    width = 2 * spec.observation_size + spec.action_size + 3
    return Replay(jnp.zeros((capacity, width), spec.low.dtype), jnp.zeros((), jnp.int32))


def nothing_rejected(capacity: int, spec: Spec) -> Rejected:
    zero = jnp.zeros((), jnp.int32)
    return Rejected(jnp.zeros((capacity, spec.observation_size + spec.action_size), spec.low.dtype), zero, zero)


def store_step(
    replay: Replay,
    transition: Transition,
    action: Float[Array, " n"],
    reward: Float[Array, ""],
    failed: Bool[Array, ""],
) -> Replay:
    """D_real with one step more, instead of its oldest."""
    ends = jnp.stack([reward, failed.astype(reward.dtype), transition.terminated.astype(reward.dtype)])
    row = jnp.concatenate([transition.obs, action, transition.next_obs, ends])[None]
    place = replay.count % replay.capacity
    rows = jax.lax.dynamic_update_slice(replay.rows, row, (place, jnp.zeros_like(place)))
    return Replay(rows, replay.count + 1)


def store_rejected(
    buffer: Rejected, obs: Float[Array, " o"], draws: Float[Array, "k n"], rejected: Int[Array, ""]
) -> Rejected:
    """D_aug with the first `rejected` draws at an observation more, instead of its oldest: one masked write.

    There may be no more draws than the ring has places.
    """
    capacity, number = buffer.rows.shape[0], jnp.arange(draws.shape[0], dtype=rejected.dtype)
    places = jnp.where(number < rejected, (buffer.place + number) % capacity, capacity)
    new = jnp.concatenate([jnp.broadcast_to(obs, (draws.shape[0], obs.shape[0])), draws], axis=1)
    return Rejected(
        buffer.rows.at[places].set(new, mode="drop"),  # one place past the end is none
        (buffer.place + rejected) % capacity,
        jnp.minimum(buffer.stored + rejected, capacity),
    )


def mixed(
    replay: Replay,
    buffer: Rejected,
    size: int,
    share: Float[Array, ""],
    penalty: float | Float[Array, ""],
    key: PRNGKeyArray,
    spec: Spec,
) -> Mixed:
    """min(stored, floor(share size)) rows of D_aug and the rest of D_real, each uniform and with replacement.

    Rewards are [r, 0] for accepted draws, [r, -penalty] where none was, and [0, -penalty] for rejected ones, whose
    next observation is their own.
    """
    o, n = spec.observation_size, spec.action_size
    real_key, rejected_key = jax.random.split(key)
    wanted = jnp.floor(share * size).astype(jnp.int32)
    rejected = jnp.arange(size, dtype=jnp.int32) < jnp.minimum(buffer.stored, wanted)
    steps = replay.rows[_places(real_key, size, jnp.minimum(replay.count, replay.capacity))]
    draws = buffer.rows[_places(rejected_key, size, buffer.stored)]
    obs, action, next_obs, ends = jnp.split(steps, [o, o + n, 2 * o + n], axis=1)
    column = rejected[:, None]
    reward = jnp.where(rejected, 0.0, ends[:, 0])
    cost = penalty * jnp.where(rejected, 1.0, ends[:, 1]).astype(reward.dtype)
    return Mixed(
        jnp.where(column, draws[:, :o], obs),
        jnp.where(column, draws[:, o:], action),
        jnp.where(column, draws[:, :o], next_obs),
        jnp.stack([reward, -cost], axis=1),
        jnp.where(rejected, 1.0, 1.0 - ends[:, 2]).astype(reward.dtype),
        rejected,
    )


def _places(key: PRNGKeyArray, size: int, stored: Int[Array, ""]) -> Array:
    """Places below `stored`, as `feasible.algorithms.replay.draw` has them; zeros where nothing is stored."""
    return jax.random.bits(key, (size,), jnp.uint32) % jnp.maximum(stored, 1).astype(jnp.uint32)
