"""Lanes: the same runs in shares side by side, which meet at one step however they end."""

import json
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest

from feasible.run.folder import RunFolder, read_metrics
from feasible.run.population.groups import dealt, grouped
from feasible.run.population.lanes import Lanes, lane_threads
from feasible.run.population.training import train_population
from feasible.run.vector_plant import VectorPlant
from feasible.tasks import TASKS, make_vec
from tests.run.population.test_training import At, Killed, Run, toy_runs
from tests.run.runs import assert_equal_runs
from tests.run.toys import TOY, toy_task

pytestmark = pytest.mark.usefixtures("toy")

RUNS: tuple[Run, ...] = (
    ("nfwpo", 0, {}),
    ("nfwpo", 1, {}),
    ("ddpg-shaping", 3, {"batch_size": 16}),
    ("ddpg-shaping", 4, {"batch_size": 16}),
)


@pytest.fixture(scope="module")
def toy(shared_programs: None) -> Iterator[None]:
    del shared_programs
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(TASKS, "toy", toy_task())  # pyright: ignore[reportArgumentType]
        yield


def pair() -> Lanes:
    """Two lanes of an agent each, which differ in a number."""
    plants = [VectorPlant(make_vec("toy", 1)) for _ in range(2)]
    return Lanes([[TOY], [replace(TOY, noise=0.2)]], plants, [[0], [1]])


@pytest.fixture(scope="module")
def uninterrupted(toy: None, tmp_path_factory: pytest.TempPathFactory) -> list[RunFolder]:
    folders = toy_runs(tmp_path_factory.mktemp("lanes"), RUNS)
    assert train_population(folders, lanes=2) == []
    return folders


def test_runs_in_lanes_are_the_runs_without(uninterrupted: list[RunFolder], tmp_path: Path) -> None:
    together = toy_runs(tmp_path, RUNS)
    assert train_population(together, lanes=1) == []
    for folder, other in zip(uninterrupted, together, strict=True):
        for line, known in zip(read_metrics(folder.metrics), read_metrics(other.metrics), strict=True):
            assert list(line) == list(known)
            for name in line:
                if not name.startswith("time/"):
                    np.testing.assert_allclose(line[name], known[name], rtol=2e-3, atol=1e-5, err_msg=name)


def test_killed_and_interrupted_they_end_the_same(uninterrupted: list[RunFolder], tmp_path: Path) -> None:
    folders = toy_runs(tmp_path, RUNS)
    with pytest.raises(Killed):
        train_population(folders, At(50, Killed), lanes=2)
    with pytest.raises(KeyboardInterrupt):
        train_population(folders, At(80, signal.SIGINT))  # in the lanes that it was saved in
    steps = [json.loads((folder.checkpoint / "population.json").read_text())["step"] for folder in folders]
    assert len(set(steps)) == 1
    assert 80 <= steps[0] <= 100
    assert train_population(folders) == []
    for folder, other in zip(folders, uninterrupted, strict=True):
        assert_equal_runs(folder, other)


def test_lanes_that_differ_in_numbers_share_what_is_traced_once() -> None:
    population = pair()
    population.start()
    population.advance(40)
    assert [lane.step for lane in population.lanes] == [40, 40]
    of_warmup, its_end, learning = 1, 1, 1
    assert sum(lane.programs.traces for lane in population.lanes) == of_warmup + its_end + learning
    assert [len(lane.programs.made) for lane in population.lanes] == [3, 3]
    noises = [
        np.asarray(leaf) for lane in population.lanes for leaf in jax.tree.leaves(lane.programs.groups[0].numbers)
    ]
    np.testing.assert_array_equal(noises, np.array([[0.1], [0.2]], np.float32))
    population.close()


def test_what_one_lane_raises_ends_all(monkeypatch: pytest.MonkeyPatch) -> None:
    population = pair()
    population.start()
    step = population.lanes[1].plant.step

    def breaks(actions: np.ndarray) -> object:
        if population.lanes[1].step == 20:
            raise RuntimeError("the simulator is gone")
        return step(actions)

    monkeypatch.setattr(population.lanes[1].plant, "step", breaks)
    with pytest.raises(RuntimeError, match="the simulator is gone"):
        population.advance(10**9)
    assert population.lanes[1].step == 20
    population.close()


def test_a_lane_whose_agents_have_all_failed_holds_up_no_other() -> None:
    population = pair()
    population.start()
    population.lanes[0].fail(0, ValueError("gone"))
    heard: list[int] = []
    population.advance(12, heard.append)
    assert heard == list(range(1, 13))
    assert population.step == 12
    assert population.failures == {0: "gone"}
    assert population.live.tolist() == [False, True]
    population.close()


def test_agents_that_are_alike_are_dealt_out_in_turn() -> None:
    small = replace(TOY, batch_size=8)
    assert dealt([TOY, small, TOY, small, TOY], 2) == [[0, 4, 3], [2, 1]]
    assert dealt([TOY], 4) == [[0]]
    spec = VectorPlant(make_vec("toy", 1)).spec
    kinds = [[(group.kind, group.size) for group in lane] for lane in grouped([[TOY, TOY, small], [small]], spec)]
    assert kinds == [[(0, 2), (1, 1)], [(1, 1)]]


@pytest.mark.parametrize(("copies", "threads", "used"), [(20, 15, 10), (40, 15, 14), (3, 15, 3), (7, 2, 2), (1, 1, 1)])
def test_no_more_threads_than_help(copies: int, threads: int, used: int) -> None:
    assert lane_threads(copies, threads) == used
