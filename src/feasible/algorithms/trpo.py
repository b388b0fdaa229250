"""TRPO+Projection and TRPO-CAPG: trust-region policy optimisation (Schulman et al., 2015) under action constraints.

    after every `horizon` steps
        g = gradient of the mean of r A at the policy that acted
        d = (F + damping I)^-1 g by conjugate gradient, F the Fisher matrix, known by its products
        step along d so long that half d'(F + damping I)d is `divergence`; halve it until the mean KL divergence is
        within that bound and the mean of r A has grown, or leave the policy as it is
        critic: `epochs` passes over the rollout in minibatches, an Adam step on the squared error for each

Sampling, execution through the set, normalisation and advantages: `feasible.algorithms.on_policy`.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import optax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from feasible.algorithms.adam import adam_state
from feasible.algorithms.base import Metrics, Spec
from feasible.algorithms.conjugate_gradient import conjugate_gradient
from feasible.algorithms.gaussian import GaussianPolicy, Normal
from feasible.algorithms.on_policy import Batch, Critics, OnPolicy, OnPolicyState, critic_loss

Vector = Float[Array, " p"]


class TRPO(OnPolicy):
    """Trust-region policy optimisation."""

    divergence: float = 0.01
    """Bound on the mean KL divergence of an update."""
    damping: float = 0.1
    """Number added to the diagonal of the Fisher matrix."""
    products: int = 20
    """Iterations of conjugate gradient; each takes one product with the Fisher matrix."""
    halvings: int = 10
    """Halvings of the step before the update gives up."""
    horizon: int = 5_000
    epochs: int = 5
    """Passes of the critic over the rollout per update."""
    rate: float = 1e-3
    """Adam's rate of the critic; the divergence sets the length of the policy's step."""

    def optimiser(self, actor: GaussianPolicy, critics: Critics) -> optax.OptState:
        del actor
        return adam_state(self.rate, critics)

    def update(
        self, state: OnPolicyState, spec: Spec, key: PRNGKeyArray, due: frozenset[str]
    ) -> tuple[OnPolicyState, Metrics]:
        batch, keys = self.batch(state, spec), jax.random.split(key, self.epochs)
        actor, metrics = self.improve(state.actor, batch)
        critics, optimiser, errors = self.learn(state.critics, state.optimiser, batch, keys, _regression)
        new = OnPolicyState(actor, critics, state.multipliers, optimiser, state.statistics, state.rollout)
        return new, metrics | errors

    def improve(self, actor: GaussianPolicy, batch: Batch) -> tuple[GaussianPolicy, Metrics]:
        """The policy after one step in the trust region."""
        start, rebuilt = ravel_pytree(actor)

        def judged(vector: Vector) -> tuple[Array, Array]:
            """The surrogate, and the divergence from the policy that acted."""
            normal = jax.vmap(rebuilt(vector))(batch.x)
            surrogate = jnp.mean(self.ratio(normal, batch) * batch.advantages[:, 0])
            return surrogate, jnp.mean(batch.before.divergence(normal))

        before, gradient = jax.value_and_grad(lambda vector: judged(vector)[0])(start)
        product = fisher_product(lambda vector: jax.vmap(rebuilt(vector))(batch.x), start)

        def damped(vector: Vector) -> Vector:
            return product(vector) + self.damping * vector

        direction = conjugate_gradient(damped, gradient, self.products)
        curvature = direction @ damped(direction)
        length = jnp.sqrt(2.0 * self.divergence / jnp.where(curvature > 0, curvature, 1.0))

        def accepted(share: Array) -> Bool[Array, ""]:
            surrogate, divergence = judged(start + share * length * direction)
            return (divergence <= self.divergence) & (surrogate > before)

        def halve(now: tuple[Int[Array, ""], Array, Array]) -> tuple[Array, Array, Array]:
            tried, share, _ = now
            return tried + 1, 0.5 * share, accepted(0.5 * share)

        one = jnp.ones((), start.dtype)
        tried, share, found = jax.lax.while_loop(
            lambda now: ~now[2] & (now[0] < self.halvings), halve, (jnp.zeros((), jnp.int32), one, accepted(one))
        )
        stepped = jnp.where(found, start + share * length * direction, start)
        surrogate, divergence = judged(stepped)
        new = rebuilt(stepped)
        metrics = {
            "actor/loss": -surrogate,
            "actor/divergence": divergence,
            "actor/halvings": tried.astype(start.dtype),
            "actor/entropy": Normal(new.log_std, new.log_std).entropy(),
        }
        return new, metrics


def fisher_product(distributions: Callable[[Vector], Normal], at: Vector) -> Callable[[Vector], Vector]:
    """v -> F v, F the mean over a batch of the Fisher matrices of normal distributions with parameters `at`.

    F = J' diag(1/std^2, 2) J / b with J the Jacobian of means and log deviations: one forward and one reverse
    derivative a product. It is the Hessian of the mean KL divergence from the distributions at `at`.
    """
    normal, forward = jax.linearize(distributions, at)
    backward = jax.linear_transpose(forward, at)
    count = normal.mean.shape[0]

    def product(vector: Vector) -> Vector:
        moved = forward(vector)
        weighted = Normal(moved.mean * jnp.exp(-2.0 * normal.log_std) / count, 2.0 * moved.log_std / count)
        return backward(weighted)[0]

    return product


def _regression(critics: Critics, batch: Batch) -> tuple[Array, Metrics]:
    errors = critic_loss(critics, batch)
    return errors, {"critic/loss": errors}
