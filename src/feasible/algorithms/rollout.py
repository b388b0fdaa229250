"""Rollouts: the steps since the last update, as rows of one array that stays on the device.

A row is [x | sample | clipped | next x | gains | context | terminated | ended]: x the observation as the networks saw
it, the policy's sample and what executing made of it in units of the action box, the gains: the reward, then any costs,
and the context: what else the policy's density depends on, such as the raw observation. With several copies of the
environment their rows alternate.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int


class Step(eqx.Module):
    """What a row holds; the leading axes of a whole rollout are time and copy."""

    x: Float[Array, "*b o"]
    sample: Float[Array, "*b n"]
    clipped: Float[Array, "*b n"]
    next_x: Float[Array, "*b o"]
    gains: Float[Array, "*b g"]
    context: Float[Array, "*b c"]
    terminated: Bool[Array, "*b"]
    ended: Bool[Array, "*b"]


class Rollout(eqx.Module):
    """`count` rows were ever recorded; the next takes the place `count` modulo the length."""

    rows: Float[Array, "length width"]
    count: Int[Array, ""]


def no_rollout(
    length: int, observation_size: int, sample_size: int, gains: int, dtype: jnp.dtype, context: int = 0
) -> Rollout:
    width = 2 * (observation_size + sample_size) + gains + context + 2
    return Rollout(jnp.zeros((length, width), dtype), jnp.zeros((), jnp.int32))


def record(rollout: Rollout, step: Step) -> Rollout:
    """The rollout with one step more."""
    ends = jnp.stack([step.terminated, step.ended]).astype(rollout.rows.dtype)
    row = jnp.concatenate([step.x, step.sample, step.clipped, step.next_x, step.gains, step.context, ends])[None]
    place = rollout.count % rollout.rows.shape[0]
    return Rollout(jax.lax.dynamic_update_slice(rollout.rows, row, (place, jnp.zeros_like(place))), rollout.count + 1)


def broken_off(rollout: Rollout, copies: int) -> Rollout:
    """The rollout whose latest row of each copy is the last of its episode, which did not terminate."""
    length = rollout.rows.shape[0]
    latest = (rollout.count - 1 - jnp.arange(copies, dtype=rollout.count.dtype)) % length
    ended = rollout.rows.at[latest, -1].set(1.0)
    return Rollout(jnp.where(rollout.count > 0, ended, rollout.rows), rollout.count)


def steps(rollout: Rollout, copies: int, observation_size: int, sample_size: int, context: int = 0) -> Step:
    """A full rollout by time and copy."""
    o, n = observation_size, sample_size
    rows = rollout.rows.reshape(-1, copies, rollout.rows.shape[1])
    last = rows.shape[-1] - 2
    x, sample, clipped, next_x, gains, known, ends = jnp.split(
        rows, [o, o + n, o + 2 * n, 2 * (o + n), last - context, last], axis=-1
    )
    return Step(x, sample, clipped, next_x, gains, known, ends[..., 0] > 0, ends[..., 1] > 0)
