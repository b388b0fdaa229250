"""Environments that repair what any agent proposes, and replay buffers that keep what was executed.

Which action Stable-Baselines3 stores:

| algorithm                     | buffer                          | action stored                            |
|-------------------------------|---------------------------------|------------------------------------------|
| SAC, TD3, DDPG                | `ReplayBuffer` (its default)    | the proposal, scaled to [-1, 1]          |
| SAC, TD3, DDPG                | `ExecutedReplayBuffer`          | the executed action, scaled to [-1, 1]   |
| PPO, A2C                      | `RolloutBuffer`                 | the sample, whose density learning needs |
"""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
# The type checker also runs where Stable-Baselines3 is not installed.

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.buffers import DictReplayBuffer, ReplayBuffer
from stable_baselines3.common.vec_env import VecEnv

from feasible.constraints import ConstrainedEnv, Constraint, constrain


def safe(env: gym.Env, constraint: Constraint) -> ConstrainedEnv:
    """The environment, which executes the feasible set's answer to every proposal, for any agent.

    `info` has `executed_action` and `proposed_violation`. With several copies, wrap each one:
    `make_vec_env(env_id, 4, wrapper_class=safe, wrapper_kwargs={"constraint": constraint})`.
    """
    if isinstance(env, VecEnv):
        raise ValueError(
            "safe: wrap each environment before they are made one: make_vec_env(env_id, n, wrapper_class=safe, "
            'wrapper_kwargs={"constraint": constraint}).'
        )
    return constrain(env, constraint, on_infeasible="project")


class ExecutedReplayBuffer(ReplayBuffer):
    """A replay buffer of the actions that `safe` environments executed: `replay_buffer_class=ExecutedReplayBuffer`."""

    def add(
        self,
        obs: NDArray,
        next_obs: NDArray,
        action: NDArray,
        reward: NDArray,
        done: NDArray,
        infos: list[dict[str, Any]],
    ) -> None:
        super().add(obs, next_obs, executed(self.action_space, action, infos), reward, done, infos)


class ExecutedDictReplayBuffer(DictReplayBuffer):
    """The same for observations that are dicts."""

    def add(
        self,
        obs: dict[str, NDArray],
        next_obs: dict[str, NDArray],
        action: NDArray,
        reward: NDArray,
        done: NDArray,
        infos: list[dict[str, Any]],
    ) -> None:
        super().add(obs, next_obs, executed(self.action_space, action, infos), reward, done, infos)


def executed(space: gym.spaces.Box, scaled: NDArray, infos: Sequence[dict[str, Any]]) -> NDArray:
    """Scaled actions, with those in their place that the environments say they executed."""
    kept = np.array(scaled)
    for row, info in enumerate(infos):
        if "executed_action" not in info:
            raise ValueError(
                "ExecutedReplayBuffer: the environment does not say what it executed; wrap it: safe(env, constraint)."
            )
        kept[row] = 2.0 * (info["executed_action"] - space.low) / (space.high - space.low) - 1.0
    return kept
