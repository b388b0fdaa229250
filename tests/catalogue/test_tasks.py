"""Tasks by name: their data against the environments and against the paper's tables."""

from dataclasses import replace

import numpy as np
import pytest
from gymnasium.envs.classic_control import PendulumEnv

import feasible
from feasible.catalogue.registry import PAPERS, TASKS, find_task, register_task
from feasible.catalogue.task import Task
from feasible.cli import listing

PAPER = pytest.mark.parametrize("task", PAPERS.values(), ids=PAPERS.keys())

# Reacher, HalfCheetah, NSFNET, BSS-5 in Table 3 of the paper, and BSS-3 in Table 4.
STEPS = {"reacher": 3 * 10**5, "halfcheetah": 7 * 10**5, "nsfnet": 5 * 10**5, "bss-5": 100000, "bss-3": 10**6}
EVAL_EVERY = {"reacher": 5000, "halfcheetah": 5000, "nsfnet": 10000, "bss-5": 5000, "bss-3": 5000}


def test_names() -> None:
    assert list(PAPERS) == ["bss-3", "bss-5", "nsfnet", "reacher", "halfcheetah", "halfcheetah-box"]
    assert list(TASKS)[: len(PAPERS)] == list(PAPERS)
    assert all(task.name == name for name, task in TASKS.items())


def test_lengths_and_evaluations_are_the_papers() -> None:
    for task in PAPERS.values():
        name = "halfcheetah" if task.name == "halfcheetah-box" else task.name  # the tables have no column of its own
        assert (task.steps, task.eval_every, task.episodes) == (STEPS[name], EVAL_EVERY[name], 10)
        assert list(task.presets)[:2] == ["paper", "fair"]
        assert task.first_preset == "paper"


def test_a_task_can_be_named_once() -> None:
    twin = replace(TASKS["reacher"], name="twin", presets={})
    try:
        assert register_task(twin) is find_task("twin") is register_task(twin)
        assert twin.first_preset == "default"
        with pytest.raises(ValueError, match="name: there is another task 'twin' already"):
            register_task(replace(twin, steps=1))
    finally:
        TASKS.pop("twin", None)


@PAPER
def test_sizes_and_episode_length_are_the_environments(task: Task) -> None:
    env = feasible.make(task.name, on_infeasible="project")
    assert env.spec is not None
    assert env.spec.id == task.make
    obs, _ = env.reset(seed=0)
    assert obs.shape == (task.observation_size,)
    assert env.action_space.shape == (task.action_size,)
    action = np.zeros(task.action_size, dtype=np.float32)
    truncated = [env.step(action)[3] for _ in range(task.episode_length or 0)]
    assert truncated == [False] * (len(truncated) - 1) + [True]
    copies = feasible.make_vec(task.name, 2)
    np.testing.assert_array_equal(copies.reset(seed=0)[0][0], obs)


def test_constraints_in_words_hold_at_the_sets_corners() -> None:
    """What the words say, tried on the linear maximiser of a random direction."""
    directions = np.random.default_rng(0).normal(size=(20, 9))

    def corners(name: str, obs: np.ndarray) -> np.ndarray:
        feasible_set = feasible.make(name).constraint(obs)
        return np.stack([np.asarray(feasible_set.maximise_linear(d[: feasible_set.dim])) for d in directions])

    for name, bikes in (("bss-3", 90), ("bss-5", 150)):
        a = corners(name, np.zeros(TASKS[name].observation_size))
        np.testing.assert_array_equal(a, np.rint(a))
        np.testing.assert_array_equal(a.sum(axis=1), bikes)
        assert a.min() >= 0.0
        assert a.max() == 35.0
    np.testing.assert_allclose((corners("reacher", np.zeros(11)) ** 2).sum(axis=1), 0.05, rtol=1e-5)
    obs = np.random.default_rng(1).normal(size=17) * 10.0
    a = corners("halfcheetah", obs)
    np.testing.assert_allclose(np.abs(a * obs[11:17]).sum(axis=1), 20.0, rtol=1e-5)
    assert np.abs(a).max() <= 1.0 + 1e-6
    np.testing.assert_array_equal(np.abs(corners("halfcheetah-box", obs)), 1.0)


def test_options_reach_the_environment() -> None:
    env = feasible.make("bss-5", stations=4, episode_length=3)
    obs, _ = env.reset(seed=0)
    assert obs.shape == (9,)
    assert [env.step([30] * 4)[3] for _ in range(3)] == [False, False, True]  # pyright: ignore[reportArgumentType]
    assert feasible.make("reacher", version="v5").observation_space.shape == (10,)
    assert feasible.make("bss-3", render_mode="rgb_array").render_mode == "rgb_array"
    with pytest.raises(TypeError, match="unexpected keyword argument 'station'"):
        feasible.make("bss-5", station=4)
    envs = feasible.make_vec("bss-3", 2)
    envs.reset(seed=0)
    with pytest.raises(feasible.InfeasibleActionError, match="of copy 0 "):
        envs.step(np.full((2, 3), 31.0))


@pytest.mark.parametrize(
    ("wrong", "near"),
    [
        ("halfcheeta", "halfcheetah"),
        ("HalfCheetah-Box", "halfcheetah-box"),
        ("bss5", "bss-5"),
        ("nfsnet", "nsfnet"),
        ("reach", "reacher"),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest_known_one(wrong: str, near: str) -> None:
    for attempt in (find_task, feasible.make, lambda name: feasible.make_vec(name, 2)):
        with pytest.raises(ValueError, match=f"There is no task '{wrong}'; did you mean '{near}'?"):
            attempt(wrong)


def test_a_task_says_what_it_is() -> None:
    task = Task("boat", "Pendulum-v1", lambda obs: feasible.sets.Ball([0.0], 1.0), title="a boat", words="|a| <= 1")
    assert repr(task) == "Task 'boat': a boat; |a| <= 1; 100,000 steps"
    assert repr(Task("boat", "Pendulum-v1", steps=5)) == "Task 'boat': 5 steps"


def test_a_task_of_ones_own_is_listed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes are read off its environment; what it does not say is left out, and brackets are no markup."""
    task = Task(
        "own", lambda **options: PendulumEnv(**options), lambda obs: feasible.sets.Ball([0.0], 1.0), words="a in [0, 1]"
    )
    monkeypatch.setitem(TASKS, "own", task)
    for columns in ("50", "160"):
        monkeypatch.setenv("COLUMNS", columns)
        listing.tasks()
        assert "a in [0, 1]" in capsys.readouterr().out
