"""What an algorithm is: five pure functions over a state pytree, `init`, `policy`, `act`, `observe` and `update`.

The same functions are jitted for one agent, vmapped over many and driven by real environments. Drivers know nothing
about algorithms beyond this file; algorithms know nothing about environments beyond `Spec`. A hyper-parameter is a
number, or an array of one number where several agents are one program.
"""

from abc import abstractmethod
from collections.abc import Mapping
from typing import ClassVar, Generic, Literal, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree

from feasible.constraints import Constraint
from feasible.constraints.observations import Layout
from feasible.sets.base import ActionSet

State = TypeVar("State")
Extras = Mapping[str, PyTree[Array]]
Metrics = dict[str, Float[Array, ""]]


def in_precision(region: ActionSet, dtype: np.dtype) -> ActionSet:
    """The set with its floating numbers in that dtype."""

    def cast(leaf: Array) -> Array:
        return leaf.astype(dtype) if jnp.issubdtype(leaf.dtype, jnp.floating) else leaf

    return jax.tree.map(cast, region)


CriticUnits = Literal["action", "box"]
"""Units in which critics see actions: as they are, or from -1 to 1 over the action box."""


class Spec(eqx.Module):
    """All that an algorithm knows of a task."""

    observation_size: int = eqx.field(static=True)
    low: Float[Array, " n"]
    high: Float[Array, " n"]
    constraint: Constraint = eqx.field(static=True)
    episode_length: int | None = eqx.field(static=True, default=None)
    layout: Layout | None = eqx.field(static=True, default=None)
    """Where the parts of an observation with a structure are in the vectors that algorithms see."""
    reference: Float[Array, " n"] | None = None
    """A known feasible action that outputs are relative to, at one observation; if None, they span the action box."""

    @property
    def action_size(self) -> int:
        return self.low.shape[-1]

    def feasible_set(self, obs: Float[Array, " o"]) -> ActionSet:
        """C(s): the constraint at the raw observation, in the precision of learning."""
        return in_precision(self.constraint(obs), obs.dtype)

    @property
    def region(self) -> ActionSet:
        """A feasible set without values: its kind and sizes, which are the same in every state."""
        return jax.eval_shape(self.feasible_set, jax.ShapeDtypeStruct((self.observation_size,), self.low.dtype))

    def clip(self, action: Float[Array, " n"]) -> Float[Array, " n"]:
        """The nearest point of the action box."""
        return jnp.clip(action, self.low, self.high)

    @property
    def half(self) -> Float[Array, " n"]:
        """Half the action box, and 1 where it has no width."""
        half = 0.5 * (self.high - self.low)
        return jnp.where(half > 0, half, 1.0)

    def judged(self, action: Float[Array, " n"], units: CriticUnits) -> Float[Array, " n"]:
        """The action as critics with these units see it."""
        return action if units == "action" else (action - 0.5 * (self.low + self.high)) / self.half

    def decide(self, obs: Float[Array, " o"], proposed: Float[Array, " n"], intended: Float[Array, " n"]) -> "Decision":
        """The decision whose executed action is the feasible set's answer to the proposal."""
        return Decision(proposed, self.feasible_set(obs).execute(proposed), intended)


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
    """Fields are hyper-parameters, with the method's own defaults.

    A field that is added has a default that changes nothing: folders written before do not name it.

    `warmup`, `updates_after`, `environments` and `intervals` are static and read by the driver, so that no program
    holds a branch for the steps at which nothing is updated.
    """

    switches: ClassVar[frozenset[str]] = frozenset()
    """Fields, true or false, in which agents that are one program may differ: it reads them as arrays."""

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
    def intervals(self) -> Mapping[str, int]:
        """Steps between two updates of each part, by name; the driver passes the parts that are due to `update`.

        Steps are counted over all copies: after a round of n steps, one of each copy, a part runs as often as its
        interval has multiples among the n step numbers.
        """
        return {}

    def warmup_proposal(self, spec: Spec, obs: Float[Array, " o"], key: PRNGKeyArray) -> Float[Array, " n"]:
        """The proposal of a step of the warm-up: a sample of the feasible set."""
        return spec.feasible_set(obs).sample(key)

    def warmup_decision(
        self, policy: PyTree[Array], spec: Spec, obs: Float[Array, " o"], key: PRNGKeyArray
    ) -> "Decision":
        """The decision of a step of the warm-up: of its proposal, with zeros for extras.

        Where the method could not act, it is a NaN, which is refused at once: later its state would spoil a batch.
        """
        proposed, able = self.warmup_proposal(spec, obs, key), self.able(spec, obs)
        if able is not None:
            proposed = jnp.where(able, proposed, jnp.nan)
        like = jax.eval_shape(lambda: self.act(policy, spec, obs, key, explore=True).extras)
        extras = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), like)
        return eqx.tree_at(lambda d: d.extras, spec.decide(obs, proposed, proposed), extras)

    def acting(self, state: State, copy: Int[Array, ""]) -> PyTree[Array]:
        """What acts in training in one of the copies of the environment: the same in all, unless it says otherwise."""
        return self.policy(state, explore=True)

    def check(self, spec: Spec) -> None:
        """Refuse settings that do not fit the task, before a run of it is begun."""
        return

    def able(self, spec: Spec, obs: Float[Array, " o"]) -> Bool[Array, ""] | None:
        """Whether the method can act at an observation; None if it can at all, as far as it knows."""
        return None

    def trouble(self, spec: Spec, obs: Float[Array, " o"]) -> str | None:
        """Why the method cannot act at an observation, and what can; None where it can, as far as it knows."""
        return None

    @abstractmethod
    def init(self, key: PRNGKeyArray, spec: Spec) -> State:
        """The state of a new agent on the task."""

    @abstractmethod
    def policy(self, state: State, *, explore: bool = False) -> PyTree[Array]:
        """All that acting needs of a state: the contents of a policy file, or with `explore` what acts in training."""

    @abstractmethod
    def act(
        self, policy: PyTree[Array], spec: Spec, obs: Float[Array, " o"], key: PRNGKeyArray, *, explore: bool
    ) -> Decision:
        """What the policy does at the raw observation, with exploration noise drawn by the key or without."""

    @abstractmethod
    def observe(self, state: State, spec: Spec, transition: Transition) -> State:
        """The state that has seen the transition: stored for later, or learned from at once."""

    def broken_off(self, state: State) -> State:
        """The state when running episodes are given up: no transition leads from what was seen to what is seen next."""
        return state

    @abstractmethod
    def update(self, state: State, spec: Spec, key: PRNGKeyArray, due: frozenset[str]) -> tuple[State, Metrics]:
        """The state after the parts of the update that are due, and what is to be reported of them."""


def is_zero(number: float | tuple[float, ...] | Float[Array, ""]) -> bool:
    """Whether a number is known to be zero while a program is traced; one that is an array, or several, are not."""
    return isinstance(number, float | int) and not number
