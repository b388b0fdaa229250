"""FOCOPS+Projection: first-order constrained optimisation in policy space (Zhang, Vuong and Ross, 2020).

The action constraint is relaxed to a discounted cost as well: the cost of a step is the worst residual of the
proposal, max_i f_i(proposed) over the rows f_i(a) <= 0 of the set but the bounds of single entries, and the limit is
the constraint's own bound, 0. Actions are executed through the set all the same.

    after every `horizon` steps
        nu <- clip(nu + `multiplier_rate` J_C, 0, `multiplier_limit`), J_C the discounted cost of an episode
        up to `epochs` passes in minibatches, while the mean KL divergence from the policy that acted is at most
        `divergence`: an Adam step on
            mean 1[KL <= `reach`] (KL(pi || pi_before) - r (A - nu A_C) / temperature)
            + sum over both critics of mean (V(x) - target)^2 + `decay` ||parameters of V||^2

Against the authors' code: both advantages are standardised once, the learning rate does not fall with time, and no
gradient is cut at norm 40. Against the paper's: its limit on Reacher belongs to another constraint.
"""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from feasible.algorithms.adam import adam_state
from feasible.algorithms.base import Metrics, Spec
from feasible.algorithms.gaussian import GaussianPolicy
from feasible.algorithms.on_policy import Batch, Critics, OnPolicy, OnPolicyState, critic_loss

Networks = tuple[GaussianPolicy, Critics]
Progress = tuple[Int[Array, ""], Networks, optax.OptState, Metrics]


class FOCOPS(OnPolicy):
    """First-order constrained policy optimisation, the constraint a cost of the proposal."""

    costs: ClassVar[int] = 1

    temperature: float = 1.5
    """lambda of its paper: larger values keep the policy nearer to the one that acted."""
    divergence: float = 0.02
    """delta: passes end once the mean KL divergence is larger."""
    reach: float = 0.02
    """eta: observations where the policy has moved further than this do not count."""
    multiplier_rate: float = 1e-3
    """Rate of the cost's multiplier nu."""
    multiplier_limit: float = 2.0
    """Largest nu."""
    decay: float = 1e-3
    """Weight of the critics' squared parameters."""
    horizon: int = 1_024
    discount: float = 0.99
    trace: float = 0.95
    log_std: float = -0.5
    bounded: bool = True

    def optimiser(self, actor: GaussianPolicy, critics: Critics) -> optax.OptState:
        return adam_state(self.rate, (actor, critics))

    def update(
        self, state: OnPolicyState, spec: Spec, key: PRNGKeyArray, due: frozenset[str]
    ) -> tuple[OnPolicyState, Metrics]:
        cost = self.mean_cost(state, spec) * self.episode(spec)
        multipliers = jnp.clip(state.multipliers + self.multiplier_rate * cost, 0.0, self.multiplier_limit)
        batch = self.batch(state, spec)
        weighed = batch.advantages @ jnp.concatenate([jnp.ones(1, cost.dtype), -multipliers])
        batch = eqx.tree_at(lambda b: b.advantages, batch, weighed[:, None])

        def epoch(now: Progress) -> Progress:
            count, networks, optimiser, _ = now
            keys = jax.random.fold_in(key, count)[None]
            networks, optimiser, metrics = self.learn(networks, optimiser, batch, keys, self.loss)
            return count + 1, networks, optimiser, metrics | {"actor/divergence": moved(networks[0], batch)}

        def goes_on(now: Progress) -> Array:
            return (now[0] < self.epochs) & (now[3]["actor/divergence"] <= self.divergence)

        first = epoch((jnp.zeros((), jnp.int32), (state.actor, state.critics), state.optimiser, {}))
        count, (actor, critics), optimiser, metrics = jax.lax.while_loop(goes_on, epoch, first)
        new = OnPolicyState(actor, critics, multipliers, optimiser, state.statistics, state.rollout)
        return new, metrics | {
            "actor/cost": cost[0],
            "actor/multiplier": multipliers[0],
            "actor/passes": count.astype(cost.dtype),
        }

    def mean_cost(self, state: OnPolicyState, spec: Spec) -> Float[Array, " costs"]:
        """Of a step of the rollout."""
        gains = self.taken(state, spec).gains
        return jnp.mean(gains[..., 1:], axis=(0, 1))

    def episode(self, spec: Spec) -> float:
        """Discounted length of an episode: what a cost of 1 a step adds up to."""
        if self.discount == 1.0:
            if spec.episode_length is None:
                raise ValueError(
                    "FOCOPS: discount must be below 1 where episodes have no limit of steps: costs have none then."
                )
            return float(spec.episode_length)
        if spec.episode_length is None:
            return 1.0 / (1.0 - self.discount)
        return (1.0 - self.discount**spec.episode_length) / (1.0 - self.discount)

    def loss(self, networks: Networks, batch: Batch) -> tuple[Array, Metrics]:
        actor, critics = networks
        normal = jax.vmap(actor)(batch.x)
        divergence = normal.divergence(batch.before)
        near = jax.lax.stop_gradient(divergence) <= self.reach
        each = divergence - self.ratio(normal, batch) * batch.advantages[:, 0] / self.temperature
        surrogate = jnp.mean(jnp.where(near, each, 0.0))
        squares = sum((jnp.sum(jnp.square(leaf)) for leaf in jax.tree.leaves(critics)), jnp.zeros((), each.dtype))
        errors = critic_loss(critics, batch)
        metrics = {"actor/loss": surrogate, "actor/entropy": jnp.mean(normal.entropy()), "critic/loss": errors}
        return surrogate + errors + self.decay * squares, metrics


def moved(actor: GaussianPolicy, batch: Batch) -> Float[Array, ""]:
    """Mean KL(pi || pi_before)."""
    return jnp.mean(jax.vmap(actor)(batch.x).divergence(batch.before))
