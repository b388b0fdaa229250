"""The action space's share in a feasible set: what is feasible satisfies the constraint AND lies in the action box."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, jaxpr_as_fun
from jax.interpreters.partial_eval import dce_jaxpr
from jaxtyping import Array, Float, PyTree
from numpy.typing import NDArray

from feasible.errors import EmptySetError
from feasible.sets.base import TOLERANCE, ActionSet

Observation: TypeAlias = PyTree[Array]
# A pure JAX function of the RAW observation (never a normalised one). What that is, an array or a structure of them, is
# the environment's, whose type does not say it: the author of a constraint knows it.
Constraint: TypeAlias = Callable[[Any], ActionSet]


@dataclass(frozen=True)
class Boxed:
    """A constraint and an action box, whose entries may be infinite. Equal ones are interchangeable."""

    constraint: Constraint
    low: tuple[float, ...]
    high: tuple[float, ...]

    def __call__(self, obs: Observation) -> ActionSet:
        return self.constraint(obs)


@dataclass(frozen=True)
class Clipped(Boxed):
    """The constraint with every set clipped to the box."""

    def __call__(self, obs: Observation) -> ActionSet:
        feasible_set = self.constraint(obs)
        low, high = (np.asarray(bound, feasible_set.dtype) for bound in (self.low, self.high))
        clipped = feasible_set.clipped(low, high)
        assert clipped is not None  # `in_action_box` has seen that there is one
        return clipped


@dataclass(frozen=True)
class Watched(Boxed):
    """The constraint as it is: its sets may reach out of the box, so every action is tested against it."""

    def excess(self, action: Float[Array, " n"] | NDArray[np.floating]) -> Float[Array, " 2n"]:
        """By how much each entry is below its lower bound, then by how much above its upper one; NaN for NaN."""
        low, high = (np.asarray(bound, action.dtype) for bound in (self.low, self.high))
        return jnp.concatenate([low - action, action - high])

    @property
    def tolerance(self) -> float:
        """As that of a set with the box's scale."""
        return TOLERANCE * max(abs(bound) for bound in (*self.low, *self.high) if np.isfinite(bound))

    def fault(self, action: NDArray[np.floating]) -> str:
        """The sentence on an action outside the box, without its subject."""
        entry = int(np.argmax(self.excess(action)))
        side, bound = ("below the lower", self.low) if entry < len(self.low) else ("above the upper", self.high)
        entry %= len(self.low)
        return (
            f"is {action[entry]:.6g} in entry {entry}, {side} bound {bound[entry]:.6g} of the action space, and was "
            "not executed: the set reaches out of it; let the constraint return its set & feasible.sets.Box(low, high)."
        )


def one_dimensional(space: gym.Space, what: str) -> gym.spaces.Box:
    """The space of actions, or a sentence that says what does not fit; `what` names it."""
    if isinstance(space, gym.spaces.Box) and len(space.shape) == 1:
        if space.dtype not in (np.float32, np.float64):
            raise ValueError(
                f"{what} holds {space.dtype}, to which certified actions would be rounded; declare it as float32 "
                "(whole numbers have a set of their own, feasible.sets.IntegerAllocation)."
            )
        return space
    fix = "constraints apply to continuous actions, so use an environment with a Box, or add a wrapper that maps them"
    if isinstance(space, gym.spaces.Box):
        fix = "flatten it with a Gymnasium wrapper first"
    raise ValueError(f"{what} must be a one-dimensional Box, got {space}; {fix}.")


def declared(actions: Float[Array, "..."] | NDArray[np.floating], space: gym.Space) -> NDArray[np.floating]:
    """Executed actions as a new array that the action space contains: they are of its dtype and between its bounds, of
    which rounding to float32 may have taken them out."""
    assert isinstance(space, gym.spaces.Box)
    return np.clip(np.asarray(actions, space.dtype), space.low, space.high)


def handed_over(actions: NDArray[np.float32], space: gym.Space) -> NDArray[np.floating]:
    """Certified actions as an environment gets them: as they are where its actions are float32, whose bounds they keep
    (`contained`), else `declared`."""
    return actions if space.dtype == np.float32 else declared(actions, space)


def fixed(feasible_set: ActionSet) -> Constraint:
    """The constraint that is the same set at every observation."""

    def constraint(obs: Observation) -> ActionSet:
        del obs
        return feasible_set

    return constraint


def in_action_box(constraint: Constraint, space: gym.spaces.Box, obs: Observation) -> Constraint:
    """The constraint whose sets are those of `constraint` in the action box, decided once by its program.

    It is `constraint` itself, where what does not depend on the observation says that the sets lie in the box. A
    constant set is intersected now, any other clipped at every observation, if its kind can be (`ActionSet.clipped`).
    What is left is watched: `certified` tests its actions against the box. `obs` is any observation.
    """
    low, high = tuple(space.low.tolist()), tuple(space.high.tolist())
    if not np.isfinite([low, high]).any():
        return constraint
    if isinstance(constraint, Boxed) and (constraint.low, constraint.high) == (low, high):
        return constraint
    constants = _constant_leaves(constraint, obs)
    if all(leaf is not None for leaf in constants):
        feasible_set = constraint(obs)
        try:
            inside = feasible_set.within(space.low, space.high)
        except EmptySetError as cause:
            raise EmptySetError(
                f"constrain: no action of the action space, {space}, satisfies the constraint: {cause}"
            ) from cause
        return constraint if inside is feasible_set else fixed(inside)
    found: list[tuple[ActionSet, ActionSet | None]] = []

    def clip(obs: Observation) -> None:
        leaves, structure = jax.tree.flatten(constraint(obs))
        known = [leaf if constant is None else constant for leaf, constant in zip(leaves, constants, strict=True)]
        feasible_set = jax.tree.unflatten(structure, known)
        bounds = (np.asarray(bound, feasible_set.dtype) for bound in (low, high))
        found.append((feasible_set, feasible_set.clipped(*bounds)))

    jax.eval_shape(clip, obs)
    (feasible_set, clipped), *_ = found
    if clipped is feasible_set:
        return constraint
    return Watched(constraint, low, high) if clipped is None else Clipped(constraint, low, high)


def contained(
    constraint: Constraint, action: Float[Array, " n"], low: Float[Array, " n"], high: Float[Array, " n"]
) -> Float[Array, " n"]:
    """An action that is to be executed, between the bounds of the action space, of which rounding may have taken it
    out. Where sets may reach out of the box, what is further out than the tolerance is left for `certified`."""
    inside = jnp.clip(action, low, high)
    if not isinstance(constraint, Watched):
        return inside
    return jnp.where(jnp.abs(action - inside) <= constraint.tolerance, inside, action)


def certified(
    constraint: Constraint, feasible_set: ActionSet, action: Float[Array, " n"]
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """The violation of an action that is to be executed, and the tolerance up to which it may be.

    `feasible_set` is the constraint's at the observation. The box is tested only where the constraint is watched.
    """
    violation, tolerance = feasible_set.violation(action), feasible_set.tolerance
    if isinstance(constraint, Watched):
        violation = jnp.maximum(violation, jnp.max(constraint.excess(action)))
        tolerance = jnp.minimum(tolerance, constraint.tolerance)
    return violation, tolerance


def _constant_leaves(constraint: Constraint, obs: Observation) -> list[Array | None]:
    """The arrays of the constraint's sets that no observation changes, None for the others: read off its program."""
    program = jax.make_jaxpr(lambda obs: jax.tree.leaves(constraint(obs)))(obs)
    count = len(program.jaxpr.outvars)
    values: list[Array | None] = []
    for place in range(count):
        alone, used = dce_jaxpr(program.jaxpr, [other == place for other in range(count)])
        values.append(None if any(used) else jaxpr_as_fun(ClosedJaxpr(alone, program.consts))()[0])
    return values
