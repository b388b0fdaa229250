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
`target_noise` the target's action is the policy's plus clipped noise, in the box. Both and an actor that is updated at
every other step (`actor_interval=2`) make it TD3, with any rule; but the target networks follow at every step.

The actor is never at rest, and its output wavers around what it has learned. With `averaged` the policy in use, in
evaluations and policy files, is the target actor, an exponential average of the actor over about 1 / `target_ratio`
updates, which is there anyway. The actor itself explores: learning is the same, bit for bit.

With `normalised` all networks see x = (s - mean) / deviation, by running statistics of the stored transitions' s. The
replay keeps s itself, seen by the statistics of the moment when it is drawn; the constraint sees s.

Against the paper's text: actions are stored as executed (its Algorithm 2 writes the proposal, its argument needs the
executed one); target networks start as copies; a time limit is not a termination. Actor and critic are both updated
from the networks as they were before the update, as the snapshots of Algorithm 2 say. Against the authors' code: one
batch for both (they draw two), sampled from stored transitions only, and no defect of it (`feasible.paper.as_authors`).
"""

from collections.abc import Mapping
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from feasible.algorithms.actor_rules import STATES, ActorRule, regression_loss
from feasible.algorithms.adam import adam_state, adam_step, after
from feasible.algorithms.base import Algorithm, Decision, Metrics, Spec, Transition, is_zero
from feasible.algorithms.nets import Actor, Critic, Hidden, Output, Twin, blend
from feasible.algorithms.replay import Batch, Replay, draw, empty, store
from feasible.algorithms.statistics import Statistics, absorbed, no_statistics, seen, taken_apart, with_statistics

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
    """Weight of the distance from the proposal to its projection, taken off the reward."""
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
    """Two critics, of which the target takes the lesser value."""
    target_noise: float = 0.0
    """Standard deviation of the noise on the target's action, in units of the action; clipped at 2.5 of it."""
    averaged: bool = False
    """The policy in use is the target actor, an average of the actor's weights; the actor explores."""
    normalised: bool = False
    """Whether the networks see observations by their running mean and deviation."""
    copies: int = 1
    """Copies of the environment that are stepped as one."""

    @property
    def intervals(self) -> Mapping[str, int]:
        return {"actor": self.actor_interval, "critic": self.critic_interval}

    @property
    def environments(self) -> int:
        return self.copies

    def init(self, key: PRNGKeyArray, spec: Spec) -> DDPGState:
        actor_key, critic_key = jax.random.split(key)
        o, n = spec.observation_size, spec.action_size
        nets = (
            Actor(o, n, self.hidden_layers, self.actor_hidden, self.output, actor_key),
            (Twin if self.twin else Critic)(o, n, self.hidden_layers, self.critic_hidden, critic_key),
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
            no_statistics(o, spec.low.dtype) if self.normalised else None,
        )

    def act(self, policy: Policy, spec: Spec, obs: Float[Array, " o"], key: PRNGKeyArray, *, explore: bool) -> Decision:
        actor, statistics = taken_apart(policy)
        output = actor(seen(statistics, obs), spec.low, spec.high)
        intended = spec.clip(output)
        proposed = intended
        if explore:
            noise = jnp.asarray(self.noise, output.dtype) * jax.random.normal(key, output.shape, output.dtype)
            proposed = spec.clip(output + noise)
        return spec.decide(obs, proposed, intended)

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
        return DDPGState(
            actor,
            critic,
            blend(state.target_actor, actor, self.target_ratio),
            blend(state.target_critic, critic, self.target_ratio),
            actor_optimiser,
            critic_optimiser,
            state.replay,
            state.statistics,
        ), metrics

    def actor_gradient(self, state: DDPGState, spec: Spec, batch: Batch) -> tuple[Actor, Metrics]:
        """Gradient of the regression to the rule's reference actions, at the current actor."""

        def direction(obs: Array, proposed: Array) -> tuple[Array, Metrics]:
            def gradient(action: Array) -> Array:
                return jax.grad(state.critic, argnums=1)(seen(state.statistics, obs), action)

            return self.rule.direction(spec.feasible_set(obs), proposed, gradient)

        def loss(actor: Actor) -> tuple[Array, Metrics]:
            actions = jax.vmap(lambda obs: actor(seen(state.statistics, obs), spec.low, spec.high))(batch.obs)
            proposed = jax.lax.stop_gradient(actions)
            directions, metrics = jax.vmap(direction, axis_name=STATES)(batch.obs, proposed)
            return regression_loss(actions, proposed + directions), metrics

        grads, metrics = jax.grad(loss, has_aux=True)(state.actor)
        return grads, jax.tree.map(jnp.mean, metrics)

    def critic_loss(
        self, critic: Critic, state: DDPGState, spec: Spec, batch: Batch, key: PRNGKeyArray
    ) -> tuple[Array, Metrics]:
        """Mean squared temporal-difference error of the executed actions; of two critics, their sum."""

        def next_value(obs: Array, noise: Array) -> Array:
            x = seen(state.statistics, obs)
            output = state.target_actor(x, spec.low, spec.high)
            if not is_zero(self.target_noise):
                noisy = spec.clip(output + self.target_noise * noise)
                output = jnp.where(self.target_noise > 0, noisy, output)  # merged agents may have none
            return jnp.min(state.target_critic.values(x, self.rule.target_action(spec.feasible_set(obs), output)))

        noise = jax.random.normal(key, batch.executed.shape, batch.executed.dtype).clip(-NOISE_REACH, NOISE_REACH)
        target = batch.reward + self.discount * batch.continues * jax.vmap(next_value)(batch.next_obs, noise)
        x = jax.vmap(partial(seen, state.statistics))(batch.obs)
        values = jax.vmap(critic.values)(x, batch.executed)
        loss = jnp.sum(jnp.mean(jnp.square(values - target[:, None]), axis=0))
        return loss, {"critic/value": jnp.mean(values[:, 0])}

    def policy(self, state: DDPGState, *, explore: bool = False) -> Policy:
        actor = state.target_actor if self.averaged and not explore else state.actor
        return with_statistics(actor, state.statistics)
