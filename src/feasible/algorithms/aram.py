"""ARAM: acceptance-rejection with an augmented process and preferences, on soft actor-critic (arXiv 2503.12932).

    for each step, with the episode's preference l = (l_1, l_2) ~ Dirichlet(1, 1)
        draw a_1, ..., a_K ~ pi(.|s, l), squashed Gaussian; k = the first draw that the feasible set accepts
        execute the set's answer to a_k; D_real gets (s, a_k, [r / k1 + k2, 0], s'), D_aug gets a_1, ..., a_(k-1)
        if none is accepted: execute the projection of a_K; D_real gets (s, a_K, [r / k1 + k2, -kappa], s'),
                             D_aug gets a_1, ..., a_K
        every `interval` steps, `updates` times over, with a preference l of its own
            draw one batch B: min(|D_aug|, rho b) rows of D_aug as (s, a, [0, -kappa], s), never terminal, and the rest
                of D_real; rho = augmented_share * augmented_decay^(steps / 10,000); a' ~ pi(.|s', l)
            critics: Adam on the mean over B of l . (Q_i(s, a, l) - y)^2, squares by entry,
                     y = R + gamma (Q'_j(s', a', l) - w log pi(a'|s', l)), j the twin of smaller l . Q'_j
            actor:   Adam on the mean over B and `samples` draws a ~ pi(.|s, l) of
                     w log pi(a|s, l) - max over critics Q and preferences v of min_i l . Q_i(s, a, v)
            weight, targets: as in `feasible.algorithms.sac`

The critics of the maximum are the present ones and up to `snapshots` old ones, one kept every `snapshot_interval`
updates; the preferences v are l and `preferences` - 1 others. By default there is l and the present critic alone.
Without exploration the policy proposes the mode at the preference (`preference`, 1 - `preference`).

Acceptance is `ActionSet.accepts` of all K draws at once, inside the compiled step: no solver and no loop. `proposed` is
the first draw, so that the share of infeasible proposals is one minus the share of valid actions. Log-densities are
those of the UNTRUNCATED policy, as theirs, though executed draws follow the one restricted to the set.

Against the authors' code: buffers of the size that is said (theirs keeps 100 transitions and never learns), every set,
a time limit is not a termination, all networks of one update are those from before it, snapshots from the first
interval on (theirs: from update 20,000), and fewer `samples` (theirs: 100, a hundred times the cost of the actor's
loss). As theirs: the first `warmup` steps draw uniformly from the action box, with rejection.
"""

from dataclasses import replace
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray, UInt32

from feasible.algorithms.augmented import (
    Mixed,
    Rejected,
    mixed,
    no_steps,
    nothing_rejected,
    store_rejected,
    store_step,
)
from feasible.algorithms.base import Decision, Metrics, Spec, Transition, is_zero
from feasible.algorithms.gaussian import SquashedGaussian
from feasible.algorithms.nets import two
from feasible.algorithms.preferences import Preference, VectorCritic, VectorCritics, dirichlet, kept
from feasible.algorithms.replay import Replay
from feasible.algorithms.soft import SoftActorCritic
from feasible.algorithms.statistics import Statistics, absorbed, seen, statistics_for

DECAY_STEPS = 10_000


class ARAMPolicy(eqx.Module):
    """An actor under a preference."""

    actor: SquashedGaussian
    preference: Preference
    statistics: Statistics | None

    def sees(self, obs: Float[Array, " o"]) -> Float[Array, " o+2"]:
        return jnp.concatenate([seen(self.statistics, obs), self.preference])


class ARAMState(eqx.Module):
    actor: SquashedGaussian
    critics: VectorCritics
    target_critics: VectorCritics
    old_critics: VectorCritics | None
    """A ring of old critics, stacked, where some are kept."""
    learned: Int[Array, ""]
    """Updates so far."""
    log_weight: Float[Array, ""]
    actor_optimiser: optax.OptState
    critic_optimiser: optax.OptState
    weight_optimiser: optax.OptState
    replay: Replay
    rejected: Rejected
    preference: Preference
    """Of acting without exploration."""
    preferences: Float[Array, "copies 2"]
    """Of the present episodes, one a copy of the environment."""
    key: UInt32[Array, " k"]
    """What the episodes' preferences are drawn with, as plain numbers."""
    statistics: Statistics | None = None


class ARAM(SoftActorCritic[ARAMState]):
    """Acceptance-rejection with an augmented process and preferences."""

    draws: int = 100
    """Proposals drawn per step; the first accepted one is executed."""
    rejection_penalty: float = 0.2
    """kappa: cost of a rejected proposal."""
    augmented_share: float = 0.2
    """First share of rejected proposals in a batch."""
    augmented_decay: float = 0.99
    """Factor by which that share falls over 10,000 steps."""
    augmented_size: int = 100_000
    """Rejected proposals kept."""
    preference: float = 0.9
    """Weight of the return against rejections when acting without exploration."""
    samples: int = 1
    """Draws of the policy for each state of the actor's loss."""
    snapshots: int = 0
    """Old critics that the actor's loss also uses."""
    snapshot_interval: int = 1_000
    """Updates between two snapshots."""
    preferences: int = 1
    """Preferences that the actor's loss tries, including that of the update."""
    reward_scale: float = 1.0
    """k1: divisor of the rewards."""
    reward_shift: float = 0.0
    """k2: number then added to the rewards."""
    learning_starts: int = 1_024
    """Steps before the first update."""
    interval: int = 1
    """Steps between updates."""
    updates: int = 1
    """Batches per update."""
    batch_size: int = 1_024
    """Transitions in a batch."""
    rate: float = 3e-4
    """Adam's rate of all networks."""
    hidden_layers: tuple[int, ...] = (256, 256)
    """Units of the hidden layers."""

    def dimensions(self, spec: Spec) -> int:
        return spec.action_size

    def init(self, key: PRNGKeyArray, spec: Spec) -> ARAMState:
        if self.augmented_size < self.draws:
            raise ValueError(f"ARAM: augmented_size must be at least draws = {self.draws}, not {self.augmented_size}.")
        if is_zero(self.reward_scale):
            raise ValueError("ARAM: reward_scale must be above 0: rewards are divided by it.")
        keys = jax.random.split(key, 4)
        key, actor_key = keys[0], keys[1]
        o, n, dtype = spec.observation_size, spec.action_size, spec.low.dtype
        actor = SquashedGaussian(o + 2, n, self.hidden_layers, self.hidden, actor_key)
        critics = two(lambda k: VectorCritic(o + n + 2, self.hidden_layers, self.hidden, k), keys[2:])
        networks = self.networks(actor, critics, dtype)
        old = jax.tree.map(lambda leaf: jnp.zeros((self.snapshots, *leaf.shape), dtype), networks.critics)
        weight = jnp.asarray(self.preference, dtype)
        key, first_key = jax.random.split(key)
        return ARAMState(
            **networks._asdict(),
            old_critics=old if self.snapshots else None,
            learned=jnp.zeros((), jnp.int32),
            replay=no_steps(self.replay_size, spec),
            rejected=nothing_rejected(self.augmented_size, spec),
            preference=jnp.stack([weight, 1.0 - weight]),
            preferences=dirichlet(first_key, self.copies, dtype),
            key=jax.random.key_data(key),
            statistics=statistics_for(self.normalised, o, dtype),
        )

    def policy(self, state: ARAMState, *, explore: bool = False) -> ARAMPolicy:
        return ARAMPolicy(state.actor, state.preferences[..., 0, :] if explore else state.preference, state.statistics)

    def acting(self, state: ARAMState, copy: Int[Array, ""]) -> ARAMPolicy:
        return ARAMPolicy(state.actor, state.preferences[copy], state.statistics)

    def act(
        self, policy: ARAMPolicy, spec: Spec, obs: Float[Array, " o"], key: PRNGKeyArray, *, explore: bool
    ) -> Decision:
        x = policy.sees(obs)
        if not explore:
            intended = policy.actor.mode(x, spec.low, spec.high)
            return spec.decide(obs, intended, intended)
        mean, log_std = policy.actor(x)
        noise = jax.random.normal(key, (self.draws, *mean.shape), mean.dtype)
        squashed = 1.0 + jnp.tanh(mean[None] + jnp.exp(log_std)[None] * noise)
        draws = spec.low[None] + 0.5 * (spec.high - spec.low)[None] * squashed
        return first_accepted(spec, obs, draws, policy.actor.mode(x, spec.low, spec.high))

    def warmup_decision(self, policy: ARAMPolicy, spec: Spec, obs: Float[Array, " o"], key: PRNGKeyArray) -> Decision:
        shape = self.draws, *spec.low.shape
        draws = jax.random.uniform(key, shape, spec.low.dtype, spec.low[None], spec.high[None])
        return first_accepted(spec, obs, draws, draws[0])

    def observe(self, state: ARAMState, spec: Spec, transition: Transition) -> ARAMState:
        draws, rejected = transition.decision.extras["draws"], transition.decision.extras["rejected"]
        reward = transition.reward / self.reward_scale + self.reward_shift
        # Copies are observed one after the other.
        copy = state.replay.count % self.copies
        key = jax.random.fold_in(jax.random.wrap_key_data(state.key), state.replay.count)
        ended = transition.terminated | transition.truncated
        fresh = jnp.where(ended, dirichlet(key, 1, reward.dtype)[0], state.preferences[copy])
        taken = draws[jnp.minimum(rejected, self.draws - 1)]
        new = (
            store_step(state.replay, transition, taken, reward, rejected == self.draws),
            store_rejected(state.rejected, transition.obs, draws, rejected),
            state.preferences.at[copy].set(fresh),
            absorbed(state.statistics, transition.obs),
        )
        return eqx.tree_at(_observed, state, new, is_leaf=_is_none)

    def update(self, state: ARAMState, spec: Spec, key: PRNGKeyArray, due: frozenset[str]) -> tuple[ARAMState, Metrics]:
        buffers = state.replay, state.rejected
        steps = state.replay.count.astype(spec.low.dtype)
        share = self.augmented_share * self.augmented_decay ** (steps / DECAY_STEPS)
        # The buffers are read only: they stay out of the loop's carry.
        learners = eqx.tree_at(_buffers, state, (None, None))

        learners, metrics = self.learned(
            learners,
            key,
            lambda key: mixed(*buffers, self.batch_size, share, self.rejection_penalty, key, spec),
            lambda learners, batch, key: self.learn(learners, spec, batch, key),
        )
        return eqx.tree_at(_buffers, learners, buffers, is_leaf=_is_none), metrics

    def learn(self, state: ARAMState, spec: Spec, batch: Mixed, key: PRNGKeyArray) -> tuple[ARAMState, Metrics]:
        """One update from one batch, under one preference."""
        preference_key, actor_key, next_key = jax.random.split(key, 3)
        asked = dirichlet(preference_key, self.preferences, batch.reward.dtype)
        actor_keys, next_keys = (jax.random.split(k, self.batch_size) for k in (actor_key, next_key))
        (actor_loss, entropy), actor_grads = jax.value_and_grad(self.actor_loss, has_aux=True)(
            state.actor, state, spec, batch, asked, actor_keys
        )
        critic_loss, critic_grads = jax.value_and_grad(self.critic_loss)(
            state.critics, state, spec, batch, asked[0], next_keys
        )
        metrics = {
            "actor/loss": actor_loss,
            "actor/entropy": entropy,
            "actor/entropy_weight": jnp.exp(state.log_weight),
            "critic/loss": critic_loss,
            "critic/augmented_share": jnp.mean(batch.rejected.astype(critic_loss.dtype)),
        }
        networks, learned = self.stepped(state, spec, actor_grads, critic_grads, entropy), state.learned + 1
        old = kept(state.old_critics, networks.critics, learned, self.snapshot_interval)
        return replace(state, **networks._asdict(), old_critics=old, learned=learned), metrics

    def actor_loss(
        self,
        actor: SquashedGaussian,
        state: ARAMState,
        spec: Spec,
        batch: Mixed,
        asked: Float[Array, "v 2"],
        keys: PRNGKeyArray,
    ) -> tuple[Array, Array]:
        """Mean of w log pi(a|s, l) - max min_i l . Q_i(s, a, v), l the first preference asked; the policy's entropy."""
        preference = asked[0]
        filled = jnp.arange(self.snapshots, dtype=jnp.int32) < state.learned // self.snapshot_interval

        def worth(x: Array, action: Array) -> Array:
            action = spec.judged(action, self.critic_units)

            def least(critics: VectorCritics) -> Array:
                return jax.vmap(lambda v: jnp.min(jnp.stack([q(x, action, v) @ preference for q in critics])))(asked)

            best = jnp.max(least(state.critics))
            if state.old_critics is None:
                return best
            old = jnp.where(filled, jnp.max(jax.vmap(least)(state.old_critics), axis=1), -jnp.inf)
            return jnp.maximum(best, jnp.max(old))

        def one(obs: Array, key: PRNGKeyArray) -> tuple[Array, Array]:
            x = seen(state.statistics, obs)
            sees = jnp.concatenate([x, preference])
            actions, densities = jax.vmap(lambda k: actor.sample(sees, k, spec.low, spec.high))(
                jax.random.split(key, self.samples)
            )
            return jax.vmap(partial(worth, x))(actions), densities

        values, densities = jax.vmap(one)(batch.obs, keys)
        return jnp.mean(jnp.exp(state.log_weight) * densities - values), -jnp.mean(densities)

    def critic_loss(
        self,
        critics: VectorCritics,
        state: ARAMState,
        spec: Spec,
        batch: Mixed,
        preference: Preference,
        keys: PRNGKeyArray,
    ) -> Array:
        """Sum over both critics of the mean of l . (Q_i - y)^2."""

        def next_value(obs: Array, key: PRNGKeyArray) -> Array:
            x = seen(state.statistics, obs)
            action, density = state.actor.sample(jnp.concatenate([x, preference]), key, spec.low, spec.high)
            judged = spec.judged(action, self.critic_units)
            first, second = (critic(x, judged, preference) for critic in state.target_critics)
            least = jnp.where(first @ preference <= second @ preference, first, second)
            return least - jnp.exp(state.log_weight) * (density + self.log_unit(spec))

        onward = self.discount * batch.continues[:, None] * jax.vmap(next_value)(batch.next_obs, keys)
        target = batch.reward + onward
        x = jax.vmap(partial(seen, state.statistics))(batch.obs)
        actions = jax.vmap(lambda action: spec.judged(action, self.critic_units))(batch.action)
        errors = [jax.vmap(critic, in_axes=(0, 0, None))(x, actions, preference) - target for critic in critics]
        return sum((jnp.mean(jnp.square(error) @ preference) for error in errors), jnp.zeros((), target.dtype))


def first_accepted(
    spec: Spec, obs: Float[Array, " o"], draws: Float[Array, "k n"], intended: Float[Array, " n"]
) -> Decision:
    """The decision that executes the first draw that the feasible set accepts, or else the last; either as it answers.

    `rejected` is the number of draws before the accepted one, or of all.
    """
    feasible_set = spec.feasible_set(obs)
    accepted = jax.vmap(feasible_set.accepts)(draws)
    count = draws.shape[0]
    rejected = jnp.where(jnp.any(accepted), jnp.argmax(accepted), count).astype(jnp.int32)
    taken = draws[jnp.minimum(rejected, count - 1)]
    return Decision(draws[0], feasible_set.execute(taken), intended, {"draws": draws, "rejected": rejected})


def _is_none(leaf: object) -> bool:
    return leaf is None


def _buffers(state: ARAMState) -> tuple[Replay, Rejected]:
    return state.replay, state.rejected


def _observed(state: ARAMState) -> tuple[object, ...]:
    return state.replay, state.rejected, state.preferences, state.statistics
