"""NFWPO (Algorithm 2 of the paper) and the DDPG baselines: one off-policy actor-critic with an actor rule.

    for each step
        propose pi(s) + noise, clipped to the box; execute the feasible set's answer to it; store the transition
        draw one batch B
        actor:   one Adam step on the regression of pi(s) to the rule's reference actions, s in B
        critic:  one Adam step on the mean over B of (r + gamma Q'(s', rule's target action) - Q(s, executed))^2
        targets: actor' and critic' move towards the online networks by the ratio tau

| method             | rule                      | shaping weight |
|--------------------|---------------------------|----------------|
| NFWPO              | `FrankWolfe(step)`        | 0              |
| DDPG+Projection    | `PolicyGradient()`        | 0              |
| DDPG+RewardShaping | `PolicyGradient()`        | > 0            |
| DDPG+OptLayer      | `ThroughProjection()`     | 0              |
| ProjectedGradient  | `ProjectedGradient(step)` | 0              |

With `twin` there are two critics: the target takes the lesser of their values, the actor the first one's gradient. With
`target_noise` the target's action is the policy's plus clipped noise, in the box. Both, an actor that is updated at
every other step (`actor_interval=2`) and targets that follow only then (`delayed_targets`) make it TD3, with any rule.

The factors of the field's methods (`docs/methods.md`):

    map          a = M(y), y the actor's output: the regression is of M(y) to a + d, through M's derivative
    critic_at    proposed: the critic is of proposals, which the environment repairs; the warm-up draws from the box
    penalty      the actor's loss gets penalty times the mean distance from the output, before the map, to the set

With `relative_to` outputs are relative to an action that the observation holds: the present allocation of bikes, or
the last action. An actor that puts out zeros then leaves things as they are, which is hard to learn otherwise.

The actor is never at rest, and its output wavers around what it has learned. With `averaged` the policy in use, in
evaluations and policy files, is the target actor, an exponential average of the actor over about 1 / `target_ratio`
updates, which is there anyway. The actor itself explores: learning is the same, bit for bit.

With `normalised` all networks see x = (s - mean) / deviation, by running statistics of the stored transitions' s. The
replay keeps s itself, seen by the statistics of the moment when it is drawn; the constraint sees s. With "shrunk"
deviations below one count as one: entries that hardly change are centred, and not magnified to noise of size one.

Against the paper's text: actions are stored as executed (its Algorithm 2 writes the proposal, its argument needs the
executed one); target networks start as copies; a time limit is not a termination. Actor and critic are both updated
from the networks as they were before the update, as the snapshots of Algorithm 2 say. Against the authors' code: one
batch for both (they draw two), sampled from stored transitions only, and no defect of it (`feasible.paper.as_authors`).
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from feasible.algorithms.actor_rules import STATES, ActorRule, regression_loss
from feasible.algorithms.adam import adam_state, adam_step, after
from feasible.algorithms.base import Algorithm, CriticUnits, Decision, Metrics, Spec, Transition, is_zero
from feasible.algorithms.maps import MAPS, ActionMap, distance, has_room, in_the_box, trouble_inside
from feasible.algorithms.nets import Actor, Critic, Hidden, Output, Twin, blend
from feasible.algorithms.replay import Batch, Replay, draw, empty, store
from feasible.algorithms.statistics import (
    Normalised,
    Statistics,
    absorbed,
    seen,
    statistics_for,
    taken_apart,
    with_statistics,
)

NOISE_REACH = 2.5  # deviations: TD3 draws with 0.2 and clips at 0.5


class DDPGState(eqx.Module):
    actor: Actor
    critic: Critic
    target_actor: Actor
    target_critic: Critic
    actor_optimiser: optax.OptState
    critic_optimiser: optax.OptState
    replay: Replay
    statistics: Statistics | None = None
    """Of the stored observations, where they are normalised."""


Policy = Actor | tuple[Actor, Statistics]


class DDPG(Algorithm[DDPGState]):
    """Deterministic policy gradient under action constraints; `rule` makes it NFWPO or one of the baselines."""

    rule: ActorRule
    noise: float | tuple[float, ...]
    """Standard deviation of the Gaussian exploration noise, in units of the action."""
    shaping: float = 0.0
    """Weight of the distance from the proposal to its projection, subtracted from the reward."""
    warmup: int = 10_000
    """First steps, with actions drawn from the feasible sets."""
    batch_size: int = 64
    """Transitions in a batch."""
    replay_size: int = 1_000_000
    """Transitions kept."""
    discount: float = 0.99
    """gamma: what a reward one step later is worth."""
    actor_rate: float = 1e-4
    """Adam's rate of the actor."""
    critic_rate: float = 1e-3
    """Adam's rate of the critic."""
    target_ratio: float = 1e-3
    """tau: share of the online network that enters its target at each update."""
    actor_interval: int = 1
    """Steps between updates of the actor."""
    critic_interval: int = 1
    """Steps between updates of the critic."""
    hidden_layers: tuple[int, ...] = (400, 300)
    """Units of the hidden layers."""
    actor_hidden: Hidden = "relu"
    """Activation of the actor's hidden layers."""
    critic_hidden: Hidden = "relu"
    """Activation of the critic's hidden layers."""
    output: Output = "tanh"
    """Activation of the actor's output; tanh spans the action box."""
    twin: bool = False
    """Train two critics; the target takes the smaller value."""
    target_noise: float | tuple[float, ...] = 0.0
    """Standard deviation of the noise on the target's action, in units of the action; clipped at 2.5 of it."""
    delayed_targets: bool = False
    """Move the target networks only when the actor is updated, as TD3 does."""
    averaged: bool = False
    """Use the target actor, an average of the actor's weights, as the policy; the actor explores."""
    normalised: Normalised = False
    """Normalise what the networks see by the running mean and deviation; `shrunk`: by deviations above one only."""
    copies: int = 1
    """Copies of the environment that step together."""

    map: Literal["projection", "alpha", "radial"] = "projection"
    """How the actor's output becomes a proposal (`feasible.algorithms.maps`)."""
    critic_at: Literal["executed", "proposed"] = "executed"
    """The action that the critic values: the executed one, or the proposed one, which the environment then repairs."""
    penalty: float = 0.0
    """Weight of the distance from the actor's output to the feasible set, in the actor's loss."""
    critic_joined: int = 1
    """The critic's layer at which the action enters, counted from 0."""
    critic_units: CriticUnits = "action"
    """Units in which critics see actions: as they are, or from -1 to 1 over the action box."""
    relative_to: tuple[int, ...] = ()
    """Entries of the observation that hold a known feasible action, which the actor's outputs are relative to."""

    @property
    def action_map(self) -> ActionMap:
        return MAPS[self.map] if isinstance(self.map, str) else self.map  # merged agents have one of several

    @property
    def intervals(self) -> Mapping[str, int]:
        return {"actor": self.actor_interval, "critic": self.critic_interval}

    @property
    def environments(self) -> int:
        return self.copies

    def able(self, spec: Spec, obs: Float[Array, " o"]) -> Bool[Array, ""] | None:
        inside = isinstance(self.map, str) and self.map != "projection"  # merged agents have one of several
        return has_room(spec.feasible_set(obs)) if inside else None

    def trouble(self, spec: Spec, obs: Float[Array, " o"]) -> str | None:
        return None if self.map == "projection" else trouble_inside(spec.feasible_set(obs), self.map)

    def init(self, key: PRNGKeyArray, spec: Spec) -> DDPGState:
        self.check(spec)
        actor_key, critic_key = jax.random.split(key)
        o, n, outputs = spec.observation_size, spec.action_size, self.action_map.outputs(spec.region)
        nets = (
            Actor(o, outputs, self.hidden_layers, self.actor_hidden, self.output, actor_key),
            (Twin if self.twin else Critic)(
                o, n, self.hidden_layers, self.critic_hidden, critic_key, joined=self.critic_joined
            ),
        )
        actor, critic = jax.tree.map(lambda leaf: leaf.astype(spec.low.dtype), nets)
        return DDPGState(
            actor,
            critic,
            jax.tree.map(jnp.copy, actor),
            jax.tree.map(jnp.copy, critic),
            adam_state(self.actor_rate, actor),
            adam_state(self.critic_rate, critic),
            empty(self.replay_size, spec),
            statistics_for(self.normalised, o, spec.low.dtype),
        )

    def check(self, spec: Spec) -> None:
        """Refuse settings that do not fit the sizes of the task."""
        n, o = spec.action_size, spec.observation_size
        for name, deviation in (("noise", self.noise), ("target_noise", self.target_noise)):
            if isinstance(deviation, tuple) and len(deviation) not in (1, n):
                raise ValueError(f"DDPG: {name} must be one number or {n}, one for each action, not {len(deviation)}.")
        if self.relative_to and (len(self.relative_to) != n or max(self.relative_to) >= o):
            raise ValueError(
                f"DDPG: relative_to must name the {n} entries of the observation that hold an action, each from 0 to "
                f"{o - 1}, not {self.relative_to}."
            )

    def act(self, policy: Policy, spec: Spec, obs: Float[Array, " o"], key: PRNGKeyArray, *, explore: bool) -> Decision:
        actor, statistics = taken_apart(policy)
        spec, region, action_map = self._at(spec, obs), spec.feasible_set(obs), self.action_map
        output = actor(seen(statistics, obs), *action_map.bounds(spec, region))
        intended = action_map.proposed(spec, region, output)
        proposed = intended
        if explore:
            normal = jax.random.normal(key, output.shape, output.dtype)
            proposed = action_map.explored(spec, region, output, jnp.asarray(self.noise, output.dtype), normal)
        return spec.decide(obs, proposed, intended)

    def warmup_proposal(self, spec: Spec, obs: Float[Array, " o"], key: PRNGKeyArray) -> Float[Array, " n"]:
        return self._valued(super().warmup_proposal(spec, obs, key), in_the_box(spec, key))

    def observe(self, state: DDPGState, spec: Spec, transition: Transition) -> DDPGState:
        reward = transition.reward
        if not is_zero(self.shaping):
            proposed = transition.decision.proposed
            nearest = spec.feasible_set(transition.obs).project(proposed)
            reward = reward - self.shaping * jnp.linalg.norm(proposed - nearest)
        new = store(state.replay, transition, reward), absorbed(state.statistics, transition.obs)
        return eqx.tree_at(lambda s: (s.replay, s.statistics), state, new, is_leaf=lambda leaf: leaf is None)

    def update(self, state: DDPGState, spec: Spec, key: PRNGKeyArray, due: frozenset[str]) -> tuple[DDPGState, Metrics]:
        batch = draw(state.replay, self.batch_size, key, spec)
        return self.learned(state, spec, jax.random.fold_in(key, 2), due, batch, batch)

    def learned(
        self,
        state: DDPGState,
        spec: Spec,
        key: PRNGKeyArray,
        due: frozenset[str],
        actor_batch: Batch,
        critic_batch: Batch,
    ) -> tuple[DDPGState, Metrics]:
        """The state after a step of the actor and one of the critic, both from the networks as they are."""
        actor_grads, critic_grads, metrics = None, None, {}
        if "actor" in due:
            actor_grads, metrics = self.actor_gradient(state, spec, actor_batch)
        if "critic" in due:
            gradient = jax.value_and_grad(self.critic_loss, has_aux=True)
            (loss, seen), critic_grads = gradient(state.critic, state, spec, critic_batch, key)
            metrics = metrics | {"critic/loss": loss, **seen}
        actor_rate, critic_rate = after((actor_grads, critic_grads), self.actor_rate, self.critic_rate)
        actor, actor_optimiser = state.actor, state.actor_optimiser
        critic, critic_optimiser = state.critic, state.critic_optimiser
        if actor_grads is not None:
            actor, actor_optimiser = adam_step(actor_rate, actor_grads, actor_optimiser, actor)
        if critic_grads is not None:
            critic, critic_optimiser = adam_step(critic_rate, critic_grads, critic_optimiser, critic)
        targets = state.target_actor, state.target_critic
        if "actor" in due or not self.delayed_targets:
            targets = blend(targets, (actor, critic), self.target_ratio)
        return DDPGState(
            actor,
            critic,
            *targets,
            actor_optimiser,
            critic_optimiser,
            state.replay,
            state.statistics,
        ), metrics

    def actor_gradient(self, state: DDPGState, spec: Spec, batch: Batch) -> tuple[Actor, Metrics]:
        """Gradient of the regression to the rule's reference actions, at the current actor."""

        def direction(obs: Array, proposed: Array) -> tuple[Array, Metrics]:
            x = seen(state.statistics, obs)

            def gradient(action: Array) -> Array:
                return jax.grad(lambda a: state.critic(x, spec.judged(a, self.critic_units)))(action)

            return self.rule.direction(spec.feasible_set(obs), proposed, gradient)

        def answered(obs: Array, actor: Actor) -> tuple[Array, Array]:
            """The action that the critic is asked about, and its distance from the set before it was brought in."""
            at, region = self._at(spec, obs), spec.feasible_set(obs)
            output = actor(seen(state.statistics, obs), *self.action_map.bounds(at, region))
            action = self.action_map.action(at, region, output)
            if is_zero(self.penalty):
                return action, jnp.zeros((), action.dtype)
            return action, distance(region, self.action_map.point(at, region, output))

        def loss(actor: Actor) -> tuple[Array, Metrics]:
            actions, outside = jax.vmap(answered, in_axes=(0, None))(batch.obs, actor)
            proposed = jax.lax.stop_gradient(actions)
            directions, metrics = jax.vmap(direction, axis_name=STATES)(batch.obs, proposed)
            loss = regression_loss(actions, proposed + directions)
            if is_zero(self.penalty):
                return loss, metrics
            return loss + self.penalty * jnp.mean(outside), metrics | {"actor/outside": jnp.mean(outside)}

        grads, metrics = jax.grad(loss, has_aux=True)(state.actor)
        return grads, jax.tree.map(jnp.mean, metrics)

    def critic_loss(
        self, critic: Critic, state: DDPGState, spec: Spec, batch: Batch, key: PRNGKeyArray
    ) -> tuple[Array, Metrics]:
        """Mean squared temporal-difference error of the critic's actions; of two critics, their sum."""

        def next_value(obs: Array, noise: Array) -> Array:
            x = seen(state.statistics, obs)
            at, region = self._at(spec, obs), spec.feasible_set(obs)
            output = state.target_actor(x, *self.action_map.bounds(at, region))
            action = self.action_map.target(at, region, output, None)
            if not is_zero(self.target_noise):
                deviation = jnp.asarray(self.target_noise, noise.dtype)
                noisy = self.action_map.target(at, region, output, deviation * noise)
                action = jnp.where(jnp.any(deviation > 0), noisy, action)  # merged agents may have none
            action = self._valued(self.rule.target_action(region, action), action)
            return jnp.min(state.target_critic.values(x, spec.judged(action, self.critic_units)))

        noise = jax.random.normal(key, batch.executed.shape, batch.executed.dtype).clip(-NOISE_REACH, NOISE_REACH)
        target = batch.reward + self.discount * batch.continues * jax.vmap(next_value)(batch.next_obs, noise)
        x = jax.vmap(partial(seen, state.statistics))(batch.obs)
        actions = self._valued(batch.executed, batch.proposed)
        values = jax.vmap(lambda x, action: critic.values(x, spec.judged(action, self.critic_units)))(x, actions)
        loss = jnp.sum(jnp.mean(jnp.square(values - target[:, None]), axis=0))
        return loss, {"critic/value": jnp.mean(values[:, 0])}

    def _at(self, spec: Spec, obs: Float[Array, " o"]) -> Spec:
        """The task with the reference action of an observation, where there is one."""
        if not self.relative_to:
            return spec
        return replace(spec, reference=obs[np.array(self.relative_to)])

    def _valued(self, executed: Array, proposed: Array) -> Array:
        """The one of both that the critic values."""
        if isinstance(self.critic_at, str):
            return executed if self.critic_at == "executed" else proposed
        return jnp.where(self.critic_at, proposed, executed)  # merged agents differ

    def policy(self, state: DDPGState, *, explore: bool = False) -> Policy:
        actor = state.target_actor if self.averaged and not explore else state.actor
        return with_statistics(actor, state.statistics)
