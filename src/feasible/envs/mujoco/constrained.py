"""Reacher and HalfCheetah with the paper's constraints, around Gymnasium's own environments.

`version` is Gymnasium's, "v4" or "v5"; further settings go to Gymnasium's environment.
"""

# MuJoCo's compiled module declares its names to no type checker.
# pyright: reportAttributeAccessIssue=false

import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import mujoco
import numpy as np

from feasible import sets
from feasible.constraints import Constraint, Observation, OnInfeasible
from feasible.envs.mujoco.single import make_mujoco
from feasible.envs.mujoco.vector import MujocoVectorEnv
from feasible.envs.registered import RegisteredEnv, RegisteredVectorEnv

Version = Literal["v4", "v5"]

REACHER_BUDGET = 0.05
CHEETAH_BUDGET = 20.0
JOINTS = 6


def squared_torques(obs: Observation) -> sets.Ball:
    """{ u : u_1^2 + u_2^2 <= 0.05 }."""
    del obs
    return sets.Ball(np.zeros(2), math.sqrt(REACHER_BUDGET))


def joint_power(obs: Observation) -> sets.WeightedL1Box:
    """{ v : sum |v_i w_i| <= 20, |v_i| <= 1 }, w the angular velocities of the joints.

    They are the last six entries of an observation (11 to 16 of 17), whether it shows the position or not.
    """
    return sets.WeightedL1Box(weights=obs[-JOINTS:], budget=CHEETAH_BUDGET, bound=1.0)


def unit_box(obs: Observation) -> sets.Box:
    """{ v : |v_i| <= 1 }, the action space itself."""
    del obs
    return sets.Box(-np.ones(JOINTS), np.ones(JOINTS))


@dataclass(frozen=True)
class Robot:
    """One of Gymnasium's robots with a constraint; called, it makes an environment."""

    name: str
    version: Version
    constraint: Constraint

    def __call__(
        self,
        *,
        version: Version | None = None,
        on_infeasible: OnInfeasible = "raise",
        render_mode: str | None = None,
        episode_length: int | None = None,
        **settings: object,
    ) -> RegisteredEnv:
        if render_mode not in (None, "rgb_array"):
            raise ValueError(f"render_mode must be None or 'rgb_array', not {render_mode!r}.")
        env_id = self._gymnasium_id(version)
        with _known_advice_left_out():
            env = make_mujoco(env_id, render_mode=render_mode, max_episode_steps=episode_length, **settings)
        constrained = RegisteredEnv(env, self.constraint, on_infeasible)
        constrained.metadata = {"render_modes": ["rgb_array"], "render_fps": env.metadata["render_fps"]}
        return constrained

    def copies(
        self,
        num_envs: int = 1,
        *,
        version: Version | None = None,
        on_infeasible: OnInfeasible = "raise",
        threads: int = 1,
        episode_length: int | None = None,
        **settings: object,
    ) -> RegisteredVectorEnv:
        """The batched form."""
        env_id = self._gymnasium_id(version)
        with _known_advice_left_out():
            env = MujocoVectorEnv(num_envs, env_id, threads=threads, max_episode_steps=episode_length, **settings)
        return RegisteredVectorEnv(env, self.constraint, on_infeasible)

    def _gymnasium_id(self, version: Version | None) -> str:
        if version not in (None, "v4", "v5"):
            raise ValueError(f"version must be 'v4' or 'v5', not {version!r}.")
        return f"{self.name}-{version or self.version}"


reacher = Robot("Reacher", "v4", squared_torques)
half_cheetah = Robot("HalfCheetah", "v5", joint_power)
half_cheetah_box = Robot("HalfCheetah", "v5", unit_box)
reacher_copies = reacher.copies
half_cheetah_copies = half_cheetah.copies
half_cheetah_box_copies = half_cheetah_box.copies


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
