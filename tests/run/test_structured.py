"""Observations with a structure, everywhere: learn, predict, evaluate, files, run folders, copies and populations."""

import json
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import jax
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv

import feasible as fs
from feasible.algorithms.description import Plain
from feasible.algorithms.spec import spec_of
from feasible.catalogue.registry import TASKS
from feasible.cli import main
from feasible.run.drive.plant import SinglePlant, VectorPlant, plant_of
from feasible.run.folder import RunFolder, read_metrics
from feasible.run.launch import configure, new_run
from feasible.run.policy import load_policy
from feasible.run.sweep.accelerator import train_together
from feasible.run.train import train
from tests.constraints.structures import REACH, Gears, Goal, in_gear, near
from tests.run.runs import assert_equal_runs

pytestmark = pytest.mark.usefixtures("shared_programs")
SMALL: dict[str, Any] = {"hidden_layers": (8,), "warmup": 0, "batch_size": 8, "replay_size": 50}
GEARS = fs.Task("gears", Gears, in_gear, steps=60, eval_every=30, episodes=2)


@pytest.fixture
def task(monkeypatch: pytest.MonkeyPatch) -> fs.Task:
    monkeypatch.setitem(TASKS, "gears", GEARS)  # pyright: ignore[reportArgumentType]
    return GEARS


def goal() -> Any:
    if "toy/Goal-v0" not in gym.registry:
        gym.register("toy/Goal-v0", entry_point=Goal, max_episode_steps=15)  # pyright: ignore[reportArgumentType]
    return fs.constrain(gym.make("toy/Goal-v0"), near)


def test_an_agent_of_a_goal_learns_predicts_evaluates_and_is_saved(tmp_path: Path) -> None:
    agent = fs.NFWPO(goal(), seed=0, **SMALL).learn(60)
    env = goal()
    obs, _ = env.reset(seed=1)
    action = agent.predict(obs)
    assert action.shape == (2,)
    way = np.linalg.norm(obs["desired_goal"] - obs["achieved_goal"])
    assert np.linalg.norm(action) <= min(0.1 + 0.5 * way, 0.9) + 1e-5
    flat = env.layout.flat(obs)
    np.testing.assert_array_equal(flat, np.concatenate(list(obs.values())).astype(np.float32))
    np.testing.assert_array_equal(agent.predict(flat), action)
    several = {name: np.stack([value, value]) for name, value in obs.items()}
    np.testing.assert_array_equal(agent.predict(several), [action, action])
    np.testing.assert_array_equal(agent.predict([flat, flat]), [action, action])
    with pytest.raises(
        ValueError, match=r"predict: obs has no entry 'desired_goal' \(it has 'observation', 'achieved_goal'\)"
    ):
        agent.predict({name: obs[name] for name in ("observation", "achieved_goal")})
    with pytest.raises(ValueError, match=r"predict: obs is a ndarray, but must be a dict"):
        agent.predict(np.zeros(3))
    with pytest.raises(ValueError, match="predict: the observation has a NaN"):
        agent.predict({**obs, "observation": np.full(4, np.nan)})
    evaluation = agent.evaluate(2)
    assert evaluation.executed_violation <= 1e-5
    agent.save(tmp_path / "goal.feasible")
    np.testing.assert_array_equal(fs.load(tmp_path / "goal.feasible", goal()).predict(obs), action)
    agent.export(tmp_path / "goal.zip")
    with zipfile.ZipFile(tmp_path / "goal.zip") as archive:
        about = json.loads(archive.read("description.json"))
        program = jax.export.deserialize(bytearray(archive.read("policy.stablehlo")))
    np.testing.assert_allclose(program.call(flat[None])["action"][0], action, atol=1e-6)
    assert about["input"]["observations"]["parts"] == {
        "obs['observation']": [0, 3, "numbers"],
        "obs['achieved_goal']": [4, 5, "numbers"],
        "obs['desired_goal']": [6, 7, "numbers"],
    }


@pytest.mark.parametrize("agent_of", [fs.NFWPO, pytest.param(fs.SAC, marks=pytest.mark.slow)])
def test_the_wrapper_executes_all_that_the_driver_lets_pass(agent_of: type[fs.Agent]) -> None:
    """Every action of a policy that explores is judged once more, by the environment."""
    for env in (goal(), fs.constrain(Gears(), in_gear)):
        agent = agent_of(env, seed=0, **SMALL).learn(30)
        obs, _ = env.reset(seed=3)
        for _ in range(15):
            obs, *_ = env.step(agent.predict(obs))


IN_PROCESSES = partial(AsyncVectorEnv, context="forkserver")


@pytest.mark.parametrize(
    ("kind", "mode"),
    [
        (SyncVectorEnv, AutoresetMode.SAME_STEP),
        (SyncVectorEnv, AutoresetMode.NEXT_STEP),
        (IN_PROCESSES, AutoresetMode.NEXT_STEP),
        pytest.param(IN_PROCESSES, AutoresetMode.SAME_STEP, marks=pytest.mark.slow),
    ],
    ids=["sync SAME_STEP", "sync NEXT_STEP", "async NEXT_STEP", "async SAME_STEP"],
)
def test_copies_give_the_packets_of_single_environments(kind: Callable[..., VectorEnv], mode: AutoresetMode) -> None:
    makers = [Gears, Gears]
    copies = kind(makers, autoreset_mode=mode)
    together = plant_of(fs.constrain(copies, in_gear))
    assert isinstance(together, VectorPlant)
    alone = [plant_of(fs.constrain(Gears(), in_gear)) for _ in makers]
    seeds = [3, 8]
    expected = [plant.reset([seed])[0] for plant, seed in zip(alone, seeds, strict=True)]
    np.testing.assert_array_equal(together.reset(seeds), expected)
    for step in range(1, 33):
        actions = np.full((2, 2), 0.01 * step, np.float32)
        steps = together.step(actions, step)
        rows = [plant.step(actions[copy : copy + 1], step) for copy, plant in enumerate(alone)]
        ended = bool(steps.ended[0])
        assert ended == rows[0].ended[0] == (step % 15 == 0)
        for copy, row in enumerate(rows):
            np.testing.assert_array_equal(steps.packets[copy], row.packets[0])
    copies.close()
    assert isinstance(alone[0], SinglePlant)


@pytest.mark.parametrize("method", ["nfwpo", pytest.param("ppo-projection", marks=pytest.mark.slow)])
def test_copies_are_learned_from(method: str) -> None:
    """Statistics are of every transition of every copy."""
    copies = fs.constrain(SyncVectorEnv([Gears] * 2), in_gear)
    rollouts = {"horizon": 20, "minibatch": 4, "epochs": 1, "hidden_layers": (4,)}
    agent = fs.agent(method, copies, normalised=True, **(SMALL if method == "nfwpo" else rollouts)).learn(40)
    assert agent.step == 40
    assert int(agent.policy[1].count) == 40
    assert agent.evaluate(1, env=lambda: fs.constrain(Gears(), in_gear)).executed_violation <= 1e-5
    obs, _ = Gears().reset(seed=0)
    assert np.linalg.norm(agent.predict(obs)) <= REACH[0] + 1e-5


def test_a_number_that_is_not_finite_is_named_by_its_place() -> None:
    """float64 can hold numbers that float32 cannot; training says where one is."""

    class Far(Gears):
        def _obs(self) -> Any:
            return {**super()._obs(), "ways": np.array([[0.0, 0.0], [1e300 if self.time == 3 else 1.0, 0.0]])}

    with pytest.raises(FloatingPointError, match=r"^obs\['ways'\], entry 2, of the observation is inf at step 3: "):
        fs.NFWPO(fs.constrain(Far(), in_gear), **SMALL, actor_interval=100, critic_interval=100).learn(10)


def test_a_run_folder_is_resumed_evaluated_and_exported(
    task: fs.Task, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The run in the folder ends as if it had not been stopped, bit for bit; the folder knows the vector's size."""
    assert task.observation_size == 4 + 3 + 2 + 18
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    fs.NFWPO(task.env(), **SMALL).learn(60, run=whole, eval_every=30, episodes=2, checkpoint_every=20)
    stopping = fs.NFWPO(task.env(), **SMALL)

    def stop(step: int, metrics: object, agent: object) -> bool:
        return step < 30

    stopping.learn(60, run=broken, eval_every=30, episodes=2, checkpoint_every=20, callback=stop)
    assert stopping.step < 60
    fs.resume(broken, task.env())
    assert_equal_runs(RunFolder(broken), RunFolder(whole))
    assert read_metrics(RunFolder(whole).metrics)[-1]["violation/executed_max"] <= 2e-5  # pyright: ignore[reportOperatorIssue]
    main(["evaluate", str(whole), "--episodes", "2"])
    assert "2 episodes without exploration" in " ".join(capsys.readouterr().out.split())
    main(["export", str(whole), "--out", str(tmp_path / "gears.zip")])
    with zipfile.ZipFile(tmp_path / "gears.zip") as archive:
        parts = json.loads(archive.read("description.json"))["input"]["observations"]["parts"]
    assert parts["obs['gear']"] == [4, 6, "one-hot"]


@pytest.mark.slow
def test_in_a_population_runs_are_what_they_are_alone(task: fs.Task, tmp_path: Path) -> None:
    changes: dict[str, Plain] = {"hidden_layers": [4], "warmup": 10, "batch_size": 8, "replay_size": 50}
    settings = [("nfwpo", {}), ("nfwpo", {"normalised": True})]

    def runs(out: Path) -> list[RunFolder]:
        made = [
            configure("gears", algo, seed, checkpoint_every=1_000, changes=changes | other, variant=f"v{seed}")
            for seed, (algo, other) in enumerate(settings)
        ]
        return [new_run(out, config) for config in made]

    together, alone = runs(tmp_path / "together"), runs(tmp_path / "alone")
    assert train_together(together) == []
    spec = spec_of(task.env())
    for one, other in zip(together, alone, strict=True):
        assert train(other).finished
        found, known = (load_policy(run.policy, spec)[1] for run in (one, other))
        for left, right in zip(jax.tree.leaves(found), jax.tree.leaves(known), strict=True):
            np.testing.assert_allclose(left, right, rtol=1e-3, atol=1e-4)
