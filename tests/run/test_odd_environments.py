"""Environments that are odd and legal: one array for all observations, narrow action spaces, sets that shrink."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from jaxtyping import Array

import feasible as fs
from feasible.errors import InvalidStepError
from feasible.run.folder import RunFolder

LENGTH = 5
SMALL: dict[str, Any] = {"hidden_layers": (4,), "warmup": 4, "batch_size": 4, "replay_size": 50, "seed": 0}


class Counter(gym.Env):
    """Counts its steps in one array, and insists on actions of its space."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (1,), np.float32)
    action_space = gym.spaces.Box(np.float32(-0.04), np.float32(0.06), (1,), np.float32)

    def __init__(self) -> None:
        self.count = np.zeros(1, np.float32)
        self.episode_length = None  # a name that is the environment's own business

    def reset(self, *, seed: int | None = None, options: dict[str, object] | None = None):
        super().reset(seed=seed)
        self.count[:] = 0
        return self.count, {}

    def step(self, action: np.ndarray):
        assert self.action_space.contains(action)
        self.count += 1
        return self.count, 0.0, False, False, {}


def limited() -> gym.Env:
    return gym.wrappers.TimeLimit(Counter(), LENGTH)


def whole_box(obs: Array) -> fs.sets.Ball:
    return fs.sets.Ball(jnp.full(1, 0.01) + 0 * obs[:1], 0.05 + 0 * obs[0])


COUNTER = fs.Task("counter", lambda **options: limited(), whole_box)


@pytest.mark.parametrize("kind", ["single", "copies of a task", "a vector that never resets"])
def test_the_last_observation_of_an_episode_is_what_its_last_step_led_to(kind: str) -> None:
    if kind == "single":
        env = fs.constrain(limited(), whole_box)
    elif kind == "copies of a task":
        env = COUNTER.copies(2)
    else:
        env = fs.constrain(SyncVectorEnv([limited] * 2, autoreset_mode=AutoresetMode.DISABLED), whole_box)
    agent = fs.NFWPO(env, **SMALL).learn(24)
    assert agent._driver is not None
    rows = np.array(agent._driver.carry.algorithm.replay.rows)[:24]
    np.testing.assert_array_equal(rows[:, 3], rows[:, 0] + 1)  # obs and next_obs of every transition
    assert rows[:, 3].max() == LENGTH


def test_a_vector_whose_reset_overwrites_them_is_refused() -> None:
    env = fs.constrain(SyncVectorEnv([limited] * 2, autoreset_mode=AutoresetMode.SAME_STEP), whole_box)
    with pytest.raises(InvalidStepError, match="of copy 0 gives the same array for every observation, so the last of"):
        fs.NFWPO(env, **SMALL).learn(24)


@pytest.mark.parametrize("method", ["td3-alpha", "ddpg-projection"])
def test_every_executed_action_is_in_the_action_space_to_the_last_bit(method: str) -> None:
    """The set ends where the space does, at 0.06, and its edge rounds to the next number above."""
    agent = fs.agent(method, fs.constrain(limited(), whole_box), noise=0.5, **SMALL).learn(60)
    actions = agent.predict(np.arange(1000.0)[:, None])
    assert all(Counter.action_space.contains(action) for action in actions)


def test_the_time_limit_is_that_of_the_wrapper_whatever_an_environment_calls_a_length() -> None:
    assert fs.NFWPO(fs.constrain(limited(), whole_box), **SMALL)._spec.episode_length == LENGTH
    shorter = gym.wrappers.TimeLimit(gym.make("Pendulum-v1"), 7)
    assert fs.NFWPO(fs.constrain(shorter, lambda obs: fs.sets.Ball(jnp.zeros(1), 1.0)))._spec.episode_length == 7


@pytest.mark.parametrize("method", ["td3-radial", "td3-alpha", "sac-truncated"])
def test_a_set_that_shrinks_to_a_point_is_refused_in_the_warm_up(method: str) -> None:
    """Later its state would be a NaN in a batch, and the sentence about learning rates."""

    def shrinking(obs: Array) -> fs.sets.Ball:
        return fs.sets.Ball(jnp.zeros(1), jnp.maximum(0.0, 0.03 - 0.01 * obs[0]))

    agent = fs.agent(method, fs.constrain(limited(), shrinking), **{**SMALL, "warmup": 50})
    with pytest.raises(ValueError, match=r"after step 3: map='\w+' goes out from the centre of the feasible set, and"):
        agent.learn(60)


def test_a_run_that_was_resumed_keeps_what_it_is(tmp_path: Path) -> None:
    """Its variant tells it from runs with other settings, however often it goes on."""
    folder = RunFolder(tmp_path / "run")
    begun = fs.NFWPO(COUNTER.env(), normalised="shrunk", **SMALL)
    begun.learn(40, run=folder.path, callback=lambda step, line, agent: step < 20, eval_every=10, checkpoint_every=10)
    named = folder.config(named=False)
    assert "normalised=shrunk" in named.variant
    resumed = fs.resume(folder.path, COUNTER.env(), callback=lambda step, line, agent: step < 30)
    resumed.learn(20, run=folder.path, eval_every=5, episodes=1)
    after = folder.config(named=False)
    assert (after.steps, after.eval_every, after.episodes) == (resumed.step, 5, 1)
    kept = ("task", "algo", "variant", "preset", "seed", "algorithm")
    assert [getattr(after, name) for name in kept] == [getattr(named, name) for name in kept]


@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        (lambda: fs.Task("bare", "Pendulum-v1").env(), "Task: 'bare' has no constraint, and its environment brings n"),
        (lambda: fs.Task("bare", "Pendulum-v1").copies(2), "Task: 'bare' has no constraint, and its environment brin"),
        (lambda: COUNTER.copies(0), "Task: num_envs must be a whole number of at least 1, not 0"),
        (lambda: COUNTER.copies(2.5), r"Task: num_envs must be a whole number of at least 1, not 2\.5"),  # pyright: ignore
        (lambda: fs.constrain(None, whole_box), "constrain: env must be a Gymnasium environment, or a vector of"),  # pyright: ignore
        (
            lambda: fs.NFWPO(COUNTER.env(), **SMALL).evaluate(1, env=lambda: None),  # pyright: ignore
            "evaluate: env must be a Gymnasium environment, or a function that makes one, not None",
        ),
    ],
)
def test_mistakes_are_one_sentence(mistake: Callable[[], object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        mistake()


def test_numbers_of_numpy_count() -> None:
    assert fs.Task("counter", "Pendulum-v1", whole_box, steps=np.int64(100)).steps == 100  # pyright: ignore
    assert COUNTER.copies(np.int64(2)).num_envs == 2  # pyright: ignore


def test_what_cannot_be_written_is_told_with_the_fix(tmp_path: Path) -> None:
    agent = fs.NFWPO(COUNTER.env(), **SMALL)
    with pytest.raises(OSError, match="name a file, not a folder"):
        agent.save(tmp_path)
    with pytest.raises(OSError, match="make its folder first"):
        agent.save(tmp_path / "nowhere" / "policy.feasible")
