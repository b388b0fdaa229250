"""What a driver needs of an environment: a constraint, flat observations, steps, and where possible saved states."""

from dataclasses import dataclass

import gymnasium as gym
from gymnasium.vector import VectorEnv
from numpy.typing import NDArray

from feasible.algorithms.base import Spec
from feasible.algorithms.spec import spec_of
from feasible.constraints import ConstrainedEnv, Constraint

State = dict[str, NDArray]


@dataclass(frozen=True)
class Plant:
    """A constrained environment taken apart: the environment that is stepped, and the constraint on its actions.

    Actions are judged by the driver, in the program that chooses them, so the judging wrapper is not stepped; whoever
    holds it must reset it before stepping it.
    """

    env: gym.Env
    constraint: Constraint
    spec: Spec
    wrapper: ConstrainedEnv | None = None

    @property
    def moved(self) -> bool:
        """Whether somebody else has reset or stepped the environment since `take`."""
        return self.wrapper is not None and not self.wrapper.awaits_reset

    def take(self) -> None:
        """Take the environment over from whoever holds the wrapper."""
        if self.wrapper is not None:
            self.wrapper.forget()

    @property
    def restorable(self) -> bool:
        return self.env.has_wrapper_attr("get_state") and self.env.has_wrapper_attr("set_state")

    def get_state(self) -> State:
        return self.env.get_wrapper_attr("get_state")()

    def set_state(self, state: State) -> None:
        self.env.get_wrapper_attr("set_state")(state)


def plant(env: gym.Env) -> Plant:
    """The parts of an environment that `feasible.constrain` (or `feasible.make`) made."""
    if isinstance(env, VectorEnv):
        raise ValueError("env: agents train on one environment, not on a vector of them.")
    if not isinstance(env, ConstrainedEnv):
        raise ValueError(
            "env: the environment states no constraint; wrap it with feasible.constrain(env, constraint), with all "
            "other wrappers inside, or use feasible.make(task)."
        )
    inner, constraint = env.env, env.constraint
    return Plant(inner, constraint, spec_of(env), env)
