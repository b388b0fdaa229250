"""What a constraint, an action space and observations must be to fit together, and what an environment is handed."""

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict
from numpy.typing import NDArray

import feasible as fs
from feasible.run.drive.plant import plant_of


class Listening(gym.Env):
    """Remembers the actions that it gets."""

    def __init__(self, actions: Box, observations: gym.Space | None = None, length: int | None = 5) -> None:
        self.action_space, self.length = actions, length
        self.observation_space = observations or Box(-1.0, 1.0, (2,), np.float32)
        self.heard: list[NDArray] = []

    def reset(self, *, seed: int | None = None, options: dict[str, object] | None = None) -> tuple[Any, dict]:
        super().reset(seed=seed)
        self.steps = 0
        return self.observation_space.sample(), {}

    def step(self, action: NDArray) -> tuple[Any, float, bool, bool, dict]:
        self.heard.append(np.array(action))
        self.steps += 1
        return self.observation_space.sample(), 0.0, self.steps == self.length, False, {}


def box(low: object, high: object, dtype: type = np.float32) -> Box:
    return Box(np.array(low, dtype), np.array(high, dtype), dtype=dtype)


UNIT = box([-1, -1], [1, 1])


def everything(obs: object) -> fs.sets.Box:
    return fs.sets.Box([-9.0, -9.0], [9.0, 9.0])


@pytest.mark.parametrize(("low", "high"), [((0, 0), (1, 1e6)), ((1e6, 1e6), (1e6 + 4, 1e6 + 4))])
def test_units_that_tolerances_do_not_see_are_refused(low: tuple, high: tuple) -> None:
    with pytest.raises(ValueError, match=r"entry 0 of the action space is \d wide.*RescaleAction\(env, -1.0, 1.0\)"):
        fs.constrain(Listening(box(low, high)), everything)
    alike = gym.wrappers.RescaleAction(Listening(box(low, high)), np.float32(-1.0), np.float32(1.0))
    fs.constrain(alike, lambda obs: fs.sets.Ball([0.0, 0.0], 1.0))


@pytest.mark.parametrize(("low", "high"), [((0, 0), (1, 900)), ((0, 5), (1, 5)), ((-np.inf, 0), (np.inf, 1))])
def test_other_units_are_not(low: tuple, high: tuple) -> None:
    fs.constrain(Listening(box(low, high)), lambda obs: fs.sets.Ball([0.0, 5.0], 9.0))


@pytest.mark.parametrize("dtype", [np.int32, np.float16])
def test_actions_that_would_be_rounded_are_refused(dtype: type) -> None:
    with pytest.raises(ValueError, match=f"action space holds {np.dtype(dtype)}, .*declare it as float32"):
        fs.constrain(Listening(box([0, 0], [5, 5], dtype)), everything)


def test_reading_past_the_end_of_an_observation_is_refused() -> None:
    """JAX reads the last entry instead."""
    with pytest.raises(ValueError, match="reads past the end of the observation: index 2 is out of bounds"):
        fs.constrain(Listening(UNIT), lambda obs: fs.sets.Ball([0.0, 0.0], 2.0 + obs[2]))
    parts = Dict(w=Box(0, 1, (3,)))
    with pytest.raises(ValueError, match="reads past the end of the observation: index 3 is out of bounds"):
        fs.constrain(Listening(UNIT, parts), lambda obs: fs.sets.Ball([0.0, 0.0], obs["w"][3]))
    fs.constrain(Listening(UNIT, parts), lambda obs: fs.sets.Ball([0.0, 0.0], obs["w"][-1]))


@pytest.mark.parametrize(
    ("constraint", "says"),
    [
        (fs.sets.Ball([0.0, 0.0], 1.0), "must be a function from the observation to a set, got a Ball"),
        (lambda obs: [fs.sets.Ball([0.0, 0.0], 1.0)][obs[0].astype(int)], "pure JAX function"),
        (lambda obs: fs.sets.Ball(obs[obs > 0], 1.0), "pure JAX function"),
        (
            lambda obs: fs.sets.Ball([0.0, 0.0], obs["charge"]),
            r"fails on an observation of Box.*(TypeError|IndexError)",
        ),
        (lambda obs: fs.sets.Ball([0.0, 0.0], obs.charge), "fails on an observation of Box.*AttributeError"),
        (lambda obs, more: fs.sets.Ball([0.0, 0.0], 1.0), "fails on an observation of Box.*TypeError"),
    ],
)
def test_a_constraint_that_fails_is_told_in_a_sentence(constraint: Callable, says: str) -> None:
    with pytest.raises(ValueError, match=f"constrain: the constraint .*{says}"):
        fs.constrain(Listening(UNIT), constraint)


def test_an_action_of_before_is_refused() -> None:
    with pytest.raises(ValueError, match="StickyAction is inside"):
        fs.constrain(gym.wrappers.StickyAction(Listening(UNIT), 0.5), everything)


@pytest.mark.parametrize("mode", ["learn", "evaluate", "project", "copies"])
def test_what_is_executed_lies_in_an_action_space_of_float64(mode: str) -> None:
    """A tenth is no number of float32, whose nearest one is outside."""
    env, other = (Listening(box([-0.1, -0.1], [0.1, 0.1], np.float64)) for _ in range(2))
    settings = {"seed": 0, "warmup": 4, "hidden_layers": (4,), "batch_size": 4, "noise": 2.0}
    if mode == "project":
        constrained = fs.constrain(env, everything, on_infeasible="project")
        constrained.reset(seed=0)
        info = constrained.step(np.array([1.0, -1.0]))[4]
        assert env.action_space.contains(info["executed_action"])
    elif mode == "copies":
        vector = gym.vector.SyncVectorEnv([lambda: env, lambda: other])
        plant = plant_of(fs.constrain(vector, everything))
        plant.reset([0, 1])
        plant.step(np.full((2, 2), 0.1, np.float32), 1)
    else:
        agent = fs.DDPGProjection(fs.constrain(env, everything), **settings)
        if mode == "learn":
            agent.learn(40)
        else:
            agent.evaluate(2, env=lambda: fs.constrain(other, everything))
            env = other
    assert env.heard
    assert all(env.action_space.contains(action) for action in env.heard)
    if mode != "evaluate":
        assert any((np.abs(action) == 0.1).any() for action in env.heard)


def test_an_episode_without_end_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("feasible.run.evaluate.LONGEST", 50)

    def endless() -> gym.Env:
        return Listening(UNIT, length=None)

    agent = fs.DDPGProjection(fs.constrain(endless(), everything), seed=0, hidden_layers=(4,))
    with pytest.raises(ValueError, match="has not ended after 50 steps; give the environment a limit"):
        agent.evaluate(1, env=endless)
    assert agent.evaluate(1, env=lambda: gym.wrappers.TimeLimit(endless(), 60)).returns == (0.0,)


def test_an_agent_of_an_environment_that_is_constrained_twice_is_refused() -> None:
    twice = fs.constrain(fs.constrain(Listening(UNIT), everything), everything)
    with pytest.raises(ValueError, match=r"constrained twice.*a & b"):
        fs.DDPGProjection(twice, seed=0)
