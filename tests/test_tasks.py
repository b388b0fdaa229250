"""Tasks by name: their data against the environments and against the paper's tables."""

from dataclasses import replace

import numpy as np
import pytest

import feasible
from feasible.tasks import TASKS, Task, find_task

EVERY = pytest.mark.parametrize("task", TASKS.values(), ids=TASKS.keys())

# Table 3 of the paper, row by row: Reacher, HalfCheetah, NSFNET, BSS-5.
TABLE_3 = {
    "frank_wolfe_step": (0.05, 0.01, 0.05, 0.05),
    "actor_learning_rate": (0.0001, 0.0001, 0.0001, 0.0001),
    "critic_learning_rate": (0.001, 0.001, 0.001, 0.001),
    "discount": (0.99, 0.99, 0.99, 0.99),
    "target_ratio": (0.001, 0.001, 0.001, 0.001),
    "replay_size": (10**4, 10**6, 5 * 10**4, 10**6),
    "evaluation_interval": (5000, 5000, 10000, 5000),
    "training_steps": (3 * 10**5, 7 * 10**5, 5 * 10**5, 100000),
    "warmup_steps": (1000, 10000, 10000, 10000),
    "noise": (0.1, 0.1, 3, 5),
    "shaping_weight": (1 / 7, 3, 1 / 4, 4),
}
BATCH_SIZES = {"ddpg-shaping": 64, "ddpg-projection": 64, "ddpg-optlayer": 16, "nfwpo": 16}
# Table 4: BSS-3.
TABLE_4 = {
    "hidden_layers": (30,),
    "frank_wolfe_step": 0.05,
    "actor_learning_rate": 0.001,
    "critic_learning_rate": 0.002,
    "discount": 0.9,
    "target_ratio": 0.01,
    "target_table_interval": 100,
    "replay_size": 10**4,
    "evaluation_interval": 5000,
    "training_steps": 10**6,
    "warmup_steps": 10000,
    "epsilon": 0.1,
    "noise": None,
    "shaping_weight": 1,
    "batch_size": {"fwpo": 64, "tabular-projection": 64, "tabular-shaping": 64},
}


def test_names() -> None:
    assert list(TASKS) == ["bss-3", "bss-5", "nsfnet", "reacher", "halfcheetah", "halfcheetah-box"]
    assert all(task.name == name for name, task in TASKS.items())


def test_settings_are_those_of_table_3() -> None:
    for column, name in enumerate(("reacher", "halfcheetah", "nsfnet", "bss-5")):
        paper = TASKS[name].paper
        for field, row in TABLE_3.items():
            assert getattr(paper, field) == row[column], (name, field)
        # SAC is not of Table 3: its source updates 50 times every 50 steps, with batches of 100, on NSFNET of 16.
        # Nor are those that learn from rollouts, minibatches of 64 in their sources, and what is not of the paper.
        others = dict.fromkeys(("projected-gradient", "ppo-projection", "trpo-projection", "focops-projection"), 64)
        assert paper.batch_size == {**BATCH_SIZES, "sac-projection": 16 if name == "nsfnet" else 100, **others}
        assert paper.hidden_layers == (400, 300)
        assert paper.actor_output == ("tanh" if name in ("reacher", "halfcheetah") else "relu")
        # Every step; on NSFNET, and for OptLayer everywhere, every 50.
        intervals = {method: 50 if name == "nsfnet" or method == "ddpg-optlayer" else 1 for method in BATCH_SIZES}
        assert paper.actor_interval == {**intervals, "sac-projection": 50, "projected-gradient": paper.critic_interval}
    boxed = TASKS["halfcheetah-box"].paper
    assert {**boxed.batch_size} == {**TASKS["halfcheetah"].paper.batch_size, "ppo-capg": 64, "trpo-capg": 64}
    assert replace(boxed, batch_size=TASKS["halfcheetah"].paper.batch_size) == TASKS["halfcheetah"].paper


def test_rollouts_are_those_of_the_sources() -> None:
    """Of ChainerRL's PPO and TRPO and of FOCOPS, as the authors of the paper set them."""
    for name, task in TASKS.items():
        paper, small = task.paper, name == "reacher"
        for kind in ("projection", "capg"):
            assert (paper.horizon[f"ppo-{kind}"], paper.horizon[f"trpo-{kind}"]) == (2048, 5000)
            for method in (f"ppo-{kind}", f"trpo-{kind}"):
                assert (paper.rollout_discount[method], paper.trace[method]) == (0.995, 0.97)
        assert (paper.rollout_discount["focops-projection"], paper.trace["focops-projection"]) == (0.99, 0.95)
        assert paper.horizon["focops-projection"] == (64 if small else 1024)
        assert paper.multiplier_rate == (0.01 if small else 0.001)


def test_settings_are_those_of_table_4() -> None:
    for field, value in TABLE_4.items():
        assert getattr(TASKS["bss-3"].paper, field) == value, field


@EVERY
def test_evaluation_is_the_papers(task: Task) -> None:
    assert task.paper.evaluation_episodes == 10
    assert task.paper.scored_evaluations == 10
    assert task.paper.seeds == (0, 1, 2, 3, 4)


@EVERY
def test_sizes_and_episode_length_are_the_environments(task: Task) -> None:
    env = feasible.make(task.name, on_infeasible="project")
    assert env.spec is not None
    assert env.spec.id == task.env_id
    obs, _ = env.reset(seed=0)
    assert obs.shape == (task.observation_size,)
    assert env.action_space.shape == (task.action_size,)
    action = np.zeros(task.action_size, dtype=np.float32)
    truncated = [env.step(action)[3] for _ in range(task.episode_length)]
    assert truncated == [False] * (task.episode_length - 1) + [True]
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
