"""Checkpoints of a driver: saved, thrown away and restored at many steps, training ends as if never interrupted."""

from pathlib import Path

import jax
import numpy as np
import pytest

from feasible.run import checkpoint
from feasible.run.disk import replay as replay_segments
from feasible.run.driver import Driver, Tally
from feasible.run.programs import Programs
from tests.run.toys import TOY, Drift, SavedDrift, toy_plant

pytestmark = pytest.mark.usefixtures("as_compiled_for_users")
STEPS = 300


@pytest.fixture(scope="module")
def programs() -> Programs:
    return Programs(TOY, toy_plant().spec)


def new_driver(programs: Programs, kind: type[Drift] = SavedDrift) -> Driver:
    driver = Driver(TOY, toy_plant(kind), seed=3)
    driver.programs = programs  # compiled once for all of them
    return driver


@pytest.fixture(scope="module")
def uninterrupted(programs: Programs) -> Driver:
    driver = new_driver(programs)
    driver.start()
    driver.advance(STEPS)
    return driver


def assert_equal_drivers(one: Driver, other: Driver) -> None:
    assert one.step == other.step
    assert one.tally.as_plain() == other.tally.as_plain()
    for left, right in zip(jax.tree.leaves(one.carry), jax.tree.leaves(other.carry), strict=True):
        np.testing.assert_array_equal(np.asarray(left), np.asarray(right))
    for name, value in one.plant.get_state().items():
        np.testing.assert_array_equal(value, other.plant.get_state()[name])


@pytest.mark.parametrize("seed", range(8))
def test_restored_at_random_steps_it_ends_the_same(
    seed: int, programs: Programs, uninterrupted: Driver, tmp_path: Path
) -> None:
    random = np.random.default_rng(seed)
    driver = new_driver(programs)
    driver.start()
    while driver.step < STEPS:
        driver.advance(min(STEPS, driver.step + int(random.integers(1, 60))))
        checkpoint.save(tmp_path, driver, metrics_size=7)
        saved = driver.step
        if random.random() < 0.7:  # work that a kill throws away, perhaps in the middle of the next checkpoint
            driver.advance(driver.step + int(random.integers(1, 60)))
            if random.random() < 0.5:
                replay_segments.append(tmp_path, driver.carry.algorithm.replay, saved)
                (tmp_path / "state.feasible.part").write_bytes(b"half")
            driver = new_driver(programs)
            checkpoint.restore(tmp_path, driver)
        assert checkpoint.read(tmp_path) == checkpoint.Saved(saved, 7, finished=False)
        assert driver.step == saved
    assert_equal_drivers(driver, uninterrupted)


def test_a_checkpoint_writes_only_the_new_rows(programs: Programs, tmp_path: Path) -> None:
    driver = new_driver(programs)
    driver.start()
    names = []
    for step in (20, 30, 60, 70, 71, 71):
        driver.advance(step)
        checkpoint.save(tmp_path, driver, 0)
        names.append(sorted(path.name for path in tmp_path.glob("replay-*")))
    assert names == [
        ["replay-0-20.npy"],
        ["replay-0-20.npy", "replay-20-30.npy"],
        ["replay-20-30.npy", "replay-30-60.npy"],
        ["replay-30-60.npy", "replay-60-70.npy"],
        ["replay-30-60.npy", "replay-60-70.npy", "replay-70-71.npy"],
        ["replay-30-60.npy", "replay-60-70.npy", "replay-70-71.npy"],
    ]
    checkpoint.save(tmp_path, driver, 0, finished=True)
    assert [path.name for path in tmp_path.iterdir()] == ["state.feasible"]


def test_the_same_state_gives_the_same_bytes(programs: Programs, tmp_path: Path) -> None:
    for name in ("one", "other"):
        driver = new_driver(programs)
        driver.start()
        driver.advance(55)
        checkpoint.save(tmp_path / name, driver, 0)
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "other" / path.name).read_bytes()


def test_an_environment_without_saved_states_begins_a_new_episode(programs: Programs, tmp_path: Path) -> None:
    driver = new_driver(programs, Drift)
    driver.start()
    driver.advance(55)
    assert driver.tally.episode_return != 0
    checkpoint.save(tmp_path, driver, 0)
    resumed = new_driver(programs, Drift)
    checkpoint.restore(tmp_path, resumed)
    simulator = resumed.plant.env
    assert isinstance(simulator, Drift)
    assert (resumed.step, resumed.tally.episode_return, simulator.time) == (55, 0.0, 0)
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
    critic_first, actor_first = Tally(), Tally()
    for tally, names in ((critic_first, ("critic/loss", "actor/gap")), (actor_first, ("actor/gap", "critic/loss"))):
        for name in names:
            tally.add((name,), np.array([1.0]))
            tally.add((name,), np.array([4.0]))
    reports = [list(tally.report().items()) for tally in (critic_first, actor_first)]
    assert reports[0] == reports[1]
    assert reports[0][-2:] == [("actor/gap", 2.5), ("critic/loss", 2.5)]
