"""Agents that learn from rollouts, on one and on several copies: killed, restored, repeated, and stopped by faults."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from feasible.algorithms.on_policy import OnPolicy
from feasible.algorithms.ppo import PPO
from feasible.catalogue.registry import TASKS
from feasible.catalogue.task import Task
from feasible.constraints import ConstrainedVectorEnv
from feasible.errors import InvalidStepError
from feasible.run.drive.faults import NotFiniteError
from feasible.run.drive.lone import Lone
from feasible.run.drive.plant import VectorPlant
from feasible.run.drive.programs import Programs
from feasible.run.folder import RunFolder, read_metrics
from feasible.run.launch import configure, new_run
from feasible.run.train import Outcome, train
from feasible.run.watch import Watcher
from tests.run.runs import Killed, assert_equal_runs, lines_without_time
from tests.run.test_train import At
from tests.run.toys import UNREADABLE, Drift, Fault, SavedDrift, Unreadable, Writing, force, toy_plant, toy_task

SMALL = {"horizon": 40, "minibatch": 8, "epochs": 2, "hidden_layers": [8]}
TOY = PPO(horizon=40, minibatch=8, epochs=2, hidden_layers=(8,), copies=2)


pytestmark = pytest.mark.usefixtures("shared_programs")


@pytest.fixture(autouse=True)
def _toy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TASKS, "toy", toy_task())  # pyright: ignore[reportArgumentType]


def run(out: Path, algo: str, copies: int, seed: int = 0) -> RunFolder:
    changes = {**SMALL, "copies": copies}
    config = configure("toy", algo, seed, changes=changes, variant="small", checkpoint_every=70)
    return new_run(out, config)


@pytest.mark.parametrize(
    ("algo", "copies"),
    [
        ("ppo-projection", 2),
        pytest.param("ppo-projection", 1, marks=pytest.mark.slow),
        *(pytest.param(algo, 2, marks=pytest.mark.slow) for algo in ("trpo-projection", "focops-projection")),
    ],
)
def test_killed_and_resumed_it_ends_as_an_undisturbed_run(algo: str, copies: int, tmp_path: Path) -> None:
    whole, killed = run(tmp_path / "whole", algo, copies), run(tmp_path / "killed", algo, copies)
    assert train(whole) == Outcome(300, finished=True)
    for step in (78, 150, 298):
        with pytest.raises(Killed):
            train(killed, At(step, Killed))
    assert train(killed).finished
    assert_equal_runs(killed, whole)
    lines = read_metrics(whole.metrics)
    assert lines[-1]["violation/executed_max"] <= 1e-5  # pyright: ignore[reportOperatorIssue]
    assert lines[-1]["violation/proposed_count"] > 0  # pyright: ignore[reportOperatorIssue]
    other = run(tmp_path / "other", algo, copies, seed=1)
    train(other)
    assert lines_without_time(other) != lines_without_time(whole)


def copies(faults: list[Fault], at: int = 0, kind: type[Drift] = SavedDrift) -> VectorPlant:
    makers = [partial(kind, fault, at) for fault in faults]
    env = SyncVectorEnv(makers, autoreset_mode=AutoresetMode.SAME_STEP)
    return VectorPlant(ConstrainedVectorEnv(env, force))


def driver(plant: VectorPlant) -> Lone:
    return Lone(TOY, plant, seed=3)


def test_every_copy_s_steps_reach_the_rollout() -> None:
    """Against plain stepping of the single environments with the actions that were executed."""
    learner = driver(copies(["", ""]))
    learner.start()
    singles = [SavedDrift(), SavedDrift()]
    for k, env in enumerate(singles):
        env.reset(seed=3 + k)
    rewards, ended = [], []
    for step in range(2, 40, 2):
        actions = np.array(learner._actions)
        learner.advance(step)
        for env, action in zip(singles, actions, strict=True):
            _, reward, terminated, truncated, _ = env.step(action)
            rewards.append(reward)
            ended.append(terminated or truncated)
            if ended[-1]:
                env.reset()
    rows = np.asarray(learner.carry.algorithm.rollout.rows)[:38]
    np.testing.assert_allclose(rows[:, -3], rewards, rtol=1e-6)
    np.testing.assert_array_equal(rows[:, -1] > 0, ended)
    assert learner.step == 38


def test_a_fault_names_its_copy() -> None:
    for fault, said in (("reward", "The reward of copy 1 is nan at step"), ("observation", "of copy 1 is nan at step")):
        learner = driver(copies(["", fault], at=7))  # pyright: ignore[reportArgumentType]
        learner.start()
        with pytest.raises(NotFiniteError, match=said):
            learner.advance(100)
        with pytest.raises(RuntimeError, match="cannot go on"):
            learner.advance(100)


def test_an_empty_set_names_its_copy() -> None:
    learner = driver(copies(["", "empty"], at=7))
    learner.start()
    with pytest.raises(Exception, match=r"of copy 1 after step 14"):
        learner.advance(100)


def test_what_does_not_come_out_even_is_refused() -> None:
    with pytest.raises(ValueError, match="steps 2 copies of its environment at once, but it was given 3"):
        Lone(TOY, copies(["", "", ""]), seed=0)
    with pytest.raises(ValueError, match="steps must be a multiple of the 8 copies that are stepped at once, not 300"):
        configure("toy", "ppo-projection", 0, changes={**SMALL, "copies": 8})


def test_lines_and_checkpoints_come_after_whole_rounds() -> None:
    for algo, copies, log_every, checkpoint_every in (("nfwpo", 1, 1_000, 10_000), ("nfwpo", 12, 996, 9_996)):
        config = configure("toy", algo, 0, steps=12_000, eval_every=1_200, changes={"copies": copies})
        assert (config.log_every, config.checkpoint_every) == (log_every, checkpoint_every)


def test_rollouts_of_one_copy_and_of_the_plain_driver_have_the_same_fields() -> None:
    one: OnPolicy = replace(TOY, copies=1)
    assert Programs(one, toy_plant().spec).shape.obs.shape == (3,)
    assert Programs(TOY, toy_plant().spec).shape.obs.shape == (2, 3)


def test_actions_can_be_written_to_and_a_step_that_cannot_be_read_is_named() -> None:
    plain, written = (driver(copies(["", ""], kind=kind)) for kind in (SavedDrift, Writing))
    for learner in (plain, written):
        learner.start()
        learner.advance(20)
    np.testing.assert_array_equal(plain.carry.algorithm.rollout.rows, written.carry.algorithm.rollout.rows)
    change, _ = UNREADABLE["longer"]
    env = SyncVectorEnv([SavedDrift, lambda: Unreadable(change)], autoreset_mode=AutoresetMode.SAME_STEP)
    learner = driver(VectorPlant(ConstrainedVectorEnv(env, force)))
    learner.start()
    with pytest.raises(InvalidStepError, match=r"The observation of copy 1 has shape \(4,\) at step 4"):
        learner.advance(20)


def test_a_run_that_cannot_be_repeated_after_a_stop_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = Task("own", Drift, force, steps=40, eval_every=40, episodes=1)
    monkeypatch.setitem(TASKS, "own", own)  # pyright: ignore[reportArgumentType]

    class Heard(Watcher):
        said = ""

        def warned(self, says: str) -> None:
            self.said = says

    for copies, said in ((1, ""), (2, "The 2 copies of the environment cannot be saved (it has no get_state")):
        heard = Heard()
        changes = {**SMALL, "horizon": 80, "copies": copies}  # longer than the run: no update to compile
        config = configure("own", "ppo-projection", 0, changes=changes, variant=f"{copies}")
        assert train(new_run(tmp_path, config), heard).finished
        assert heard.said.startswith(said)
        assert bool(heard.said) == bool(said)
