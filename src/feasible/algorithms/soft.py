"""What soft actor-critics have in common: their settings, their networks and the steps of Adam on them.

actor, critics: Adam on their losses
weight:         with `entropy_target`, Adam on -log w (log pi(a|s) + target)
targets:        Q'_i move towards Q_i by the ratio tau; the entropy in them is in units of the action box
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Generic, Literal, NamedTuple, Protocol, TypeVar

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from feasible.algorithms.adam import adam_state, adam_step, after
from feasible.algorithms.base import Algorithm, CriticUnits, Metrics, Spec, State, is_zero
from feasible.algorithms.gaussian import SquashedGaussian
from feasible.algorithms.nets import Hidden, blend
from feasible.algorithms.statistics import Normalised

Critics = TypeVar("Critics")
Rows = TypeVar("Rows")


class Networks(NamedTuple, Generic[Critics]):
    """All that Adam moves, with its states, and the critics' targets."""

    actor: SquashedGaussian
    critics: Critics
    target_critics: Critics
    log_weight: Float[Array, ""]
    actor_optimiser: optax.OptState
    critic_optimiser: optax.OptState
    weight_optimiser: optax.OptState


class HasNetworks(Protocol[Critics]):
    """A state with a field for each of the `Networks`."""

    actor: SquashedGaussian
    critics: Critics
    target_critics: Critics
    log_weight: Float[Array, ""]
    actor_optimiser: optax.OptState
    critic_optimiser: optax.OptState
    weight_optimiser: optax.OptState


class SoftActorCritic(Algorithm[State]):
    """A squashed Gaussian policy and two critics, with a weight of the policy's entropy."""

    entropy_weight: float = 0.2
    """Fixed weight of the entropy, or its first value if `entropy_target` is given."""
    entropy_target: float | Literal["auto"] | None = None
    """Entropy that the weight is tuned to; `auto`: minus the policy's dimensions in a box of -1 to 1. None: fixed."""
    warmup: int = 10_000
    """First steps, before the policy acts."""
    learning_starts: int = 1_000
    """Steps before the first update."""
    interval: int = 50
    """Steps between updates."""
    updates: int = 50
    """Batches per update."""
    batch_size: int = 100
    """Transitions in a batch."""
    replay_size: int = 1_000_000
    """Transitions kept."""
    discount: float = 0.99
    """gamma: what a reward one step later is worth."""
    rate: float = 5e-4
    """Adam's rate of all networks."""
    target_ratio: float = 5e-3
    """tau: share of the online critics that enters their targets at each update."""
    hidden_layers: tuple[int, ...] = (400, 300)
    """Units of the hidden layers."""
    hidden: Hidden = "relu"
    """Activation of the hidden layers."""
    normalised: Normalised = False
    """Normalise what the networks see by the running mean and deviation; `shrunk`: by deviations above one only."""
    copies: int = 1
    """Copies of the environment that step together."""
    critic_units: CriticUnits = "action"
    """Units in which critics see actions: as they are, or from -1 to 1 over the action box."""

    @property
    def intervals(self) -> Mapping[str, int]:
        return {"networks": self.interval}

    @property
    def environments(self) -> int:
        return self.copies

    @property
    def updates_after(self) -> int:
        return self.learning_starts

    @abstractmethod
    def dimensions(self, spec: Spec) -> int:
        """Dimensions of the policy's density."""

    def wanted_entropy(self, spec: Spec, target: float | Literal["auto"]) -> float | Float[Array, ""]:
        """The target in the units of log-densities, those of the actions.

        `auto` is -1 for each of the policy's dimensions in units of the box.
        """
        return target if target != "auto" else self.log_unit(spec) - self.dimensions(spec)

    def log_unit(self, spec: Spec) -> Float[Array, ""]:
        """How much lower log-densities are in the units of the actions than in those of the box, as in one of -1 to 1.

        It is d mean_i log w_i for d dimensions and half the action box's widths w_i; for a density on a plane the
        geometric mean stands for the widths along it. Coordinates without room have no unit. With it, what the critics
        learn of the entropy, w (-log pi(a|s)) in every step, does not depend on the units of the actions.
        """
        return self.dimensions(spec) * jnp.mean(jnp.log(spec.half))

    def networks(self, actor: SquashedGaussian, critics: Critics, dtype: jnp.dtype) -> Networks[Critics]:
        """The first networks, in that type."""
        if self.entropy_target is not None and is_zero(self.entropy_weight):
            name = type(self).__name__
            raise ValueError(f"{name}: entropy_weight must be above 0, not 0: entropy_target tunes its logarithm.")
        actor, critics = jax.tree.map(lambda leaf: leaf.astype(dtype), (actor, critics))
        log_weight = jnp.log(jnp.asarray(self.entropy_weight, dtype))
        optimisers = (adam_state(self.rate, part) for part in (actor, critics, log_weight))
        return Networks(actor, critics, jax.tree.map(jnp.copy, critics), log_weight, *optimisers)

    def learned(
        self,
        learners: State,
        key: PRNGKeyArray,
        batch: Callable[[PRNGKeyArray], Rows],
        learn: Callable[[State, Rows, PRNGKeyArray], tuple[State, Metrics]],
    ) -> tuple[State, Metrics]:
        """After `updates` updates, each from a batch of its own, with the mean of their metrics."""

        def once(learners: State, key: PRNGKeyArray) -> tuple[State, Metrics]:
            batch_key, key = jax.random.split(key)
            return learn(learners, batch(batch_key), key)

        keys = jax.random.split(key, self.updates)
        if self.updates == 1:  # a loop would hide from the driver what is drawn in it, and copy what it carries
            return once(learners, keys[0])
        learners, metrics = jax.lax.scan(once, learners, keys)
        return learners, jax.tree.map(jnp.mean, metrics)

    def stepped(
        self,
        state: HasNetworks[Critics],
        spec: Spec,
        actor_grads: SquashedGaussian,
        critic_grads: Critics,
        entropy: Float[Array, ""],
    ) -> Networks[Critics]:
        """After one step of Adam on each network, all by gradients from before it; the targets follow."""
        actor_rate, critic_rate = after((actor_grads, critic_grads), self.rate, self.rate)
        actor, actor_optimiser = adam_step(actor_rate, actor_grads, state.actor_optimiser, state.actor)
        critics, critic_optimiser = adam_step(critic_rate, critic_grads, state.critic_optimiser, state.critics)
        log_weight, weight_optimiser = state.log_weight, state.weight_optimiser
        if self.entropy_target is not None:
            gradient = entropy - self.wanted_entropy(spec, self.entropy_target)
            log_weight, weight_optimiser = adam_step(self.rate, gradient, weight_optimiser, log_weight)
        targets = blend(state.target_critics, critics, self.target_ratio)
        return Networks(actor, critics, targets, log_weight, actor_optimiser, critic_optimiser, weight_optimiser)
