"""What a driver needs of an environment: a constraint, flat observations, steps, and where possible saved states."""

from dataclasses import dataclass
from typing import cast

import gymnasium as gym
import jax.numpy as jnp
import numpy as np
from gymnasium.vector import VectorEnv
from numpy.typing import NDArray

from feasible.algorithms.base import Spec
from feasible.constraints import ConstrainedEnv, ConstrainedVectorEnv, Constraint

State = dict[str, NDArray]


@dataclass(frozen=True)
class Plant:
    """A constrained environment taken apart: the environment that is stepped, and the constraint on its actions.

    Actions are judged by the driver, in the program that chooses them, so the judging wrapper is not stepped.
    """

    env: gym.Env
    constraint: Constraint
    spec: Spec

    @property
    def restorable(self) -> bool:
        return self.env.has_wrapper_attr("get_state") and self.env.has_wrapper_attr("set_state")

    def get_state(self) -> State:
        return self.env.get_wrapper_attr("get_state")()

    def set_state(self, state: State) -> None:
        self.env.get_wrapper_attr("set_state")(state)


def plant(env: gym.Env) -> Plant:
    """The parts of an environment that `feasible.constrain` (or `feasible.make`) made."""
    constraint, inner = constraint_of(env), env.env if isinstance(env, ConstrainedEnv) else env
    return Plant(inner, constraint, spec_of(env.observation_space, env.action_space, constraint, time_limit(inner)))


def constraint_of(env: gym.Env | VectorEnv) -> Constraint:
    if isinstance(env, ConstrainedVectorEnv):
        return env.constraint
    if isinstance(env, gym.Env) and env.has_wrapper_attr("constraint"):
        return cast(Constraint, env.get_wrapper_attr("constraint"))
    raise ValueError(
        "env: the environment states no constraint; wrap it with feasible.constrain(env, constraint), "
        "or use feasible.make(task)."
    )


def spec_of(observations: gym.Space, actions: gym.Space, constraint: Constraint, length: int | None) -> Spec:
    """The task as algorithms see it, or a sentence that says what does not fit."""
    if not isinstance(observations, gym.spaces.Box) or len(observations.shape) != 1:
        raise ValueError(
            f"env: observations must be a one-dimensional Box, got {observations}; "
            "wrap the environment with gymnasium.wrappers.FlattenObservation before constraining it."
        )
    if not isinstance(actions, gym.spaces.Box) or len(actions.shape) != 1:
        raise ValueError(f"env: the action space must be a one-dimensional Box, got {actions}.")
    if not (np.all(np.isfinite(actions.low)) and np.all(np.isfinite(actions.high))):
        raise ValueError(
            "env: the action space must have finite bounds (outputs and exploration are scaled to it); "
            "wrap the environment with gymnasium.wrappers.RescaleAction or give its Box bounds."
        )
    low, high = (jnp.asarray(bound, jnp.float32) for bound in (actions.low, actions.high))
    return Spec(observations.shape[0], low, high, constraint, length)


def time_limit(env: gym.Env) -> int | None:
    if env.has_wrapper_attr("episode_length"):
        return int(env.get_wrapper_attr("episode_length"))
    return env.spec.max_episode_steps if env.spec is not None else None
