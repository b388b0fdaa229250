"""`--algo recommended` is a method with a preset and changes, and gives way to what is said beside it."""

from pathlib import Path
from unittest import mock

import gymnasium as gym
import numpy as np
import pytest

import feasible
from documentation.plan import TASKS as BENCHMARK
from feasible.algorithms.description import Plain, build_algorithm, describe
from feasible.catalogue.registry import TASKS
from feasible.cli import main
from feasible.report.published import read_published
from feasible.report.runs import Run
from feasible.run.folder import RunFolder
from feasible.run.launch import configure, grid
from feasible.run.sweep.sweep import prepare
from feasible.run.train import Outcome
from tests.run.toys import toy_task

THE_ONE = {"averaged": True, "normalised": True, "warmup": 10_000}


@pytest.mark.parametrize("task", TASKS)
def test_every_task_has_a_recommended_run(task: str) -> None:
    config = configure(task, "recommended", 3)
    assert config.algorithm == describe(build_algorithm(config.algorithm))
    others = {"bss-3": ("fwpo", "fair"), "nsfnet": ("nfwpo", "fair")}
    assert (config.algo, config.preset) == others.get(task, ("td3-radial", "default"))


def test_what_is_recommended_is_a_run_like_others() -> None:
    config = configure("halfcheetah", "recommended", 3)
    assert config == configure("halfcheetah", "td3-radial", 3, preset="default", changes=THE_ONE)


@pytest.fixture(scope="module")
def published() -> tuple[Run, ...]:
    return read_published(Path(__file__).parents[2] / "results").all


COMPARED = ("bss-3", *(task for task in BENCHMARK if task != "ant-ball"))


@pytest.mark.parametrize("task", COMPARED)
def test_what_is_recommended_has_published_results(task: str, published: tuple[Run, ...]) -> None:
    config = configure(task, "recommended", 0)
    own = [run for run in published if (run.task, run.algo) == (task, config.algo) and run.reached >= config.steps // 5]
    # What a run does not say of itself was added since, and is the default.
    known = [describe(build_algorithm(run.described["algorithm"])) for run in own]  # pyright: ignore[reportArgumentType]
    assert in_action_units(task, config.algorithm) in known


def in_action_units(task: str, algorithm: Plain) -> Plain:
    """What was trained: in a box of -1 to 1 critics see the same in its units, as a test of DDPG says."""
    env = feasible.make(task)
    unit = gym.spaces.Box(-1.0, 1.0, env.action_space.shape, np.float32)
    env.close()
    assert isinstance(algorithm, dict)
    return {**algorithm, "critic_units": "action"} if env.action_space == unit else algorithm


def test_what_is_said_beside_it_counts() -> None:
    said = {"warmup": 2_000, "noise": 0.2}
    config = configure("halfcheetah", "recommended", 0, preset="field", changes=said)
    assert config == configure("halfcheetah", "td3-radial", 0, preset="field", changes={**THE_ONE, **said})


def test_others_are_compared_with_it_in_the_same_settings() -> None:
    both = grid(["nsfnet", "reacher"], ["recommended", "ddpg-projection"], [0])
    algos = [(config.algo, config.preset) for config in both]
    fair, default = ("nfwpo", "ddpg-projection"), ("td3-radial", "ddpg-projection")
    assert algos == [*((algo, "fair") for algo in fair), *((algo, "default") for algo in default)]
    both = grid(["reacher"], ["recommended", "td3-projection"], [0], preset="field")
    assert [config.preset for config in both] == ["field", "field"]


def test_a_preset_without_it_is_refused() -> None:
    with pytest.raises(ValueError, match="recommended on the task 'reacher' is td3-radial, which the preset 'fair'"):
        configure("reacher", "recommended", 0, preset="fair")


def test_an_agent_has_that_name_too() -> None:
    env = feasible.make("reacher")
    agent = feasible.agent("recommended", env, batch_size=32)
    assert agent.algorithm == feasible.agent("td3-radial", env, batch_size=32, **THE_ONE).algorithm  # pyright: ignore


def test_the_same_run_by_two_names_is_refused(tmp_path: Path) -> None:
    both = grid(["bss-3"], ["recommended", "fwpo"], [0])
    with pytest.raises(ValueError, match=r"Two of the runs are bss-3/fwpo\+fair/seed-0: name each only once"):
        prepare(tmp_path, both)
    assert not any(tmp_path.iterdir())


def test_a_name_like_it_is_understood() -> None:
    with pytest.raises(ValueError, match="There is no algorithm 'recommendd'; did you mean 'recommended'"):
        configure("reacher", "recommendd", 0)


def test_the_command_line_trains_it(tmp_path: Path) -> None:
    config = configure("reacher", "recommended", 0, steps=20)
    folder = RunFolder(tmp_path / config.name)
    with mock.patch("feasible.run.train.train", return_value=Outcome(20, finished=True)) as trained:
        main(["train", "--task", "reacher", "--algo", "recommended", "--steps", "20", "--out", str(tmp_path)])
    ((given, _), _) = trained.call_args
    assert given.path == folder.path
    assert folder.config() == config


def test_on_other_tasks_it_is_the_one_method_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TASKS, "toy", toy_task())  # pyright: ignore[reportArgumentType]
    (config,) = grid(["toy"], ["recommended"], [0])
    assert (config.algo, config.preset) == ("td3-radial", "default")
    assert config.algorithm == configure("toy", "td3-radial", 0, preset="default", changes=THE_ONE).algorithm
