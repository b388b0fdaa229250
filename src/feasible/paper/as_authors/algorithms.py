"""The core's algorithms with one field for each departure of the authors' code; with none set they are the core's."""

from functools import lru_cache, partial
from itertools import combinations
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from feasible.algorithms.actor_rules import Action, ActionGradient, ThroughProjection
from feasible.algorithms.adam import adam_state
from feasible.algorithms.base import Decision, Metrics, Spec, Transition, is_zero
from feasible.algorithms.ddpg import DDPG, DDPGState, Policy
from feasible.algorithms.fwpo_critic import BikeTable, TableState
from feasible.algorithms.maps import in_the_box
from feasible.algorithms.nets import Actor, Critic
from feasible.algorithms.replay import Batch, Replay, draw
from feasible.algorithms.statistics import seen, taken_apart
from feasible.sets.base import ActionSet


class AuthorsProjection(ThroughProjection):
    """OptLayer's rule; `mirrored`, training projects minus the proposal: d = -J(-x0)^T grad_a Q at P(-x0)."""

    mirrored: bool = False
    executed_target: bool = False
    """The critic's target takes what would be executed, rounded where actions are integers."""

    def direction(self, feasible_set: ActionSet, proposed: Action, gradient: ActionGradient) -> tuple[Action, Metrics]:
        if not self.mirrored:
            return super().direction(feasible_set, proposed, gradient)
        pulled, metrics = super().direction(feasible_set, -proposed, gradient)
        return -pulled, metrics

    def target_action(self, feasible_set: ActionSet, proposed: Action) -> Action:
        return (feasible_set.execute if self.executed_target else feasible_set.project)(proposed)


class RangedActor(Actor):
    """An actor whose tanh spans a range of its own instead of the action box."""

    least: float = eqx.field(static=True)
    most: float = eqx.field(static=True)

    def __init__(self, actor: Actor, least: float, most: float):
        self.layers, self.hidden, self.output = actor.layers, actor.hidden, actor.output
        self.least, self.most = least, most

    def __call__(
        self, obs: Float[Array, " o"], low: Float[Array, " n"], high: Float[Array, " n"]
    ) -> Float[Array, " n"]:
        return super().__call__(obs, jnp.full_like(low, self.least), jnp.full_like(high, self.most))


class AuthorsDDPG(DDPG):
    """DDPG with a field for each departure of the authors' code; with the defaults it is `DDPG`.

    In a population each of the `switches` is an array, where its agents differ in it.
    """

    switches: ClassVar[frozenset[str]] = frozenset(
        (
            "targets_apart",
            "zero_row",
            "batches_apart",
            "loss_over_entries",
            "limits_terminate",
            "noise_clipped_alone",
            "warmup_in_box",
        )
    )

    targets_apart: bool = False
    zero_row: bool = False
    batches_apart: bool = False
    loss_over_entries: bool = False
    limits_terminate: bool = False
    noise_clipped_alone: bool = False
    warmup_in_box: bool = False
    output_range: tuple[float, float] | None = None
    warmup_range: tuple[float, float] | None = None
    warmup_allocations: tuple[int, int, int] | None = None
    """Bikes in all, and least and most of them at a station."""

    def init(self, key: PRNGKeyArray, spec: Spec) -> DDPGState:
        state = super().init(key, spec)
        if not is_zero(self.targets_apart):
            apart = super().init(jax.random.fold_in(key, 1), spec)
            targets = jax.tree.map(partial(jnp.where, self.targets_apart), _targets(apart), _targets(state))
            state = eqx.tree_at(_targets, state, targets)
        if self.output_range is None:
            return state
        actors = [RangedActor(actor, *self.output_range) for actor in (state.actor, state.target_actor)]
        state = eqx.tree_at(lambda s: (s.actor, s.target_actor), state, actors)
        return eqx.tree_at(lambda s: s.actor_optimiser, state, adam_state(self.actor_rate, state.actor))

    def warmup_proposal(self, spec: Spec, obs: Float[Array, " o"], key: PRNGKeyArray) -> Float[Array, " n"]:
        shape, dtype = spec.low.shape, spec.low.dtype
        if self.warmup_allocations is not None:
            choices = jnp.asarray(integer_allocations(spec.action_size, *self.warmup_allocations), dtype)
            return choices[jax.random.randint(key, (), 0, len(choices))]
        if self.warmup_range is not None:
            return jax.random.uniform(key, shape, dtype, *self.warmup_range)
        proposed = super().warmup_proposal(spec, obs, key)
        if is_zero(self.warmup_in_box):
            return proposed
        return jnp.where(self.warmup_in_box, in_the_box(spec, key), proposed)

    def act(self, policy: Policy, spec: Spec, obs: Float[Array, " o"], key: PRNGKeyArray, *, explore: bool) -> Decision:
        decision = super().act(policy, spec, obs, key, explore=explore)
        if not explore or is_zero(self.noise_clipped_alone):
            return decision
        actor, statistics = taken_apart(policy)
        output = actor(seen(statistics, obs), spec.low, spec.high)
        noise = jnp.asarray(self.noise, output.dtype) * jax.random.normal(key, output.shape, output.dtype)
        proposed = jnp.where(self.noise_clipped_alone, output + spec.clip(noise), decision.proposed)
        return spec.decide(obs, proposed, decision.intended)

    def observe(self, state: DDPGState, spec: Spec, transition: Transition) -> DDPGState:
        if not is_zero(self.limits_terminate):
            # Their counter of an episode's steps is compared with the limit but never set back.
            past_first = state.replay.count >= (spec.episode_length or 0)
            ended = transition.terminated | (transition.truncated & past_first & self.limits_terminate)
            transition = eqx.tree_at(lambda t: t.terminated, transition, ended)
        return super().observe(state, spec, transition)

    def update(self, state: DDPGState, spec: Spec, key: PRNGKeyArray, due: frozenset[str]) -> tuple[DDPGState, Metrics]:
        batches = self.batches(state.replay, spec, key)
        return self.learned(state, spec, jax.random.fold_in(key, 2), due, *batches)

    def batches(self, replay: Replay, spec: Spec, key: PRNGKeyArray) -> tuple[Batch, Batch]:
        """The transitions of the actor's step and of the critic's."""
        replay = _with_next_row(replay, self.zero_row)
        if is_zero(self.batches_apart):
            batch = draw(replay, self.batch_size, key, spec)
            return batch, batch
        keys = [jnp.where(self.batches_apart, own, key) for own in jax.random.split(key)]
        first, second = (draw(replay, self.batch_size, own, spec) for own in keys)
        return first, second

    def actor_gradient(self, state: DDPGState, spec: Spec, batch: Batch) -> tuple[Actor, Metrics]:
        grads, metrics = super().actor_gradient(state, spec, batch)
        if not is_zero(self.loss_over_entries):
            share = jnp.where(self.loss_over_entries, 2.0 / spec.action_size, 1.0)
            grads = jax.tree.map(lambda g: g * share.astype(g.dtype), grads)
        return grads, metrics


def _targets(state: DDPGState) -> tuple[Actor, Critic]:
    return state.target_actor, state.target_critic


class AuthorsTable(BikeTable):
    """The table with a field for each departure of the authors' code; with the defaults it is `BikeTable`."""

    targets_apart: bool = False
    zero_row: bool = False
    odd_observation: bool = False

    def init(self, key: PRNGKeyArray, spec: Spec) -> TableState:
        state = super().init(key, spec)
        if not self.targets_apart:
            return state
        return eqx.tree_at(lambda s: s.target_critic, state, self.network(jax.random.fold_in(key, 1), spec))

    def seen(self, obs: Float[Array, " o"]) -> Float[Array, " c"]:
        return obs if self.odd_observation else super().seen(obs)

    def judged_at(self, spec: Spec, bikes: Float[Array, " n"]) -> Float[Array, " o"]:
        if not self.odd_observation:
            return super().judged_at(spec, bikes)
        index = bikes[:1] - self.low
        return jnp.concatenate([jnp.tile(index, self.stations), bikes, index])

    def batch(self, replay: Replay, spec: Spec, key: PRNGKeyArray) -> Batch:
        return super().batch(_with_next_row(replay, self.zero_row), spec, key)


def _with_next_row(replay: Replay, zero_row: bool | Bool[Array, ""]) -> Replay:
    """The replay as sampled by their index, which runs one row past the last stored: zeros until the ring is full."""
    return replay if is_zero(zero_row) else Replay(replay.rows, replay.count + jnp.asarray(zero_row, jnp.int32))


@lru_cache
def integer_allocations(stations: int, bikes: int, least: int, most: int) -> Float[np.ndarray, "k n"]:
    """All ways to put the bikes at the stations with `least` to `most` at each."""
    free = stations * most - bikes
    bars = np.array(list(combinations(range(free + stations - 1), stations - 1)))
    room = np.diff(bars, axis=1, prepend=-1, append=free + stations - 1) - 1
    points = most - room
    return points[(points >= least).all(1)].astype(np.float32)
