"""Populations from run folders: equal to lone runs, stopped and resumed as a whole; failures stop no other."""

import gc
import json
import signal
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest

from feasible.algorithms.description import Plain
from feasible.run import evaluate
from feasible.run.disk import checkpoint
from feasible.run.drive.parts import Plants
from feasible.run.drive.plant import Steps, VectorPlant
from feasible.run.drive.population import Population
from feasible.run.folder import RunFolder, read_metrics
from feasible.run.launch import new_run
from feasible.run.policy import load_policy
from feasible.run.record import Record
from feasible.run.sweep.accelerator import train_together
from feasible.run.train import train
from feasible.run.watch import Watcher
from tests.run.population.toy_runs import RUNS, At, Recorder, toy_configs, toy_runs
from tests.run.runs import Killed, assert_equal_runs, files
from tests.run.test_train import At as AloneAt
from tests.run.toys import toy_plant

pytestmark = pytest.mark.xdist_group("population")


def test_every_run_is_the_run_that_it_would_be_alone(uninterrupted: list[RunFolder], tmp_path: Path) -> None:
    """One that shares its group with another method, and one with a group of its own."""
    for folder, alone in zip(uninterrupted[1:], toy_runs(tmp_path, RUNS[1:]), strict=True):
        assert train(alone).finished
        assert_as_alone(folder, alone)


@pytest.mark.slow  # three programs of updates from rollouts, each compiled alone and together
def test_methods_that_learn_from_rollouts_are_in_a_population_what_they_are_alone(tmp_path: Path) -> None:
    changes: dict[str, Plain] = {"horizon": 32, "minibatch": 16}
    runs = [(f"{base}-projection", seed, changes) for seed, base in enumerate(("ppo", "focops", "trpo"))]
    together = toy_runs(tmp_path / "together", runs)
    assert train_together(together) == []
    for folder, alone in zip(together, toy_runs(tmp_path / "alone", runs), strict=True):
        assert train(alone).finished
        assert_as_alone(folder, alone)


def assert_as_alone(folder: RunFolder, alone: RunFolder) -> None:
    """The same folder, up to rounding."""
    spec = toy_plant().spec
    expected, found = read_metrics(alone.metrics), read_metrics(folder.metrics)
    assert [list(line) for line in found] == [list(line) for line in expected]
    for line, known in zip(found, expected, strict=True):
        for name in line:
            if not name.startswith("time/"):
                np.testing.assert_allclose(line[name], known[name], rtol=2e-3, atol=1e-5, err_msg=name)
    one, other = (np.concatenate([np.ravel(leaf) for leaf in _leaves(run, spec)]) for run in (folder, alone))
    np.testing.assert_allclose(one, other, atol=1e-4)
    assert sorted(path.name for path in folder.path.rglob("*")) == sorted(path.name for path in alone.path.rglob("*"))
    assert folder.config() == alone.config()


def _leaves(folder: RunFolder, spec: object) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in jax.tree.leaves(load_policy(folder.policy, spec)[1])]  # pyright: ignore[reportArgumentType]


def test_killed_and_interrupted_it_ends_the_same(
    uninterrupted: list[RunFolder], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders, evaluate = toy_runs(tmp_path), Record.evaluate
    # At once, not beside training: a checkpoint that is due would wait for the evaluation, however long that takes.
    monkeypatch.setattr(Record, "evaluate", lambda *given, beside: evaluate(*given, beside=False))
    for step in (20, 76):
        with pytest.raises(Killed):
            train_together(folders, At(step, Killed))
        with folders[2].metrics.open("a") as file:
            file.write('{"step": 77, "eval/ret')  # a line that the kill tore
    assert json.loads((folders[0].checkpoint / "population.json").read_text())["step"] == 75
    with pytest.raises(KeyboardInterrupt):
        train_together(folders, At(80, signal.SIGINT))
    # A signal is heard while the device is at work, perhaps some steps later.
    assert 80 <= json.loads((folders[1].checkpoint / "population.json").read_text())["step"] < 100
    assert train_together(folders[::-1]) == []  # in whatever order they are named
    for folder, other in zip(folders, uninterrupted, strict=True):
        assert_equal_runs(folder, other)
    assert not list(tmp_path.rglob("population*"))


def test_killed_while_it_ends_it_ends_the_same(
    uninterrupted: list[RunFolder], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders, save, saved = toy_runs(tmp_path), checkpoint.save_finished, []

    def save_one(*arguments: object) -> None:
        if len(saved) == 1:
            raise Killed
        saved.append(save(*arguments))  # pyright: ignore[reportArgumentType]

    with monkeypatch.context() as patch:
        patch.setattr("feasible.run.disk.checkpoint.save_finished", save_one)
        with pytest.raises(Killed):
            train_together(folders)
    assert train_together(folders) == []
    for folder, other in zip(folders, uninterrupted, strict=True):
        assert_equal_runs(folder, other)


def test_it_trains_on_while_an_evaluation_is_played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That of step 100 does not begin before step 160 is made; lines and checkpoints from 100 on wait for it."""
    undisturbed, folders = (
        [
            new_run(tmp_path / name, replace(config, log_every=25, eval_every=100))
            for config in toy_configs(steps=200, checkpoint_every=50)
        ]
        for name in ("undisturbed", "held")
    )
    assert train_together(undisturbed) == []
    further, played, saved = threading.Event(), threading.Event(), []
    play, submit, save = evaluate.play, ThreadPoolExecutor.submit, checkpoint.save

    def late(*arguments: object) -> object:
        assert further.wait(timeout=300)  # a training that waits for the evaluation would wait for ever
        return play(*arguments)  # pyright: ignore[reportArgumentType]

    def submitted(pool: ThreadPoolExecutor, task: Callable[..., object], *arguments: object) -> Future:
        future = submit(pool, task, *arguments)
        if task.__name__ == "play":
            future.add_done_callback(lambda _: played.set())
        return future

    def saving(home: Path, of: list[RunFolder], driver: Population) -> None:
        saved.append((driver.step, [line["step"] for line in read_metrics(of[0].metrics)]))
        save(home, of, driver)

    class LetItPlay(Watcher):
        def advanced(self, step: int) -> None:
            if step == 160:
                further.set()
                assert played.wait(timeout=300)

    monkeypatch.setattr(evaluate, "play", late)
    monkeypatch.setattr(ThreadPoolExecutor, "submit", submitted)
    monkeypatch.setattr(checkpoint, "save", saving)
    assert train_together(folders, LetItPlay()) == []
    assert saved == [(50, [25, 50]), (175, list(range(25, 200, 25)))]
    for folder, other in zip(folders, undisturbed, strict=True):
        assert_equal_runs(folder, other)


def test_a_finished_population_is_not_repeated(uninterrupted: list[RunFolder]) -> None:
    before = [files(folder.path) for folder in uninterrupted]
    assert train_together(uninterrupted) == []
    assert [files(folder.path) for folder in uninterrupted] == before


def test_one_that_diverges_stops_no_other(
    uninterrupted: list[RunFolder], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders, recorder, step = toy_runs(tmp_path), Recorder(), VectorPlant.step
    lost, row = folders[1], 2  # those that are alike come first

    def with_huge_rewards(plant: VectorPlant, actions: np.ndarray, number: int) -> Steps:
        steps = step(plant, actions, number)
        if plant.first == row:  # it is a part of its own
            steps.packets[0, -3] = 1e30  # the reward
        return steps

    with monkeypatch.context() as patch:
        patch.setattr(VectorPlant, "step", with_huge_rewards)
        with pytest.raises(KeyboardInterrupt):
            train_together(folders, At(60, signal.SIGINT))
    failures = train_together(folders, recorder)
    assert [failure.folder.path for failure in failures] == [lost.path]
    assert "training has diverged" in failures[0].reason
    assert recorder.failures == [(lost.config().name, failures[0].reason)]
    assert (lost.path / "errors.log").read_text() == failures[0].reason + "\n"
    for folder, other in zip(folders, uninterrupted, strict=True):
        if folder != lost:
            assert_equal_runs(folder, other)
    assert all(np.isfinite(line.get("eval/return", 0.0)) for line in read_metrics(lost.metrics))


def test_an_environment_that_fails_in_its_thread_ends_all_and_is_not_closed_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step, seen = VectorPlant.step, list[str]()

    def broken(plant: VectorPlant, actions: np.ndarray, number: int) -> Steps:
        seen.append("step")
        if plant.first and number == 5:
            raise OSError("the cable is loose")
        return step(plant, actions, number)

    monkeypatch.setattr(VectorPlant, "step", broken)
    monkeypatch.setattr(Plants, "close", lambda _: seen.append("close"))
    with pytest.raises(OSError, match="the cable is loose"):
        train_together(toy_runs(tmp_path))
    assert seen == ["step"] * (len(seen) - 1) + ["close"]
    assert len(seen) in (10, 11, 12)  # the other part may have begun its sixth step


def test_nothing_of_a_population_is_left(uninterrupted: list[RunFolder]) -> None:
    """Compiled loops keep what they call, where Python's collector cannot look."""
    assert all(folder.policy.exists() for folder in uninterrupted)
    gc.collect()
    assert not [found for found in gc.get_objects() if isinstance(found, Population)]
    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("environment")]


def test_part_of_a_population_and_a_run_of_it_alone_are_refused(tmp_path: Path) -> None:
    folders = toy_runs(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        train_together(folders, At(40, signal.SIGINT))
    with pytest.raises(ValueError, match=r"is trained together with .*seed-[13]"):
        train_together(folders[:1])
    with pytest.raises(ValueError, match="is trained in a population"):
        train(folders[0])
    alone = toy_runs(tmp_path / "alone", RUNS[2:3])[0]
    train(alone, AloneAt(20, signal.SIGINT))
    (failure,) = train_together([alone])
    assert "begun alone" in failure.reason


def test_a_run_that_a_kill_left_without_its_mark_goes_on_with_the_others(
    uninterrupted: list[RunFolder], tmp_path: Path
) -> None:
    folders = toy_runs(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        train_together(folders, At(40, signal.SIGINT))
    (folders[1].checkpoint / "population.json").unlink()
    assert train_together(folders) == []
    for folder, other in zip(folders, uninterrupted, strict=True):
        assert_equal_runs(folder, other)


def test_runs_of_other_lengths_are_refused(tmp_path: Path) -> None:
    folders = toy_runs(tmp_path, RUNS[:1]) + toy_runs(tmp_path, RUNS[1:2], steps=90)
    with pytest.raises(ValueError, match=r"steps is 100 of toy/nfwpo\+v/seed-0 and 90 of toy/nfwpo\+v/seed-1"):
        train_together(folders)


def test_watchers_hear_of_memory_and_every_line(uninterrupted: list[RunFolder], heard: Recorder) -> None:
    (memory,) = heard.said
    assert memory.startswith("3 agents need about 0.00 GB of memory on")
    for folder in uninterrupted:
        name = folder.config().name
        assert [line for of, line in heard.lines if of == name] == read_metrics(folder.metrics)
