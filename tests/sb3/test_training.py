"""Stable-Baselines3 trains on the field's tasks: nothing that is executed violates, by a plain formula in NumPy."""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
# The type checker also runs where PyTorch is not installed, and then takes a folder of tests for it.

from collections.abc import Callable
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from numpy.typing import NDArray
from stable_baselines3 import PPO, SAC, TD3

import feasible as fs
from feasible.sb3 import ExecutedReplayBuffer, Violations, constrained_policy, safe
from tests.run.runs import as_a_user

STEPS = 10_000
TOLERANCE = 1e-5  # the library's, for actions of a unit box
# How far outside an action is, from the tasks' formulas.
EXCESS: dict[str, Callable[[NDArray, NDArray], float]] = {
    "reacher": lambda obs, a: float(np.sqrt(np.sum(a**2)) - np.sqrt(0.05)),
    "hopper-power": lambda obs, a: float(np.sum(np.maximum(obs[8:11] * a, 0.0)) - 10.0),
}


class Watched(gym.Wrapper):
    """What reaches the simulator itself, below everything that could repair it."""

    def __init__(self, env: gym.Env, excess: Callable[[NDArray, NDArray], float]):
        super().__init__(env)
        self.excess, self.largest, self.steps = excess, -np.inf, 0

    def reset(self, **options):
        self.seen, info = self.env.reset(**options)
        return self.seen, info

    def step(self, action):
        self.largest = max(self.largest, self.excess(self.seen, np.asarray(action, float)), np.max(np.abs(action)) - 1)
        self.steps += 1
        outcome = self.env.step(action)
        self.seen = outcome[0]
        return outcome


def task(name: str) -> tuple[gym.Env, Watched, fs.Constraint]:
    made = fs.make(name)
    watched = Watched(made.env, EXCESS[name])
    return safe(watched, made.constraint), watched, made.constraint


AGENTS = {
    "SAC": (
        SAC,
        {"learning_starts": 200, "batch_size": 64, "train_freq": 4, "replay_buffer_class": ExecutedReplayBuffer},
    ),
    "PPO": (PPO, {"n_steps": 1000, "batch_size": 100, "n_epochs": 5}),
    "TD3": (
        TD3,
        {"learning_starts": 200, "batch_size": 64, "train_freq": 4, "replay_buffer_class": ExecutedReplayBuffer},
    ),
}


@pytest.mark.parametrize(
    ("agent", "map", "name"),
    [
        ("SAC", "radial", "hopper-power"),
        ("PPO", "radial", "hopper-power"),
        ("SAC", "alpha", "reacher"),
        ("PPO", "alpha", "reacher"),
    ],
)
def test_ten_thousand_steps_execute_no_violation(agent: str, map: str, name: str) -> None:
    kind, settings = AGENTS[agent]
    with as_a_user():
        env, watched, constraint = task(name)
        violations = Violations(constraint)
        policy = constrained_policy(agent, constraint, map)
        model = kind(policy, env, seed=0, device="cpu", policy_kwargs={"net_arch": [64, 64]}, **settings)
        model.learn(STEPS, callback=violations)
    print(f"{agent} {map} {name}: {violations.proposed_count} proposed, {violations.executed_count} executed,", end=" ")
    print(f"largest excess {watched.largest:.2e} in {watched.steps} steps")
    assert violations.steps == watched.steps == STEPS
    assert violations.executed_count == 0
    assert watched.largest <= TOLERANCE * max(1.0, 10.0 if name == "hopper-power" else 1.0)
    # Only the warm-up, which Stable-Baselines3 draws from the box, proposes what must be repaired.
    assert violations.proposed_count <= settings.get("learning_starts", 0)


@pytest.mark.parametrize("map", ["radial", "alpha", "projection"])
@pytest.mark.parametrize("agent", AGENTS)
def test_saved_and_loaded_by_their_own_functions(agent: str, map: str, tmp_path: Path) -> None:
    kind, settings = AGENTS[agent]
    noise = {"noise": 0.1} if agent == "TD3" else {}
    with as_a_user():
        env, watched, _ = task("reacher")
        settings = {**settings, **({"n_steps": 100} if agent == "PPO" else {})}
        policy = constrained_policy(agent, env, map, **noise)
        model = kind(policy, env, seed=0, device="cpu", policy_kwargs={"net_arch": [16]}, **settings).learn(300)
        model.save(tmp_path / "model")
        loaded = kind.load(tmp_path / "model", env=env, device="cpu")
        obs = np.stack([env.observation_space.sample() for _ in range(8)])
        before, after = (one.predict(obs, deterministic=True)[0] for one in (model, loaded))
        np.testing.assert_array_equal(before, after)
        assert all(EXCESS["reacher"](one, a) <= TOLERANCE for one, a in zip(obs, before, strict=True))
        drawn = loaded.predict(obs)[0]
        assert np.abs(drawn - before).max() > 1e-3
        assert all(EXCESS["reacher"](one, a) <= TOLERANCE for one, a in zip(obs, drawn, strict=True))
        loaded.learn(200, reset_num_timesteps=False)
    assert watched.largest <= TOLERANCE


def test_the_buffer_keeps_what_was_executed() -> None:
    with as_a_user():
        env, _, _ = task("reacher")
        for buffer, inside in ((ExecutedReplayBuffer, True), (None, False)):
            model = SAC("MlpPolicy", env, seed=0, learning_starts=60, replay_buffer_class=buffer, device="cpu")
            model.learn(50)
            stored = model.replay_buffer.actions[:50, 0]
            assert (np.linalg.norm(stored, axis=1) <= np.sqrt(0.05) + TOLERANCE).all() == inside
