"""Learning from rollouts of the present policy, whatever its kind: sizes, advantages and passes in minibatches."""

from collections.abc import Callable, Mapping
from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from feasible.algorithms.adam import adam_step
from feasible.algorithms.advantages import advantages, standardised
from feasible.algorithms.base import Algorithm, Metrics, State
from feasible.algorithms.nets import Hidden, Perceptron
from feasible.algorithms.rollout import Rollout, Step, broken_off
from feasible.algorithms.statistics import Statistics

Critics = tuple[Perceptron, ...]
Learned = TypeVar("Learned")
Rows = TypeVar("Rows")


class FromRollouts(Algorithm[State]):
    """What all that learn from rollouts have in common."""

    horizon: int = 2_048
    """Steps between updates, counted over all copies."""
    copies: int = 1
    """Copies of the environment that step together."""
    minibatch: int = 64
    """Steps in a minibatch."""
    epochs: int = 10
    """Passes over the rollout per update. Random steps that do not fill a minibatch are left out."""
    discount: float = 0.995
    """gamma: what a reward one step later is worth."""
    trace: float = 0.97
    """lambda of the generalised advantage estimates."""
    rate: float = 3e-4
    """Adam's rate of policy and critics."""
    hidden_layers: tuple[int, ...] = (64, 64)
    """Units of the hidden layers."""
    hidden: Hidden = "tanh"
    """Activation of the hidden layers."""
    reward_scale: float = 1.0
    """Divide rewards by this, so that the critic learns values of about one; advantages are standardised anyway."""
    normalised: bool = True
    """Normalise what the networks see by the running mean and deviation."""
    warmup: int = 0
    """Must be 0, because rollouts come from the policy from the first step on."""

    @property
    def intervals(self) -> Mapping[str, int]:
        return {"rollout": self.horizon}

    @property
    def environments(self) -> int:
        return self.copies

    def check_sizes(self) -> None:
        """Refuse settings that do not go together."""
        name = type(self).__name__
        if self.horizon % self.copies:
            raise ValueError(f"{name}: horizon must be a multiple of copies = {self.copies}, not {self.horizon}.")
        if self.warmup:
            raise ValueError(f"{name}: warmup must be 0, not {self.warmup}: rollouts are of the policy from the start.")
        if isinstance(self.reward_scale, float | int) and not self.reward_scale > 0:
            raise ValueError(
                f"{name}: reward_scale must be above 0, not {self.reward_scale}: rewards are divided by it."
            )
        if self.minibatch > self.horizon:
            raise ValueError(f"{name}: minibatch must be at most horizon = {self.horizon}, not {self.minibatch}.")

    def broken_off(self, state: State) -> State:
        rollout: Rollout = state.rollout  # pyright: ignore[reportAttributeAccessIssue] -- every state of these has one
        return eqx.tree_at(lambda s: s.rollout, state, broken_off(rollout, self.copies))

    def seen(self, statistics: Statistics, obs: Float[Array, " o"]) -> Float[Array, " o"]:
        """The observation as the networks see it."""
        return statistics.normalise(obs) if self.normalised else obs

    def absorbed(self, statistics: Statistics, obs: Float[Array, " o"]) -> Statistics:
        """The statistics with one observation more, where the networks see by them."""
        return statistics.absorb(obs) if self.normalised else statistics

    def estimated(self, taken: Step, critics: Critics) -> tuple[Step, Float[Array, "b g"], Float[Array, "b g"]]:
        """The steps of a rollout in one row, with their standardised advantages and the critics' targets."""
        value, next_value = (values(critics, x) for x in (taken.x, taken.next_x))
        ends = taken.terminated[..., None], taken.ended[..., None]
        gains = taken.gains.at[..., 0].divide(self.reward_scale)  # costs keep their units
        estimates = advantages(gains, value, next_value, *ends, discount=self.discount, trace=self.trace)
        taken, estimates, value = jax.tree.map(
            lambda leaf: leaf.reshape(self.horizon, *leaf.shape[2:]), (taken, estimates, value)
        )
        return taken, jax.vmap(standardised, in_axes=1, out_axes=1)(estimates), estimates + value

    def learn(
        self,
        learned: Learned,
        optimiser: optax.OptState,
        batch: Rows,
        keys: PRNGKeyArray,
        loss: Callable[[Learned, Rows], tuple[Array, Metrics]],
    ) -> tuple[Learned, optax.OptState, Metrics]:
        """A pass over the batch for each key, in minibatches, an Adam step for each; means over the last pass."""
        count = self.horizon // self.minibatch
        orders = jax.vmap(lambda key: jax.random.permutation(key, self.horizon))(keys)
        places = orders[:, : count * self.minibatch].reshape(-1, self.minibatch)

        def once(now: tuple[Learned, optax.OptState], rows: Array) -> tuple[tuple[Learned, optax.OptState], Metrics]:
            part = jax.tree.map(lambda leaf: leaf[rows], batch)
            gradients, metrics = jax.grad(loss, has_aux=True)(now[0], part)
            return adam_step(self.rate, gradients, now[1], now[0]), metrics

        (learned, optimiser), metrics = jax.lax.scan(once, (learned, optimiser), places)
        return learned, optimiser, jax.tree.map(lambda each: jnp.mean(each[-count:]), metrics)


def values(critics: Critics, x: Float[Array, "t c o"]) -> Float[Array, "t c g"]:
    """What each critic says of each observation."""
    return jnp.concatenate([jax.vmap(jax.vmap(critic))(x) for critic in critics], axis=-1)
