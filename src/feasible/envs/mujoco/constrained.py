"""Reacher and HalfCheetah with the paper's constraints, around Gymnasium's own environments.

`version` chooses Gymnasium's, "v4" or "v5"; further settings go to Gymnasium's environment.
"""

# MuJoCo's compiled module declares its names to no type checker.
# pyright: reportAttributeAccessIssue=false

import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import jax.numpy as jnp
import mujoco
import numpy as np

from feasible import sets
from feasible.constraints import Constraint, Observation, OnInfeasible
from feasible.envs.mujoco.single import make_mujoco
from feasible.envs.mujoco.vector import MujocoVectorEnv
from feasible.envs.registered import RegisteredEnv, RegisteredVectorEnv, fixed

Version = Literal["v4", "v5"]

REACHER_BUDGET = 0.05
CHEETAH_BUDGET = 20.0
CHEETAH_JOINTS = 6


def squared_torques() -> Constraint:
    """{ u : u_1^2 + u_2^2 <= 0.05 }."""
    return fixed(sets.Ball(np.zeros(2), math.sqrt(REACHER_BUDGET)))


def joint_power(obs: Observation) -> sets.WeightedL1Box:
    """{ v : sum |v_i w_i| <= 20, |v_i| <= 1 }, w the angular velocities of the joints.

    They are the last six entries of an observation (11 to 16 of 17), whether it shows the position or not.
    """
    return sets.WeightedL1Box(weights=jnp.asarray(obs)[-CHEETAH_JOINTS:], budget=CHEETAH_BUDGET, bound=1.0)


def unit_box() -> Constraint:
    """{ v : |v_i| <= 1 }, the action space itself."""
    return fixed(sets.Box(-np.ones(CHEETAH_JOINTS), np.ones(CHEETAH_JOINTS)))


def reacher(*, version: Version = "v4", on_infeasible: OnInfeasible = "raise", **options: object) -> RegisteredEnv:
    """`feasible/Reacher-v0`."""
    return _single("Reacher", version, squared_torques(), on_infeasible, **options)


def reacher_copies(
    num_envs: int = 1, *, version: Version = "v4", on_infeasible: OnInfeasible = "raise", **options: object
) -> RegisteredVectorEnv:
    """Its batched form."""
    return _copies(num_envs, "Reacher", version, squared_torques(), on_infeasible, **options)


def half_cheetah(*, version: Version = "v5", on_infeasible: OnInfeasible = "raise", **options: object) -> RegisteredEnv:
    """`feasible/HalfCheetah-v0`."""
    return _single("HalfCheetah", version, joint_power, on_infeasible, **options)


def half_cheetah_copies(
    num_envs: int = 1, *, version: Version = "v5", on_infeasible: OnInfeasible = "raise", **options: object
) -> RegisteredVectorEnv:
    """Its batched form."""
    return _copies(num_envs, "HalfCheetah", version, joint_power, on_infeasible, **options)


def half_cheetah_box(
    *, version: Version = "v5", on_infeasible: OnInfeasible = "raise", **options: object
) -> RegisteredEnv:
    """`feasible/HalfCheetahBox-v0`."""
    return _single("HalfCheetah", version, unit_box(), on_infeasible, **options)


def half_cheetah_box_copies(
    num_envs: int = 1, *, version: Version = "v5", on_infeasible: OnInfeasible = "raise", **options: object
) -> RegisteredVectorEnv:
    """Its batched form."""
    return _copies(num_envs, "HalfCheetah", version, unit_box(), on_infeasible, **options)


def _single(
    robot: str,
    version: Version,
    constraint: Constraint,
    on_infeasible: OnInfeasible,
    *,
    render_mode: str | None = None,
    episode_length: int | None = None,
    **settings: object,
) -> RegisteredEnv:
    if render_mode not in (None, "rgb_array"):
        raise ValueError(f"render_mode must be None or 'rgb_array', not {render_mode!r}.")
    env_id = _gymnasium_id(robot, version)
    with _known_advice_left_out():
        env = make_mujoco(env_id, render_mode=render_mode, max_episode_steps=episode_length, **settings)
    constrained = RegisteredEnv(env, constraint, on_infeasible)
    constrained.metadata = {"render_modes": ["rgb_array"], "render_fps": env.metadata["render_fps"]}
    return constrained


def _copies(
    num_envs: int,
    robot: str,
    version: Version,
    constraint: Constraint,
    on_infeasible: OnInfeasible,
    *,
    threads: int = 1,
    episode_length: int | None = None,
    **settings: object,
) -> RegisteredVectorEnv:
    env_id = _gymnasium_id(robot, version)
    with _known_advice_left_out():
        env = MujocoVectorEnv(num_envs, env_id, threads=threads, max_episode_steps=episode_length, **settings)
    return RegisteredVectorEnv(env, constraint, on_infeasible)


def _gymnasium_id(robot: str, version: Version) -> str:
    if version not in ("v4", "v5"):
        raise ValueError(f"version must be 'v4' or 'v5', not {version!r}.")
    return f"{robot}-{version}"


@contextmanager
def _known_advice_left_out() -> Iterator[None]:
    """Keep MuJoCo from telling every user, and a file in the working folder, of an attribute in Gymnasium's models.

    Whatever else it says while a model is built becomes a Python warning.
    """
    said: list[str] = []
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(said.append)
    try:
        yield
    finally:
        mujoco.set_mju_user_warning(before)
    for message in said:
        if "settotalmass" not in message:
            warnings.warn(message, stacklevel=4)
