"""What Gymnasium's robots show and reward, for all copies at once: HalfCheetah and Reacher, which never fall.

The arithmetic repeats theirs operation for operation, in the types in which they do it (the cost of a float32
action is a float32), so that every number is equal to the last bit. Weights come from the environment itself.
"""

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
from gymnasium.envs.mujoco import MujocoEnv
from jaxtyping import Bool, Float, Float64

Infos = dict[str, Float[np.ndarray, " copies"]]


class Frame(NamedTuple):
    """The simulations of all copies at one time; `places` holds those of the family's `bodies`."""

    qpos: Float64[np.ndarray, "copies positions"]
    qvel: Float64[np.ndarray, "copies velocities"]
    places: Float64[np.ndarray, "copies bodies 3"]


class Family(ABC):
    """Observation and reward of one environment and version."""

    bodies: tuple[int, ...] = ()
    field = "xpos"
    """Where MuJoCo has the places of the bodies: of their frames, or (`xipos`) of their centres of mass."""

    @abstractmethod
    def observe(self, frame: Frame) -> Float64[np.ndarray, "copies observation"]:
        """Gymnasium's `_get_obs`, batched."""

    @abstractmethod
    def reward(
        self, before: Frame, actions: Float[np.ndarray, "copies actuators"], after: Frame
    ) -> tuple[Float64[np.ndarray, " copies"], Infos]:
        """Gymnasium's reward and the entries of `info`, batched."""

    def reset_info(self, frame: Frame) -> Infos:
        """Gymnasium's `info` of a reset, batched."""
        del frame
        return {}

    def fallen(self, frame: Frame) -> Bool[np.ndarray, " copies"]:
        """Whose episode terminates."""
        return np.zeros(len(frame.qpos), dtype=bool)


class HalfCheetah(Family):
    """Forward velocity less control cost; versions 4 and 5 differ in the names in `info` alone."""

    def __init__(self, env: MujocoEnv, version: int) -> None:
        self.forward_weight: float = vars(env)["_forward_reward_weight"]
        self.control_weight: float = vars(env)["_ctrl_cost_weight"]
        self.hidden = int(vars(env)["_exclude_current_positions_from_observation"])
        self.dt = env.dt
        self.version = version

    def observe(self, frame: Frame) -> Float64[np.ndarray, "copies observation"]:
        return np.concatenate([frame.qpos[:, self.hidden :], frame.qvel], axis=1)

    def reward(
        self, before: Frame, actions: Float[np.ndarray, "copies actuators"], after: Frame
    ) -> tuple[Float64[np.ndarray, " copies"], Infos]:
        velocity = (after.qpos[:, 0] - before.qpos[:, 0]) / self.dt
        forward = self.forward_weight * velocity
        control = self.control_weight * np.add.reduce(np.square(actions), axis=1)
        infos = {
            "x_position": after.qpos[:, 0],
            "x_velocity": velocity,
            "reward_run" if self.version == 4 else "reward_forward": forward,
            "reward_ctrl": -control,
        }
        return forward - control, infos

    def reset_info(self, frame: Frame) -> Infos:
        return {} if self.version == 4 else {"x_position": frame.qpos[:, 0]}


class Reacher(Family):
    """Distance of the fingertip from the target, before the step in version 4 and after it in version 5."""

    def __init__(self, env: MujocoEnv, version: int) -> None:
        self.bodies = (env.model.body("fingertip").id, env.model.body("target").id)
        self.version = version
        self.distance_weight: float = vars(env).get("_reward_dist_weight", 1)
        self.control_weight: float = vars(env).get("_reward_control_weight", 1)

    def observe(self, frame: Frame) -> Float64[np.ndarray, "copies observation"]:
        angles = np.ascontiguousarray(frame.qpos[:, :2])
        shown = 3 if self.version == 4 else 2
        parts = [np.cos(angles), np.sin(angles), frame.qpos[:, 2:], frame.qvel[:, :2]]
        return np.concatenate([*parts, self._gap(frame)[:, :shown]], axis=1)

    def reward(
        self, before: Frame, actions: Float[np.ndarray, "copies actuators"], after: Frame
    ) -> tuple[Float64[np.ndarray, " copies"], Infos]:
        gap = self._gap(before if self.version == 4 else after)
        # The norm of a vector is numpy's square root of a dot product; `vecdot` is that product, row by row.
        distance = -np.sqrt(np.vecdot(gap, gap)) * self.distance_weight
        control = -np.add.reduce(np.square(actions), axis=1) * self.control_weight
        return distance + control, {"reward_dist": distance, "reward_ctrl": control}

    def _gap(self, frame: Frame) -> Float64[np.ndarray, "copies 3"]:
        return frame.places[:, 0] - frame.places[:, 1]
