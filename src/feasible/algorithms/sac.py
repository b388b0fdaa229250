"""SAC+Projection: soft actor-critic whose samples are projected before they are executed.

    for each step
        propose a ~ pi(.|s), by its `map` a squashed Gaussian in the action box, or a mapped or restricted one in the
        feasible set (`feasible.algorithms.heads`); execute the set's answer to it; store both
        every `interval` steps, `updates` times over
            draw one batch B; a' ~ pi(.|s')
            critics: Adam on the mean over B of (Q_i(s, executed or, by `critic_at`, proposed) - y)^2,
                     y = r + gamma (min_i Q'_i(s', a') - w log pi(a'|s'))
            actor:   Adam on the mean over B of w log pi(a|s) - min_i Q_i(s, a) + penalty ||a - P(a)||, a ~ pi(.|s)
            weight:  with `entropy_target`, Adam on -log w (log pi(a|s) + target)
            targets: Q'_i move towards Q_i by the ratio tau

With `normalised` all networks see x = (s - mean) / deviation, by running statistics of the stored transitions' s, as in
`feasible.algorithms.ddpg`.

Log-densities are of the proposed action. Against Spinning Up, which the paper used: the warm-up draws from the feasible
sets, a time limit is not a termination, and all networks of one update are those from before it.
"""

from functools import partial
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from feasible.algorithms.base import Decision, Metrics, Spec, Transition, is_zero
from feasible.algorithms.gaussian import SquashedGaussian
from feasible.algorithms.heads import HEADS, Drawn, Head, TruncatedHead
from feasible.algorithms.maps import distance, has_room, in_the_box, trouble_inside
from feasible.algorithms.nets import Critic, two
from feasible.algorithms.replay import Batch, Replay, draw, empty, store
from feasible.algorithms.soft import SoftActorCritic
from feasible.algorithms.statistics import Statistics, absorbed, seen, statistics_for, taken_apart, with_statistics
from feasible.algorithms.truncated import check_truncated, scored

Critics = tuple[Critic, Critic]


class SACState(eqx.Module):
    actor: SquashedGaussian
    critics: Critics
    target_critics: Critics
    log_weight: Float[Array, ""]
    actor_optimiser: optax.OptState
    critic_optimiser: optax.OptState
    weight_optimiser: optax.OptState
    replay: Replay
    statistics: Statistics | None = None
    """Of the stored observations, where they are normalised."""


Policy = SquashedGaussian | tuple[SquashedGaussian, Statistics]


class SAC(SoftActorCritic[SACState]):
    """Soft actor-critic under action constraints."""

    map: Literal["squash", "alpha", "radial", "truncated"] = "squash"
    """How mean and deviation become an action with a density (`feasible.algorithms.heads`)."""
    directions: int = 32
    """Rays from the mean by which `truncated` measures the set; an even number."""
    critic_at: Literal["executed", "proposed"] = "executed"
    """The action that the critics value: the executed one, or the proposed one, which the environment then repairs."""
    penalty: float = 0.0
    """Weight of the distance from the policy's sample to the feasible set, in the actor's loss."""

    @property
    def head(self) -> Head:
        return HEADS.get(self.map) or TruncatedHead(self.directions)

    def dimensions(self, spec: Spec) -> int:
        return self.head.outputs(spec.region)

    def able(self, spec: Spec, obs: Float[Array, " o"]) -> Bool[Array, ""] | None:
        return None if self.map == "squash" else has_room(spec.feasible_set(obs))

    def trouble(self, spec: Spec, obs: Float[Array, " o"]) -> str | None:
        return None if self.map == "squash" else trouble_inside(spec.feasible_set(obs), self.map)

    def init(self, key: PRNGKeyArray, spec: Spec) -> SACState:
        self.check(spec)
        keys = jax.random.split(key, 3)
        actor_key, critic_keys = keys[0], keys[1:]
        o, n = spec.observation_size, spec.action_size
        actor = SquashedGaussian(o, self.dimensions(spec), self.hidden_layers, self.hidden, actor_key)
        critics = two(lambda k: Critic(o, n, self.hidden_layers, self.hidden, k, joined=0), critic_keys)
        networks = self.networks(actor, critics, spec.low.dtype)
        statistics = statistics_for(self.normalised, o, spec.low.dtype)
        return SACState(**networks._asdict(), replay=empty(self.replay_size, spec), statistics=statistics)

    def act(self, policy: Policy, spec: Spec, obs: Float[Array, " o"], key: PRNGKeyArray, *, explore: bool) -> Decision:
        actor, statistics = taken_apart(policy)
        x, region = seen(statistics, obs), spec.feasible_set(obs)
        intended = self.head.mode(actor, spec, region, x)
        proposed = self.head.sample(actor, spec, region, x, key).action if explore else intended
        return spec.decide(obs, proposed, intended)

    def warmup_proposal(self, spec: Spec, obs: Float[Array, " o"], key: PRNGKeyArray) -> Float[Array, " n"]:
        if self.critic_at == "proposed":
            return in_the_box(spec, key)
        return super().warmup_proposal(spec, obs, key)

    def check(self, spec: Spec) -> None:
        """Refuse a density where there is none."""
        if self.map == "truncated":
            check_truncated("SAC", spec, self.directions)

    def observe(self, state: SACState, spec: Spec, transition: Transition) -> SACState:
        new = store(state.replay, transition, transition.reward), absorbed(state.statistics, transition.obs)
        return eqx.tree_at(lambda s: (s.replay, s.statistics), state, new, is_leaf=lambda leaf: leaf is None)

    def update(self, state: SACState, spec: Spec, key: PRNGKeyArray, due: frozenset[str]) -> tuple[SACState, Metrics]:
        replay = state.replay
        # The replay is read only: it stays out of the loop's carry.
        learners = eqx.tree_at(lambda s: s.replay, state, None)
        learners, metrics = self.learned(
            learners,
            key,
            lambda key: draw(replay, self.batch_size, key, spec),
            lambda learners, batch, key: self.learn(learners, spec, batch, key),
        )
        return eqx.tree_at(lambda s: s.replay, learners, replay, is_leaf=lambda leaf: leaf is None), metrics

    def learn(self, state: SACState, spec: Spec, batch: Batch, key: PRNGKeyArray) -> tuple[SACState, Metrics]:
        """One update from one batch."""
        actor_keys, next_keys = (jax.random.split(k, self.batch_size) for k in jax.random.split(key))
        (actor_loss, entropy), actor_grads = jax.value_and_grad(self.actor_loss, has_aux=True)(
            state.actor, state, spec, batch, actor_keys
        )
        critic_loss, critic_grads = jax.value_and_grad(self.critic_loss)(state.critics, state, spec, batch, next_keys)
        metrics = {
            "actor/loss": actor_loss,
            "actor/entropy": entropy,
            "actor/entropy_weight": jnp.exp(state.log_weight),
            "critic/loss": critic_loss,
        }
        networks = self.stepped(state, spec, actor_grads, critic_grads, entropy)
        return SACState(**networks._asdict(), replay=state.replay, statistics=state.statistics), metrics

    def actor_loss(
        self, actor: SquashedGaussian, state: SACState, spec: Spec, batch: Batch, keys: PRNGKeyArray
    ) -> tuple[Array, Array]:
        """Mean of w log pi(a|s) - min_i Q_i(s, a), with the penalty, and the policy's entropy."""

        def one(obs: Array, key: PRNGKeyArray) -> tuple[Array, Drawn]:
            x, region = seen(state.statistics, obs), spec.feasible_set(obs)
            drawn = self.head.sample(actor, spec, region, x, key)
            value = least_value(state.critics, x, spec.judged(drawn.action, self.critic_units))
            if not is_zero(self.penalty):
                value = value - self.penalty * distance(region, drawn.action)
            return value, drawn

        values, drawn = jax.vmap(one)(batch.obs, keys)
        losses = jnp.exp(state.log_weight) * drawn.log_density - values
        if drawn.log_choice is not None:
            losses = losses + scored(losses, drawn.log_choice)
        return jnp.mean(losses), -jnp.mean(drawn.log_density)

    def critic_loss(self, critics: Critics, state: SACState, spec: Spec, batch: Batch, keys: PRNGKeyArray) -> Array:
        """Sum of both critics' mean squared temporal-difference errors at the actions that they value."""

        def next_value(obs: Array, key: PRNGKeyArray) -> Array:
            x = seen(state.statistics, obs)
            drawn = self.head.sample(state.actor, spec, spec.feasible_set(obs), x, key)
            density = drawn.log_density + self.log_unit(spec)
            action = spec.judged(drawn.action, self.critic_units)
            return least_value(state.target_critics, x, action) - jnp.exp(state.log_weight) * density

        target = batch.reward + self.discount * batch.continues * jax.vmap(next_value)(batch.next_obs, keys)
        x = jax.vmap(partial(seen, state.statistics))(batch.obs)
        actions = jax.vmap(lambda action: spec.judged(action, self.critic_units))(getattr(batch, self.critic_at))
        errors = [jax.vmap(critic)(x, actions) - target for critic in critics]
        return sum((jnp.mean(jnp.square(error)) for error in errors), jnp.zeros((), target.dtype))

    def policy(self, state: SACState, *, explore: bool = False) -> Policy:
        return with_statistics(state.actor, state.statistics)


def least_value(critics: Critics, obs: Float[Array, " o"], action: Float[Array, " n"]) -> Float[Array, ""]:
    """min_i Q_i(s, a): the pessimistic of two critics."""
    first, second = (critic(obs, action) for critic in critics)
    return jnp.minimum(first, second)
