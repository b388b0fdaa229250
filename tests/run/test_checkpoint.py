"""Checkpoints of a driver: saved, thrown away and restored at many steps, training ends as if never interrupted."""

from pathlib import Path

import jax
import numpy as np
import pytest

from feasible.run.disk import checkpoint
from feasible.run.disk import replay as replay_segments
from feasible.run.drive.lone import Lone
from feasible.run.drive.programs import Programs
from feasible.run.drive.tally import Metered, Tally
from feasible.run.drive.wire import Wire
from feasible.run.folder import RunFolder
from tests.run.runs import files
from tests.run.toys import TOY, Drift, SavedDrift, toy_plant

pytestmark = pytest.mark.usefixtures("as_compiled_for_users")
STEPS = 300


@pytest.fixture(scope="module")
def programs() -> Programs:
    return Programs(TOY, toy_plant().spec)


def new_driver(programs: Programs, kind: type[Drift] = SavedDrift) -> Lone:
    driver = Lone(TOY, toy_plant(kind), seed=3)
    driver.programs = programs  # compiled once for all of them
    return driver


@pytest.fixture(scope="module")
def uninterrupted(programs: Programs) -> Lone:
    driver = new_driver(programs)
    driver.start()
    driver.advance(STEPS)
    return driver


def assert_equal_drivers(one: Lone, other: Lone) -> None:
    assert one.step == other.step
    assert one.tally.as_plain() == other.tally.as_plain()
    for left, right in zip(jax.tree.leaves(one.carry), jax.tree.leaves(other.carry), strict=True):
        np.testing.assert_array_equal(np.asarray(left), np.asarray(right))
    for name, value in one.plant.get_state().items():
        np.testing.assert_array_equal(value, other.plant.get_state()[name])


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 8))])
def test_restored_at_random_steps_it_ends_the_same(
    seed: int, programs: Programs, uninterrupted: Lone, tmp_path: Path
) -> None:
    random, folder = np.random.default_rng(seed), RunFolder(tmp_path)
    folder.metrics.write_text("7 bytes")
    driver = new_driver(programs)
    driver.start()
    while driver.step < STEPS:
        driver.advance(min(STEPS, driver.step + int(random.integers(1, 60))))
        checkpoint.save(folder.checkpoint, [folder], driver)
        saved = driver.step
        if random.random() < 0.7:  # work that a kill throws away, perhaps in the middle of the next checkpoint
            driver.advance(driver.step + int(random.integers(1, 60)))
            if random.random() < 0.5:
                replay_segments.append(folder.checkpoint, driver.carry.algorithm.replay, saved)
                (folder.checkpoint / "state.feasible.part").write_bytes(b"half")
            driver = new_driver(programs)
            checkpoint.restore(folder.checkpoint, [folder], driver)
        assert checkpoint.read(folder.checkpoint) == checkpoint.Saved(saved, False, (7,), ("..",))
        assert driver.step == saved
    assert_equal_drivers(driver, uninterrupted)


def test_a_checkpoint_writes_only_the_new_rows(programs: Programs, tmp_path: Path) -> None:
    driver, folder = new_driver(programs), RunFolder(tmp_path)
    driver.start()
    names = []
    for step in (20, 30, 60, 70, 71, 71):
        driver.advance(step)
        checkpoint.save(folder.checkpoint, [folder], driver)
        names.append(sorted(path.name for path in folder.checkpoint.glob("replay-*")))
    assert names == [
        ["replay-0-20.npy"],
        ["replay-0-20.npy", "replay-20-30.npy"],
        ["replay-20-30.npy", "replay-30-60.npy"],
        ["replay-30-60.npy", "replay-60-70.npy"],
        ["replay-30-60.npy", "replay-60-70.npy", "replay-70-71.npy"],
        ["replay-30-60.npy", "replay-60-70.npy", "replay-70-71.npy"],
    ]
    checkpoint.finish(folder.checkpoint, [folder], driver)
    assert [path.name for path in folder.checkpoint.iterdir()] == ["state.feasible"]
    assert checkpoint.read(folder.checkpoint) == checkpoint.Saved(71, finished=True)


def test_the_same_state_gives_the_same_bytes(programs: Programs, tmp_path: Path) -> None:
    for name in ("one", "other"):
        driver = new_driver(programs)
        driver.start()
        driver.advance(55)
        folder = RunFolder(tmp_path / name)
        checkpoint.save(folder.checkpoint, [folder], driver)
    assert files(tmp_path / "one") == files(tmp_path / "other")


def test_an_environment_without_saved_states_begins_a_new_episode(programs: Programs, tmp_path: Path) -> None:
    driver = new_driver(programs, Drift)
    driver.start()
    driver.advance(55)
    driver.tally.settle()
    assert driver.tally.episode_returns != 0
    folder = RunFolder(tmp_path)
    checkpoint.save(folder.checkpoint, [folder], driver)
    resumed = new_driver(programs, Drift)
    checkpoint.restore(folder.checkpoint, [folder], resumed)
    simulator = resumed.plant.env
    assert isinstance(simulator, Drift)
    assert (resumed.step, resumed.tally.episode_returns.item(), simulator.time) == (55, 0.0, 0)
    # It acts by the policy: within the noise (four deviations) of what the actor says, not uniformly.
    decision = resumed.carry.decision
    np.testing.assert_allclose(np.asarray(decision.proposed), np.asarray(decision.intended), atol=0.4)
    assert not np.array_equal(np.asarray(decision.proposed), np.asarray(decision.intended))
    for left, right in zip(
        jax.tree.leaves(resumed.carry.algorithm), jax.tree.leaves(driver.carry.algorithm), strict=True
    ):
        np.testing.assert_array_equal(np.asarray(left), np.asarray(right))
    resumed.advance(STEPS)
    assert resumed.step == STEPS


def test_a_report_has_one_order_whichever_metric_came_first() -> None:
    """Saved tallies are sorted by name; a resumed run must write the same line."""
    wire, reports = Wire(1, 1), []
    for names in (("critic/loss", "actor/gap"), ("actor/gap", "critic/loss")):
        tally = Tally(wire, [0])
        for name in names:
            metered = Metered((slice(0, 1),), ((name,),), ((name,),))
            for value in (1.0, 4.0):
                tally.add_report(metered, 1, np.array([[*np.zeros(wire.judged), value]], np.float32))
        reports.append(list(tally.reports()[0].items()))
    assert reports[0] == reports[1]
    assert reports[0][-2:] == [("actor/gap", 2.5), ("critic/loss", 2.5)]
