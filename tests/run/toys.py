"""A toy task: a point that drifts, pushed with a force of bounded length; it can be told to go wrong at a step."""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Literal, cast

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from jaxtyping import Array, Float, PRNGKeyArray
from numpy.typing import NDArray

from feasible import sets
from feasible.algorithms.actor_rules import FrankWolfe
from feasible.algorithms.base import Algorithm
from feasible.algorithms.ddpg import DDPG
from feasible.algorithms.sac import SAC
from feasible.catalogue.presets import fair, table_3
from feasible.catalogue.task import Task
from feasible.constraints import ConstrainedEnv, ConstrainedVectorEnv, Observation, OnInfeasible
from feasible.envs.generators import pack_generator, unpack_generator
from feasible.run.drive.plant import SinglePlant

Fault = Literal["", "observation", "reward", "loss", "empty", "wide", "first observation"]
TOY = DDPG(
    rule=FrankWolfe(0.05), noise=0.1, warmup=10, batch_size=16, replay_size=37, hidden_layers=(8,), actor_rate=1e-2
)


class Drift(gym.Env):
    """Observations are the point and the length that the next force may have, which changes with time."""

    def __init__(self, fault: Fault = "", at: int = 0, render_mode: str | None = None):
        del render_mode
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (3,), np.float32)
        self.action_space = gym.spaces.Box(-1.0, 1.0, (2,), np.float32)
        self.fault, self.at = fault, at
        self.point, self.time, self.steps = np.zeros(2), 0, 0

    def reset(self, *, seed: int | None = None, options: dict[str, object] | None = None):
        super().reset(seed=seed)
        self.point, self.time = self.np_random.normal(size=2), 0
        if self.fault == "first observation":
            self.point[1] = np.inf
        return self._obs(), {}

    def step(self, action: NDArray[np.floating]):
        self.time, self.steps = self.time + 1, self.steps + 1
        self.point = 0.9 * self.point + 0.3 * np.asarray(action) + 0.05 * self.np_random.normal(size=2)
        reward, obs = -float(self.point @ self.point), self._obs()
        if self.fault and self.steps >= self.at:
            obs[1] = np.nan if self.fault == "observation" else obs[1]
            obs[2] = {"empty": -1.0, "wide": 9.0}.get(self.fault, obs[2])
            reward = {"reward": math.nan, "loss": 1e30}.get(self.fault, reward)
        return obs, reward, bool(abs(self.point[0]) > 3), self.time == 20, {}

    def _obs(self) -> NDArray[np.float32]:
        return np.array([*self.point, 0.5 + 0.3 * math.cos(self.time)], np.float32)


class SavedDrift(Drift):
    """The same with saved states."""

    def get_state(self) -> dict[str, NDArray]:
        counted = np.array([self.time, self.steps])
        return {"point": self.point.copy(), "counted": counted, "generator": pack_generator(self.np_random)}

    def set_state(self, state: Mapping[str, NDArray]) -> None:
        self.point = state["point"].copy()
        self.time, self.steps = (int(n) for n in state["counted"])
        self.np_random = unpack_generator(state["generator"])


class Unreadable(SavedDrift):
    """From its second step on, what a step returns is changed."""

    def __init__(self, change: Callable[[tuple], object]):
        super().__init__()
        self.change = change

    def step(self, action: NDArray[np.floating]):
        outcome = super().step(action)
        return cast(tuple, self.change(outcome)) if self.steps > 1 else outcome


def observing(change: Callable[[NDArray], object]) -> Callable[[tuple], object]:
    return lambda outcome: (change(outcome[0]), *outcome[1:])


UNREADABLE: dict[str, tuple[Callable[[tuple], object], str]] = {
    "longer": (observing(lambda obs: np.append(obs, 1.0)), r"observation.* has shape \(4,\) at step 2, but the"),
    "column": (observing(lambda obs: obs[:, None]), r"observation.* has shape \(3, 1\) at step 2, but the"),
    "number": (observing(lambda obs: 0.5), r"observation.* has shape \(\) at step 2, but the"),
    "none": (observing(lambda obs: None), "observation.* is None at step 2: "),
    "text": (observing(lambda obs: "abc"), "observation.* is 'abc' at step 2: "),
    "words": (observing(lambda obs: np.array(["a", "b", "c"])), "observation.* is an array of <U1 .* at step 2: "),
    "rewards": (lambda outcome: (outcome[0], np.zeros(2), *outcome[2:]), "The reward.* at step 2"),
    "four": (lambda outcome: outcome[:4], "The environment.* returned .* from step 2: it must return "),
}
"""By name: how an outcome is changed, and what is said of it."""


class Writing(SavedDrift):
    """Writes to the actions that it is given."""

    def step(self, action: NDArray[np.floating]):
        outcome = super().step(action)
        action[:] = 7.0
        return outcome


class Disc(sets.Ball):
    """A ball whose samples XLA compiles at once: those of `Ball`, which are uniform, take it as long as all else that
    a run begins with."""

    def sample(self, key: PRNGKeyArray) -> Float[Array, " n"]:
        share = jax.random.uniform(key, self.middle.shape, self.dtype, -1.0, 1.0)
        return self.project(self.middle + self.radius * share)


def force(obs: Observation) -> Disc:
    """{ a : ||a|| <= the observation's last entry }."""
    return Disc(jnp.zeros(2), obs[2])  # pyright: ignore[reportIndexIssue, reportOptionalSubscript, reportArgumentType]


def toy_plant(kind: type[Drift] = SavedDrift, fault: Fault = "", at: int = 0) -> SinglePlant:
    return SinglePlant(ConstrainedEnv(kind(fault, at), force))


def _single(on_infeasible: OnInfeasible = "raise", **options: object) -> ConstrainedEnv:
    return ConstrainedEnv(SavedDrift(**options), force, on_infeasible)  # pyright: ignore[reportArgumentType]


def _copies(num_envs: int, threads: int, on_infeasible: OnInfeasible, **options: object) -> ConstrainedVectorEnv:
    del threads, options  # a fault is one of training
    simulators = SyncVectorEnv([SavedDrift] * num_envs, autoreset_mode=AutoresetMode.SAME_STEP)
    return ConstrainedVectorEnv(simulators, force, on_infeasible)


def toy_task(name: str = "toy", fault: Fault = "", at: int = 0) -> Task:
    """The toy as a task, small and quick to train."""
    if "toy/Drift-v0" not in gym.registry:
        gym.register(
            "toy/Drift-v0",
            entry_point=_single,
            vector_entry_point=_copies,  # pyright: ignore[reportArgumentType]
            order_enforce=False,
            disable_env_checker=True,
        )
    options: dict[str, object] = {"fault": fault, "at": at}
    return Task(
        name=name,
        make="toy/Drift-v0",
        title="a drifting point",
        words="||a|| <= obs[2]",
        steps=300,
        eval_every=50,
        episodes=2,
        sizes={"observation_size": 3, "action_size": 2, "episode_length": 20},
        options=options,
        presets={"paper": _paper, "fair": lambda: fair(_paper())},
    )


def _paper() -> dict[str, Algorithm]:
    """A column like those of the paper, with small networks."""
    column = table_3(
        frank_wolfe_step=0.05, shaping=1.0, noise=0.1, warmup=TOY.warmup, replay_size=TOY.replay_size, output="tanh"
    )
    small = {"hidden_layers": (8,)}
    for name, algorithm in column.items():
        if isinstance(algorithm, DDPG):
            column[name] = replace(algorithm, **small, actor_rate=1e-2)
        elif isinstance(algorithm, SAC):
            column[name] = replace(algorithm, **small)
    return column
