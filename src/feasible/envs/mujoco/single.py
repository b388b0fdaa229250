"""One of Gymnasium's MuJoCo environments, with complete save and restore and with pictures off-screen."""

# MuJoCo's compiled module declares its names to no type checker.
# pyright: reportAttributeAccessIssue=false

import warnings
from typing import Any

import gymnasium as gym
import mujoco
import numpy as np
from gymnasium.envs.mujoco import MujocoEnv
from jaxtyping import UInt8

from feasible.envs.generators import pack_generator, unpack_generator
from feasible.envs.mujoco.legged import speed_reward
from feasible.envs.mujoco.prototype import check_speed
from feasible.envs.mujoco.saving import (
    check_simulation,
    restore_simulation,
    save_simulation,
    simulation_size,
)
from feasible.envs.offscreen import picture

State = dict[str, np.ndarray]


class RestorableMujoco(gym.Wrapper[np.ndarray, np.ndarray, np.ndarray, np.ndarray]):
    """A MuJoCo environment as `gym.make` gives it, plus `get_state` and `set_state`.

    A restored environment continues bit for bit, elapsed steps and generator included. `render` draws
    off-screen with EGL where there is no display and MUJOCO_GL does not say otherwise.
    """

    def __init__(self, env: gym.Env[np.ndarray, np.ndarray]) -> None:
        super().__init__(env)
        if not isinstance(env.unwrapped, MujocoEnv):
            raise ValueError(f"env must be one of Gymnasium's MuJoCo environments, not {env}.")
        self._mujoco = env.unwrapped
        self._clock = _time_limit(env)
        # Gymnasium 1.4 looks at where the robot began; the models' own camera follows it.
        follows = mujoco.mj_name2id(self._mujoco.model, mujoco.mjtObj.mjOBJ_CAMERA, "track")
        if env.render_mode is not None and follows >= 0:
            self._mujoco.mujoco_renderer.camera_id = follows

    def get_state(self) -> State:
        """Everything the future depends on, as plain arrays."""
        # Gymnasium's counter is None before the first reset.
        elapsed = self._clock._elapsed_steps
        if elapsed is None:
            raise RuntimeError("reset must be called before get_state.")
        return {
            "simulation": save_simulation(self._mujoco.model, self._mujoco.data),
            "elapsed": np.array(elapsed),
            "generator": pack_generator(self._mujoco.np_random),
        }

    def set_state(self, state: State) -> None:
        """Continue bit for bit as the environment whose state this is would have."""
        check_simulation("simulation", state["simulation"], (simulation_size(self._mujoco.model),))
        check_simulation("generator", state["generator"], (6,))
        # A reset readies Gymnasium's wrappers for steps; all that it did to the simulation is overwritten.
        self.env.reset()
        restore_simulation(self._mujoco.model, self._mujoco.data, state["simulation"])
        self._mujoco.np_random = unpack_generator(state["generator"])
        self._clock._elapsed_steps = int(state["elapsed"])

    def render(self) -> UInt8[np.ndarray, "height width 3"] | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        if self.render_mode is None:
            return None
        return picture(self.env.render)


def make_mujoco(
    env_id: str, *, render_mode: str | None = None, max_episode_steps: int | None = None, **settings: object
) -> RestorableMujoco:
    """`gym.make`, restorable; Gymnasium's advice against version 4 is left out, since here it is chosen."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*is out of date", category=DeprecationWarning)
        settings["render_mode"] = render_mode
        env = gym.make(env_id, max_episode_steps, disable_env_checker=None, **settings)
    return RestorableMujoco(env)


class TargetSpeed(gym.Wrapper[np.ndarray, np.ndarray, np.ndarray, np.ndarray]):
    """A robot that walks or hops, rewarded by 1 - |v - target| instead of its forward velocity v."""

    def __init__(self, env: RestorableMujoco, target_speed: float) -> None:
        super().__init__(env)
        if not hasattr(env.unwrapped, "healthy_reward"):
            raise ValueError(f"target_speed is for robots that walk or hop, not for {env.unwrapped}.")
        self._target = check_speed(target_speed)

    def step(self, action: np.ndarray):
        obs, _, terminated, truncated, info = self.env.step(action)
        robot: Any = self.env.unwrapped
        reward = speed_reward(info["x_velocity"], self._target) + robot.healthy_reward - robot.control_cost(action)
        return obs, reward, terminated, truncated, info


def _time_limit(env: gym.Env[np.ndarray, np.ndarray]) -> gym.wrappers.TimeLimit[np.ndarray, np.ndarray]:
    while isinstance(env, gym.Wrapper):
        if isinstance(env, gym.wrappers.TimeLimit):
            return env
        env = env.env
    raise ValueError("env must have Gymnasium's TimeLimit, as gym.make gives it.")
