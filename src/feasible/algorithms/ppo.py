"""PPO+Projection and PPO-CAPG: proximal policy optimisation (Schulman et al., 2017) under action constraints.

    after every `horizon` steps, `epochs` passes over them in minibatches, an Adam step on
        - mean min(r A, clip(r, 1 - e, 1 + e) A) - w mean entropy + mean (V(x) - target)^2
    with r the ratio of the present density of a sample to that of the policy that acted, A its standardised advantage.

Sampling, execution through the set, normalisation and advantages: `feasible.algorithms.on_policy`. Against ChainerRL,
which the paper used: observations are normalised by the statistics up to the step (it absorbs a whole rollout at its
end), so that ratios are one before the first step of learning.
"""

from typing import ClassVar

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, PRNGKeyArray

from feasible.algorithms.adam import adam_state
from feasible.algorithms.base import Metrics, Spec
from feasible.algorithms.gaussian import GaussianPolicy
from feasible.algorithms.on_policy import Batch, Critics, OnPolicy, OnPolicyState, critic_loss

Networks = tuple[GaussianPolicy, Critics]


class PPO(OnPolicy):
    """Proximal policy optimisation with a clipped surrogate."""

    clip: float = 0.2
    """Clip ratios that differ from one by more than this."""
    entropy_weight: float = 0.0
    """Weight of the entropy in the loss."""

    restricts: ClassVar[bool] = True

    def optimiser(self, actor: GaussianPolicy, critics: Critics) -> optax.OptState:
        return adam_state(self.rate, (actor, critics))

    def update(
        self, state: OnPolicyState, spec: Spec, key: PRNGKeyArray, due: frozenset[str]
    ) -> tuple[OnPolicyState, Metrics]:
        batch, keys = self.batch(state, spec), jax.random.split(key, self.epochs)
        networks = state.actor, state.critics
        # Of the last pass, the metrics tell how far the policy has come from the one that acted.
        (actor, critics), optimiser, metrics = self.learn(networks, state.optimiser, batch, keys, self.loss)
        return OnPolicyState(actor, critics, state.multipliers, optimiser, state.statistics, state.rollout), metrics

    def loss(self, networks: Networks, batch: Batch) -> tuple[Array, Metrics]:
        actor, critics = networks
        normal = jax.vmap(actor)(batch.x)
        ratio, advantage = self.ratio(normal, batch), batch.advantages[:, 0]
        near = jnp.clip(ratio, 1.0 - self.clip, 1.0 + self.clip)
        surrogate = jnp.mean(jnp.minimum(ratio * advantage, near * advantage))
        entropy = jnp.mean(self.entropies(normal, batch.frame))
        errors = critic_loss(critics, batch)
        metrics = {
            "actor/loss": -surrogate,
            "actor/entropy": entropy,
            "actor/divergence": jnp.mean(batch.before.divergence(normal)),
            "actor/clipped_share": jnp.mean((jnp.abs(ratio - 1.0) > self.clip).astype(ratio.dtype)),
            "critic/loss": errors,
        }
        return errors - surrogate - self.entropy_weight * entropy, metrics
