"""Environments whose observations have a structure: a goal to reach, as gymnasium-robotics has them, and gears."""

from typing import Any

import gymnasium as gym
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from feasible import sets
from feasible.constraints import Observation

REACH = (0.2, 0.5, 0.8)  # by gear


class Goal(gym.Env):
    """A point that is pushed towards a goal; the observations are those of a GoalEnv, in float64."""

    def __init__(self, render_mode: str | None = None):
        del render_mode
        space = gym.spaces.Box(-np.inf, np.inf, (2,), np.float64)
        wide = gym.spaces.Box(-np.inf, np.inf, (4,), np.float64)
        self.observation_space = gym.spaces.Dict(observation=wide, achieved_goal=space, desired_goal=space)
        self.action_space = gym.spaces.Box(-1.0, 1.0, (2,), np.float32)
        self.point, self.goal, self.time = np.zeros(2), np.zeros(2), 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        super().reset(seed=seed)
        self.point, self.goal = self.np_random.normal(size=(2, 2))
        self.time = 0
        return self._obs(), {}

    def step(self, action: NDArray[np.floating]):
        self.time += 1
        self.point = self.point + 0.2 * np.asarray(action)
        return self._obs(), -float(np.linalg.norm(self.point - self.goal)), False, self.time == 15, {}

    def _obs(self) -> Any:
        rest = np.array([*(self.goal - self.point), self.time, 1.0])
        return {"observation": rest, "achieved_goal": self.point.copy(), "desired_goal": self.goal.copy()}


def near(obs: Observation) -> sets.Ball:
    """||a|| <= 0.1 + half the way to the goal, at most 0.9."""
    way = jnp.linalg.norm(obs["desired_goal"] - obs["achieved_goal"])  # pyright: ignore
    return sets.Ball(jnp.zeros(2, jnp.float32), jnp.minimum(0.1 + 0.5 * way, 0.9))


class Gears(Goal):
    """The same with a gear, which changes from step to step and says how far the next push may reach."""

    def __init__(self, render_mode: str | None = None):
        super().__init__(render_mode)
        self.observation_space = gym.spaces.Dict(
            ways=gym.spaces.Box(-np.inf, np.inf, (2, 2), np.float64),
            gear=gym.spaces.Discrete(3, start=1),
            rest=gym.spaces.Tuple((gym.spaces.MultiBinary(2), gym.spaces.MultiDiscrete([16, 2]))),
        )

    def _obs(self) -> Any:
        flags = np.array([self.time % 2, 1], np.int8)
        rest = (flags, np.array([self.time, self.time % 2]))
        return {"ways": np.stack([self.point, self.goal]), "gear": np.int64(1 + self.time % 3), "rest": rest}


def in_gear(obs: Observation) -> sets.Ball:
    """||a|| <= the reach of the gear, which is an index."""
    assert obs["gear"].dtype == jnp.int32  # pyright: ignore
    assert obs["ways"].shape == (2, 2)  # pyright: ignore
    assert obs["rest"][1].shape == (2,)  # pyright: ignore
    return sets.Ball(jnp.zeros(2, jnp.float32), jnp.asarray(REACH, jnp.float32)[obs["gear"] - 1])  # pyright: ignore
