"""One of Gymnasium's own MuJoCo environments, bare, from which model, weights and starting places are taken."""

import inspect
from collections.abc import Mapping
from typing import NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.envs.mujoco import MujocoEnv
from gymnasium.envs.registration import load_env_creator
from jaxtyping import Float64

from feasible.envs.mujoco.families import Family, HalfCheetah, Reacher
from feasible.envs.mujoco.legged import Ant, Humanoid, Legged, Planar
from feasible.errors import unknown

FAMILIES: Mapping[str, type[Family]] = {
    "HalfCheetah-v4": HalfCheetah,
    "HalfCheetah-v5": HalfCheetah,
    "Reacher-v4": Reacher,
    "Reacher-v5": Reacher,
    "Hopper-v4": Planar,
    "Hopper-v5": Planar,
    "Walker2d-v4": Planar,
    "Walker2d-v5": Planar,
    "Ant-v4": Ant,
    "Humanoid-v5": Humanoid,
}
"""Of the environments that are batched."""


class Prototype(NamedTuple):
    """The bare environment and the length of its episodes in steps."""

    env: MujocoEnv
    episode_length: int


def build_prototype(env_id: str, max_episode_steps: int | None, **settings: object) -> Prototype:
    """The environment that `gym.make(env_id, **settings)` would wrap (older versions without the warning)."""
    if env_id not in FAMILIES:
        raise unknown("robot", env_id, FAMILIES, "env_id: ")
    spec = gym.spec(env_id)
    assert spec.entry_point is not None
    creator = load_env_creator(spec.entry_point) if isinstance(spec.entry_point, str) else spec.entry_point
    known = (*inspect.signature(creator).parameters, *inspect.signature(MujocoEnv).parameters)
    if strange := sorted(set(settings) - set(known)):
        raise ValueError(f"{env_id} has no setting {strange[0]!r}.")
    env = creator(**{**spec.kwargs, **settings})
    length = spec.max_episode_steps if max_episode_steps is None else max_episode_steps
    if isinstance(length, bool) or not isinstance(length, int) or length < 1:
        raise ValueError(f"max_episode_steps must be an integer of at least 1, not {length!r}.")
    assert isinstance(env, MujocoEnv)
    return Prototype(env, length)


def family_of(env_id: str, env: MujocoEnv, target_speed: float | None) -> Family:
    """What an id such as HalfCheetah-v5 shows and rewards; a target speed replaces the reward of a forward velocity."""
    family, version = FAMILIES[env_id], int(env_id.rpartition("-v")[2])
    if target_speed is None:
        return family(env, version)  # pyright: ignore[reportCallIssue]
    if not issubclass(family, Legged):
        raise ValueError(f"target_speed is for robots that walk or hop, not for {env_id}.")
    return family(env, version, check_speed(target_speed))


def check_speed(target_speed: float) -> float:
    """Refuse what is no speed."""
    if isinstance(target_speed, bool) or not isinstance(target_speed, int | float) or not np.isfinite(target_speed):
        raise ValueError(f"target_speed must be a finite number of metres per second, not {target_speed!r}.")
    return float(target_speed)


def draw_start(
    env: MujocoEnv, generator: np.random.Generator
) -> tuple[Float64[np.ndarray, " positions"], Float64[np.ndarray, " velocities"]]:
    """Positions and velocities in which Gymnasium's `reset_model` starts an episode with this generator.

    What it hands to `set_state` is kept, and nothing is simulated or observed: the copies do that together.
    """
    drawn = []
    env.np_random = generator
    vars(env).update(set_state=lambda *start: drawn.extend(start), _get_obs=lambda: None)
    env.reset_model()
    positions, velocities = drawn
    return positions, velocities
