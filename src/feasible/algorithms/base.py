"""What an algorithm is: four pure functions over a state pytree, `init`, `act`, `observe` and `update`.

The same functions are jitted for one agent and driven by real environments. Drivers know nothing about algorithms
beyond this file; algorithms know nothing about environments beyond `Spec`.
"""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Generic, TypeVar, final

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray, PyTree

from feasible.constraints import Constraint
from feasible.sets.base import ActionSet

State = TypeVar("State")
Extras = Mapping[str, PyTree[Array]]
Metrics = dict[str, Float[Array, ""]]


class Spec(eqx.Module):
    """All that an algorithm knows of a task."""

    observation_size: int = eqx.field(static=True)
    low: Float[Array, " n"]
    high: Float[Array, " n"]
    constraint: Constraint = eqx.field(static=True)
    episode_length: int | None = eqx.field(static=True, default=None)

    @property
    def action_size(self) -> int:
        return self.low.shape[-1]

    def feasible_set(self, obs: Float[Array, " o"]) -> ActionSet:
        """C(s): the constraint at the raw observation, in the precision of learning."""

        def cast(leaf: Array) -> Array:
            return leaf.astype(obs.dtype) if jnp.issubdtype(leaf.dtype, jnp.floating) else leaf

        return jax.tree.map(cast, self.constraint(obs))

    def clip(self, action: Float[Array, " n"]) -> Float[Array, " n"]:
        """The nearest point of the action box."""
        return jnp.clip(action, self.low, self.high)


class Decision(eqx.Module):
    """What becomes of one observation: the proposal, and the action that the environment gets for it."""

    proposed: Float[Array, " n"]
    executed: Float[Array, " n"]
    intended: Float[Array, " n"]
    """The proposal without exploration noise."""
    extras: Extras = eqx.field(default_factory=dict)


class Transition(eqx.Module):
    """One step of an environment. `next_obs` is the state the step led to, also where the episode ended there.

    Only `terminated` ends the return: at a time limit (`truncated`) the critic's target goes on from `next_obs`.
    """

    obs: Float[Array, " o"]
    decision: Decision
    reward: Float[Array, ""]
    next_obs: Float[Array, " o"]
    terminated: Bool[Array, ""]
    truncated: Bool[Array, ""]


class Algorithm(eqx.Module, Generic[State]):
    """Fields are hyper-parameters.

    `warmup` and `intervals` are static and read by the driver, so that no program holds a branch for the steps at
    which nothing is updated. `intervals` maps the name of each part of an update to the number of steps between two
    of them; the driver passes those that are due to `update`.
    """

    warmup: eqx.AbstractVar[int]
    """Steps with proposals of `warmup_proposal`."""

    @property
    def updates_after(self) -> int:
        """Steps before the first update: those of the warm-up."""
        return self.warmup

    @property
    def environments(self) -> int:
        """Copies of the environment that one agent steps at once."""
        return 1

    @property
    @abstractmethod
    def intervals(self) -> Mapping[str, int]: ...

    @abstractmethod
    def init(self, key: PRNGKeyArray, spec: Spec) -> State: ...

    def warmup_proposal(self, spec: Spec, obs: Float[Array, " o"], key: PRNGKeyArray) -> Float[Array, " n"]:
        """The proposal of a step of the warm-up: a sample of the feasible set."""
        return spec.feasible_set(obs).sample(key)

    @final
    def act(self, state: State, spec: Spec, obs: Float[Array, " o"], key: PRNGKeyArray, *, explore: bool) -> Decision:
        policy = self.explorer(state) if explore else self.policy(state)
        return self.decide(policy, spec, obs, key, explore=explore)

    @abstractmethod
    def decide(
        self, policy: PyTree[Array], spec: Spec, obs: Float[Array, " o"], key: PRNGKeyArray, *, explore: bool
    ) -> Decision:
        """The decision of a policy, which is all that acting needs of a state."""

    @abstractmethod
    def observe(self, state: State, spec: Spec, transition: Transition) -> State: ...

    @abstractmethod
    def update(self, state: State, spec: Spec, key: PRNGKeyArray, due: frozenset[str]) -> tuple[State, Metrics]: ...

    @abstractmethod
    def policy(self, state: State) -> PyTree[Array]:
        """What acting needs of the state: the contents of a policy file."""

    def explorer(self, state: State) -> PyTree[Array]:
        """The policy that explores while training: the same, unless what is learned is not what is used."""
        return self.policy(state)


def through(feasible_set: ActionSet, proposed: Float[Array, " n"], intended: Float[Array, " n"]) -> Decision:
    """The decision whose executed action is the set's answer to the proposal."""
    return Decision(proposed, feasible_set.execute(proposed), intended)
