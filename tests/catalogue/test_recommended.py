"""`--algo recommended` is a method with a preset and changes, and gives way to what is said beside it."""

from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest

from feasible.algorithms.description import build_algorithm, describe
from feasible.catalogue.registry import PAPERS, TASKS
from feasible.cli import main
from feasible.report.published import read_published
from feasible.report.runs import Run
from feasible.run.folder import RunFolder
from feasible.run.launch import configure, grid
from feasible.run.sweep.sweep import prepare
from feasible.run.train import Outcome
from tests.run.toys import toy_task


@pytest.mark.parametrize("task", PAPERS)
def test_every_task_has_a_recommended_run(task: str) -> None:
    config = configure(task, "recommended", 3)
    assert config.preset == "fair"
    assert config.algorithm == describe(build_algorithm(config.algorithm))
    assert config.algo in TASKS[task].preset("fair")


def test_what_is_recommended_is_a_run_like_others() -> None:
    by_the_gap = {"frank_wolfe_by": "gap", "frank_wolfe_step": 0.05}
    config = configure("halfcheetah", "recommended", 3)
    assert config == configure("halfcheetah", "nfwpo", 3, preset="fair", changes=by_the_gap)


@pytest.fixture(scope="module")
def published() -> tuple[Run, ...]:
    return read_published(Path(__file__).parents[2] / "results").all


@pytest.mark.parametrize("task", [task for task in PAPERS if task != "halfcheetah-box"])
def test_what_is_recommended_has_published_results(task: str, published: tuple[Run, ...]) -> None:
    config = configure(task, "recommended", 0)
    variants = {config.variant, ""} if task == "bss-3" else {config.variant}  # its presets are the same
    assert any((run.task, run.algo) == (task, config.algo) and run.variant in variants for run in published)


def test_what_is_said_beside_it_counts() -> None:
    said = {"frank_wolfe_step": 0.02, "noise": 0.2}
    config = configure("halfcheetah", "recommended", 0, preset="paper", changes=said)
    assert config == configure("halfcheetah", "nfwpo", 0, changes={"frank_wolfe_by": "gap", **said})


def test_others_are_compared_with_it_in_the_same_settings() -> None:
    both = grid(["reacher"], ["recommended", "ddpg-projection"], [0])
    algos = [(config.algo, config.preset) for config in both]
    assert algos == [("nfwpo", "fair"), ("ddpg-projection", "fair")]
    both = grid(["reacher"], ["recommended", "ddpg-projection"], [0], preset="paper")
    assert [config.preset for config in both] == ["paper", "paper"]


def test_the_same_run_by_two_names_is_refused(tmp_path: Path) -> None:
    both = grid(["bss-3"], ["recommended", "fwpo"], [0])
    with pytest.raises(ValueError, match=r"Two of the runs are bss-3/fwpo\+fair/seed-0: name each only once"):
        prepare(tmp_path, both)
    assert not any(tmp_path.iterdir())


def test_a_name_like_it_is_understood() -> None:
    with pytest.raises(ValueError, match="There is no algorithm 'recommendd'; did you mean 'recommended'"):
        configure("reacher", "recommendd", 0)


def test_the_command_line_trains_it(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "reacher" / "nfwpo+fair" / "seed-0")
    with mock.patch("feasible.run.train.train", return_value=Outcome(20, finished=True)) as trained:
        main(["train", "--task", "reacher", "--algo", "recommended", "--steps", "20", "--out", str(tmp_path)])
    ((given, _), _) = trained.call_args
    assert given.path == folder.path
    assert folder.config() == configure("reacher", "recommended", 0, steps=20)


def test_on_other_tasks_it_is_frank_wolfe_by_the_gap_in_their_own_presets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TASKS, "toy", toy_task())  # pyright: ignore[reportArgumentType]
    monkeypatch.setitem(TASKS, "own", replace(toy_task("own"), presets={}))  # pyright: ignore[reportArgumentType]
    configs = grid(["reacher", "toy", "own"], ["recommended"], [0])
    assert [(config.algo, config.preset) for config in configs] == [
        ("nfwpo", "fair"),
        ("nfwpo", "fair"),
        ("nfwpo", "default"),
    ]
    assert [config.algorithm["rule"]["by"] for config in configs[1:]] == ["gap", "gap"]  # pyright: ignore
