"""What stops a run: numbers that are not finite, empty sets, actions outside them; where, what and where to look."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from feasible import sets
from feasible.catalogue.registry import TASKS
from feasible.cli import main
from feasible.constraints import ConstrainedEnv, ConstrainedVectorEnv, Constraint
from feasible.errors import EmptySetError, InfeasibleActionError, InvalidStepError
from feasible.run.drive.faults import NotFiniteError
from feasible.run.drive.lone import Lone
from feasible.run.drive.plant import plant_of
from feasible.run.drive.programs import compiled_policy
from feasible.run.evaluate import Evaluation, evaluate, evaluation_seeds
from feasible.run.launch import configure, new_run
from tests.run.runs import files
from tests.run.toys import TOY, UNREADABLE, Drift, Fault, SavedDrift, Unreadable, Writing, force, toy_plant, toy_task

pytestmark = [pytest.mark.xdist_group("toy"), pytest.mark.usefixtures("shared_programs")]
IDLE = replace(TOY, warmup=0, actor_interval=1000, critic_interval=1000)  # acts by its policy, and learns later


def trained(fault: Fault, at: int, until: int = 100) -> Lone:
    driver = started(Lone(TOY, toy_plant(fault=fault, at=at), seed=0))
    driver.advance(until)
    return driver


def started(driver: Lone) -> Lone:
    driver.start()
    return driver


@pytest.mark.parametrize("at", [1, 7, 33])
def test_an_observation_that_is_not_finite(at: int) -> None:
    with pytest.raises(NotFiniteError, match=rf"Entry 1 of the observation is nan at step {at}:"):
        trained("observation", at)


def test_the_first_observation() -> None:
    with pytest.raises(NotFiniteError, match="Entry 1 of the observation is inf at step 0:"):
        trained("first observation", 0)


@pytest.mark.parametrize("at", [1, 33])
def test_a_reward_that_is_not_finite(at: int) -> None:
    with pytest.raises(NotFiniteError, match=rf"The reward is nan at step {at}:"):
        trained("reward", at)


def test_a_loss_that_is_not_finite() -> None:
    # The reward of 1e30 at step 33 is one of 33 rows; batches of 16 find it after some steps, and its square overflows.
    with pytest.raises(NotFiniteError, match=r"critic/loss is (inf|nan) at step \d+: training has diverged") as stop:
        trained("loss", 33)
    assert 33 <= int(re.findall(r"step (\d+)", str(stop.value))[0]) <= 60


@pytest.mark.parametrize("at", [1, 33])
def test_an_empty_set(at: int) -> None:
    with pytest.raises(EmptySetError, match=rf"The feasible set after step {at} of observation \[.*-1\. *\] is empty:"):
        trained("empty", at)


def test_a_set_that_reaches_out_of_the_action_space() -> None:
    said = (
        r"The action after step 2 is -?[\d.]+ in entry [01], (above the upper bound 1|below the lower bound -1) of the"
    )
    with pytest.raises(InfeasibleActionError, match=said):
        trained("wide", 2)


@pytest.mark.parametrize("name", UNREADABLE)
def test_a_step_that_cannot_be_read(name: str) -> None:
    change, said = UNREADABLE[name]
    driver = started(Lone(TOY, plant_of(ConstrainedEnv(Unreadable(change), force)), seed=0))
    with pytest.raises(InvalidStepError, match=said):
        driver.advance(5)


def test_ends_and_beginnings_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    no_end = Unreadable(lambda outcome: (*outcome[:2], None, *outcome[3:]))
    with pytest.raises(
        InvalidStepError, match="The terminated is None at step 2: the environment must give one number"
    ):
        started(Lone(TOY, plant_of(ConstrainedEnv(no_end, force)), seed=0)).advance(5)
    ending = Drift()
    driver = started(Lone(TOY, plant_of(ConstrainedEnv(ending, force)), seed=0))
    monkeypatch.setattr(ending, "reset", lambda **options: np.zeros(3))
    with pytest.raises(InvalidStepError, match=r"returned an array .* from reset at step \d+: it must return \(obs"):
        driver.advance(50)


def test_errors_of_the_environment_itself_pass() -> None:
    driver = started(Lone(TOY, plant_of(ConstrainedEnv(Unreadable(lambda outcome: int("x")), force)), seed=0))
    with pytest.raises(ValueError, match="invalid literal for int"):
        driver.advance(5)


def test_a_set_with_a_nan() -> None:
    def constraint(obs: np.ndarray) -> sets.Ball:
        return sets.Ball(jnp.zeros(2), jnp.sqrt(obs[2]))

    driver = started(Lone(IDLE, plant_of(ConstrainedEnv(Drift("empty", 2), constraint)), seed=0))
    said = r"The feasible set after step 2 of observation \[.*-1\. *\] cannot be made, .* Ball: radius must be finite"
    with pytest.raises(InfeasibleActionError, match=said):
        driver.advance(5)


def test_actions_can_be_written_to_and_nothing_kept_changes() -> None:
    drivers = [started(Lone(TOY, toy_plant(kind), seed=0)) for kind in (SavedDrift, Writing)]
    for driver in drivers:
        driver.advance(20)
    plain, written = (jax.tree.leaves(driver.carry) for driver in drivers)
    for left, right in zip(plain, written, strict=True):
        np.testing.assert_array_equal(left, right)


EMPTIED: dict[str, Constraint] = {
    "Box": lambda obs: sets.Box(-0.5 * jnp.ones(2), jnp.full(2, obs[2])),
    "WeightedL1Box": lambda obs: sets.WeightedL1Box(weights=jnp.ones(2), budget=obs[2], bound=1.0),
    "PositivePowerBox": lambda obs: sets.PositivePowerBox(weights=jnp.ones(2), budget=obs[2], bound=1.0),
    "Allocation": lambda obs: sets.Allocation(total=obs[2], low=jnp.zeros(2), high=jnp.ones(2)),
    "AllocationAtMost": lambda obs: sets.AllocationAtMost(total=obs[2], low=jnp.zeros(2), high=jnp.ones(2)),
    "EllipsoidBox": lambda obs: sets.EllipsoidBox(jnp.eye(2), level=obs[2], bound=1.0),
    "Polytope": lambda obs: sets.Polytope(jnp.eye(2), jnp.full(2, obs[2] - 0.5), low=-jnp.ones(2), high=jnp.ones(2)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", EMPTIED)
def test_every_set_that_becomes_empty_is_called_so(name: str) -> None:
    """The upper bound falls below the lower one; an amount of -1 cannot be given out."""
    driver = Lone(TOY, plant_of(ConstrainedEnv(Drift("empty", 3), EMPTIED[name])), seed=0)
    driver.start()
    with pytest.raises(EmptySetError, match="after step 3 of observation"):
        driver.advance(5)


def test_an_executed_action_outside_its_set(monkeypatch: pytest.MonkeyPatch) -> None:
    def constraint(obs: np.ndarray) -> sets.Ball:
        return force(obs)

    with monkeypatch.context() as patch:  # a projection that does not project
        patch.setattr(sets.Ball, "project", lambda self, z: 1.01 * z)
        driver = Lone(TOY, plant_of(ConstrainedEnv(Drift(), constraint)), seed=1)
        with pytest.raises(InfeasibleActionError, match=r"after step \d+ violates .* by .* was not executed") as stop:
            started(driver).advance(100)
    (step,) = re.findall(r"after step (\d+)", str(stop.value))
    simulator = driver.plant.env
    assert isinstance(simulator, Drift)
    assert simulator.steps == int(step)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("observation", r"Entry 1 of the observation is nan at step 45: .*"),
        ("reward", r"The reward is nan at step 45: .*"),
        ("loss", r"critic/loss is (inf|nan) at step (4|5)\d: .*"),
        ("empty", r"The feasible set after step 45 of observation .* is empty: .*"),
    ],
)
def test_a_run_says_where_its_last_checkpoint_is(
    fault: Fault, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(TASKS, "toy", toy_task(fault=fault, at=45))  # pyright: ignore[reportArgumentType]
    for interval, where in (
        (20, r"The last checkpoint, of step 40, is in {}/checkpoint\."),
        (1000, r"The run {} has no checkpoint yet\."),
    ):
        folder = new_run(tmp_path, configure("toy", "nfwpo", 0, checkpoint_every=interval, variant=f"every-{interval}"))
        with pytest.raises(SystemExit) as end:
            main(["resume", str(folder.path)])
        assert end.value.code == 1
        lines = capsys.readouterr().err.splitlines()
        assert len(lines) == 1
        assert re.fullmatch(f"feasible: {said} " + where.format(re.escape(str(folder.path))), lines[0])
        if interval == 20:
            before = files(folder.checkpoint)
            with pytest.raises(SystemExit):
                main(["resume", str(folder.path)])
            assert capsys.readouterr().err.splitlines() == lines
            assert files(folder.checkpoint) == before


@pytest.mark.parametrize(
    ("fault", "error", "said"),
    [
        ("reward", NotFiniteError, "A reward of evaluation episode 0 is nan"),
        ("observation", InfeasibleActionError, "The action of evaluation episode 0 has a NaN"),
        ("empty", EmptySetError, "The feasible set of evaluation episode 0 of observation"),
    ],
)
def test_evaluations_stop_too(fault: Fault, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        evaluated(lambda: Drift(fault, 5))


def evaluated(make: Callable[[], gym.Env]) -> Evaluation:
    copies = gym.vector.SyncVectorEnv([make] * 2, autoreset_mode=gym.vector.AutoresetMode.SAME_STEP)
    driver = started(Lone(TOY, toy_plant(), seed=0))
    act, policy = compiled_policy(TOY, driver.plant.spec), TOY.policy(driver.carry.algorithm)
    return evaluate(act, policy, ConstrainedVectorEnv(copies, force), evaluation_seeds(0, 0, 2))


def test_evaluations_read_and_write_as_training_does() -> None:
    change, _ = UNREADABLE["longer"]
    with pytest.raises(InvalidStepError, match=r"The observation of copy 0 has shape \(4,\) at step 2"):
        evaluated(lambda: Unreadable(change))
    assert evaluated(Writing) == evaluated(SavedDrift)
