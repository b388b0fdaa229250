"""Gymnasium's robots with limits on their actions.

`version` is Gymnasium's, "v4" or "v5"; `limit` names one of the robot's limits and `budget` replaces its usual budget;
further settings go to Gymnasium's environment.
"""

# MuJoCo's compiled module declares its names to no type checker.
# pyright: reportAttributeAccessIssue=false

import math
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

import mujoco

from feasible.constraints import OnInfeasible, remember_action
from feasible.envs.mujoco import limits
from feasible.envs.mujoco.limits import Budgeted, Limit
from feasible.envs.mujoco.single import TargetSpeed, make_mujoco
from feasible.envs.mujoco.vector import MujocoVectorEnv
from feasible.envs.registered import RegisteredEnv, RegisteredVectorEnv
from feasible.errors import unknown

Version = Literal["v4", "v5"]


@dataclass(frozen=True)
class Robot:
    """One of Gymnasium's robots with its limits; called, it makes an environment."""

    name: str
    versions: tuple[Version, ...]
    """Those it is known in; the first is taken where none is named."""
    limits: Mapping[str, Limit]
    """By name; the first is taken where none is named."""
    settings: Mapping[str, object] = field(default_factory=dict)
    """Of Gymnasium's environment, where they differ from its own."""

    def __call__(
        self,
        *,
        version: Version | None = None,
        limit: str | None = None,
        budget: float | None = None,
        on_infeasible: OnInfeasible = "raise",
        render_mode: str | None = None,
        episode_length: int | None = None,
        target_speed: float | None = None,
        **settings: object,
    ) -> RegisteredEnv:
        if render_mode not in (None, "rgb_array"):
            raise ValueError(f"render_mode must be None or 'rgb_array', not {render_mode!r}.")
        env_id, chosen = self._gymnasium_id(version), self._limit(limit)
        constraint = self._constraint(chosen, budget)
        given = {**self.settings, **settings}
        with _known_advice_left_out():
            robot = make_mujoco(env_id, render_mode=render_mode, max_episode_steps=episode_length, **given)
        env = robot if target_speed is None else TargetSpeed(robot, target_speed)
        env = remember_action(env) if chosen.remembers else env
        constrained = RegisteredEnv(env, constraint, on_infeasible)
        constrained.metadata = {"render_modes": ["rgb_array"], "render_fps": robot.metadata["render_fps"]}
        return constrained

    def copies(
        self,
        num_envs: int = 1,
        *,
        version: Version | None = None,
        limit: str | None = None,
        budget: float | None = None,
        on_infeasible: OnInfeasible = "raise",
        threads: int = 1,
        episode_length: int | None = None,
        **settings: object,
    ) -> RegisteredVectorEnv:
        """The batched form."""
        env_id, chosen = self._gymnasium_id(version), self._limit(limit)
        constraint = self._constraint(chosen, budget)
        given = {**self.settings, **settings}
        with _known_advice_left_out():
            env = MujocoVectorEnv(num_envs, env_id, threads=threads, max_episode_steps=episode_length, **given)  # pyright: ignore[reportArgumentType]
        return RegisteredVectorEnv(remember_action(env) if chosen.remembers else env, constraint, on_infeasible)

    def _gymnasium_id(self, version: Version | None) -> str:
        if version not in (None, *self.versions):
            known = " or ".join(map(repr, sorted(self.versions)))
            raise ValueError(f"version must be {known}, not {version!r}.")
        return f"{self.name}-{version or self.versions[0]}"

    def _limit(self, name: str | None) -> Limit:
        if name is not None and name not in self.limits:
            raise unknown("limit", name, self.limits, f"limit of {self.name}: ")
        return self.limits[name or next(iter(self.limits))]

    def _constraint(self, limit: Limit, budget: float | None) -> Budgeted:
        given = limit.budget if budget is None else budget
        if budget is not None and math.isinf(limit.budget):
            raise ValueError(f"budget: this limit of {self.name} has none.")
        if budget is not None and (isinstance(budget, bool) or not (math.isfinite(budget) and budget > 0.0)):
            raise ValueError(f"budget must be a positive number, not {budget!r}.")
        return Budgeted(limit.within, float(given))


reacher = Robot(
    "Reacher",
    ("v4", "v5"),
    {
        "torque": Limit(limits.torque, 0.05),
        "power": Limit(limits.arm_power, 1.0),
        "positive-power": Limit(limits.arm_positive_power, 1.0),
        "tip": Limit(limits.tip, 0.05),
        "rate": Limit(limits.rate, 0.2, remembers=True),
    },
)
half_cheetah = Robot(
    "HalfCheetah",
    ("v5", "v4"),
    {"power": Limit(limits.power(6), 20.0), "mean-angle": Limit(limits.mean_angle, 5.0), "box": Limit(limits.box)},
)
half_cheetah_box = Robot("HalfCheetah", ("v5", "v4"), {"box": Limit(limits.box)})
# Version 4 has the model and the reward of version 3, which the field's suites used.
hopper = Robot(
    "Hopper",
    ("v4", "v5"),
    {
        "positive-power": Limit(limits.positive_power(3), 10.0),
        "power-and-swing": Limit(limits.power_and_swing(3), 10.0),
    },
)
walker = Robot(
    "Walker2d",
    ("v4", "v5"),
    {
        "positive-power": Limit(limits.positive_power(6), 10.0),
        "power-and-swing": Limit(limits.power_and_swing(6), 10.0),
    },
)
ant = Robot("Ant", ("v4",), {"squares": Limit(limits.squares(8, 1.0), 2.0)})
humanoid = Robot(
    "Humanoid",
    ("v5",),
    {"squares": Limit(limits.squares(17, 0.4), 0.68)},
    settings={
        "include_cinert_in_observation": False,
        "include_cvel_in_observation": False,
        "include_qfrc_actuator_in_observation": False,
        "include_cfrc_ext_in_observation": False,
        "contact_cost_weight": 0.0,
    },
)
reacher_copies = reacher.copies
half_cheetah_copies = half_cheetah.copies
half_cheetah_box_copies = half_cheetah_box.copies
hopper_copies = hopper.copies
walker_copies = walker.copies
ant_copies = ant.copies
humanoid_copies = humanoid.copies


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
