"""The registered environments as the tests make them, and feasible actions by arithmetic of the tests' own."""

import gymnasium as gym
import numpy as np
import pytest

from feasible.constraints import ConstrainedEnv, ConstrainedVectorEnv

IDS = [
    "feasible/BikeSharing-v0",
    "feasible/NSFNet-v0",
    "feasible/Reacher-v0",
    "feasible/HalfCheetah-v0",
    "feasible/HalfCheetahBox-v0",
]
OTHERS = [f"feasible/{name}-v0" for name in ("Portfolio", "Hopper", "Walker2d", "Ant", "Humanoid")]
"""Those of the field's other tasks, which tests of their own hold to the same."""
BIKES, NETWORK, REACHER, CHEETAH, CHEETAH_BOX = IDS
EVERY = pytest.mark.parametrize("env_id", IDS)


def make(env_id: str, **options: object) -> ConstrainedEnv:
    env = gym.make(env_id, **options)  # pyright: ignore[reportArgumentType]
    assert isinstance(env, ConstrainedEnv)
    return env


def make_vec(env_id: str, num_envs: int, **options: object) -> ConstrainedVectorEnv:
    envs = gym.make_vec(env_id, num_envs, **options)  # pyright: ignore[reportArgumentType]
    assert isinstance(envs, ConstrainedVectorEnv)
    return envs


def feasible_action(env_id: str, obs: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """A random action inside the set, by arithmetic of the test's own."""
    if env_id == BIKES:
        moves = generator.integers(0, 4, 5)
        return (30 + moves - np.roll(moves, 1)).astype(np.float32)
    if env_id == NETWORK:
        return generator.uniform(0.0, 12.0, 9).astype(np.float32)
    if env_id == REACHER:
        return generator.uniform(-0.15, 0.15, 2).astype(np.float32)
    action = generator.uniform(-1.0, 1.0, 6)
    if env_id == CHEETAH:
        action *= min(1.0, 19.9 / np.abs(action * obs[11:17]).sum())
    return action.astype(np.float32)


def assert_same_state(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> None:
    assert one.keys() == other.keys()
    for name, value in one.items():
        assert value.dtype != object
        np.testing.assert_array_equal(value, other[name], err_msg=name)


def assert_same_step(one: tuple, other: tuple) -> None:
    for mine, theirs in zip(one[:4], other[:4], strict=True):
        np.testing.assert_array_equal(mine, theirs)
