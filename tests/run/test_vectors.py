"""Agents with a replay on several copies: what they store, how often they learn, and that they can be resumed."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from jaxtyping import Array
from numpy.typing import NDArray

from feasible import sets
from feasible.algorithms.base import Algorithm, Decision, Metrics, Transition
from feasible.algorithms.ddpg import DDPG, DDPGState
from feasible.algorithms.sac import SAC
from feasible.catalogue.registry import TASKS, algorithm_of, find_task, make_vec
from feasible.constraints import ConstrainedVectorEnv, Observation
from feasible.run.drive.lone import Lone
from feasible.run.drive.plant import VectorPlant, plant_of
from feasible.run.folder import RunFolder
from feasible.run.launch import configure, new_run
from feasible.run.train import Outcome, train
from tests.run.runs import Killed, assert_equal_runs
from tests.run.test_train import At
from tests.run.toys import TOY, SavedDrift, force, toy_task

COPIES = 3
LEARNER = replace(TOY, replay_size=200, copies=COPIES, warmup=0)
ROUNDS = replace(LEARNER, actor_interval=3, critic_interval=2, warmup=8)  # no two that follow each other learn alike
SOFT = SAC(
    warmup=10, learning_starts=60, interval=50, updates=3, batch_size=8, replay_size=90, hidden_layers=(8,), copies=4
)

pytestmark = pytest.mark.usefixtures("shared_programs")


def toys(copies: int = COPIES, mode: AutoresetMode = AutoresetMode.SAME_STEP) -> VectorPlant:
    return VectorPlant(ConstrainedVectorEnv(SyncVectorEnv([SavedDrift] * copies, autoreset_mode=mode), force))


def started(algorithm: Algorithm, plant: VectorPlant) -> Lone:
    learner = Lone(algorithm, plant, seed=3)
    learner.start()
    return learner


def stored(learner: Lone) -> NDArray:
    replay = learner.carry.algorithm.replay
    return np.array(replay.rows)[: int(replay.count)]


def test_every_copy_s_transitions_reach_the_replay() -> None:
    """Against plain stepping of the single environments with the actions that were executed."""
    learner = started(LEARNER, toys())
    singles = [SavedDrift() for _ in range(COPIES)]
    before = [env.reset(seed=3 + copy)[0] for copy, env in enumerate(singles)]
    rows, ends = [], 0
    for step in range(COPIES, 45 * COPIES, COPIES):
        actions = np.array(learner._actions)
        learner.advance(step)
        for copy, env in enumerate(singles):
            next_obs, reward, terminated, truncated, _ = env.step(actions[copy])
            rows.append([*before[copy], *actions[copy], *next_obs, reward, terminated])
            before[copy] = next_obs
            if terminated or truncated:
                ends += 1
                before[copy] = env.reset()[0]
    assert ends >= 2 * COPIES
    o, n = 3, 2
    found = stored(learner)
    assert len(found) == learner.step == 44 * COPIES
    np.testing.assert_array_equal(np.delete(found, np.s_[o : o + n], axis=1), np.array(rows, np.float32))


@pytest.mark.parametrize(
    ("copies", "actor", "critic", "warmup"),
    [
        (ROUNDS.copies, ROUNDS.actor_interval, ROUNDS.critic_interval, ROUNDS.warmup),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in ((4, 3, 2, 10), (8, 2, 1, 3), (2, 1, 1, 10), (5, 1, 1, 12), (3, 7, 4, 0))
        ),
    ],
)
def test_every_part_learns_as_often_as_its_interval_has_multiples(
    copies: int, actor: int, critic: int, warmup: int
) -> None:
    algorithm = replace(LEARNER, copies=copies, actor_interval=actor, critic_interval=critic, warmup=warmup)
    learner = started(algorithm, toys(copies))
    for step in (copies, 4 * copies, 15 * copies):
        learner.advance(step)
        state = learner.carry.algorithm
        for optimiser, every in ((state.actor_optimiser, actor), (state.critic_optimiser, critic)):
            # Step numbers after the warm-up count, also of the round in which it ends.
            assert optimiser[0].count == max(step // every - warmup // every, 0)
        assert state.replay.count == step


def test_sac_learns_as_often() -> None:
    learner = started(SOFT, toys(SOFT.copies))
    learner.advance(200)
    assert learner.carry.algorithm.critic_optimiser[0].count == 3 * len(range(100, 201, 50))


@pytest.mark.slow
def test_the_tables_learn_as_often() -> None:
    table = algorithm_of(find_task("bss-3"), "fwpo", "paper", {"warmup": 30, "copies": 4, "critic_interval": 25})
    learner = Lone(table, plant_of(make_vec("bss-3", 4)), seed=0)
    learner.start()
    learner.advance(120)
    assert learner.carry.algorithm.critic_optimiser[0].count == len(range(50, 121, 25))


class SingleSteps:
    """Storing one transition, and one update of the parts that are due, each a program."""

    def __init__(self, learner: Lone):
        algorithm: DDPG = learner.algorithm  # pyright: ignore[reportAssignmentType]
        spec = learner.plant.spec

        def observe(state: DDPGState, row: Array) -> DDPGState:
            obs, proposed, executed, next_obs, (reward, terminated) = jnp.split(row, [3, 5, 7, 10])
            made = Transition(obs, Decision(proposed, executed, proposed), reward, next_obs, terminated > 0, terminated)
            return algorithm.observe(state, spec, made)

        def update(state: DDPGState, key: Array, due: frozenset[str]) -> tuple[DDPGState, Metrics]:
            return algorithm.update(state, spec, key, due)

        self.observe, self.update = jax.jit(observe), jax.jit(update, static_argnums=2)


def one_after_the_other(
    state: DDPGState, learner: Lone, programs: SingleSteps, rows: NDArray, first: int
) -> tuple[DDPGState, list[Metrics]]:
    """What single dispatches make of transitions with these step numbers: all stored, then learned from in order."""
    algorithm, key = learner.algorithm, jax.random.wrap_key_data(learner.carry.key)
    for row in rows:
        state = programs.observe(state, row)
    told = []
    for number in range(first, first + len(rows)):
        due = frozenset(part for part, every in algorithm.intervals.items() if number % every == 0)
        if number > algorithm.warmup and due:
            state, metrics = programs.update(state, jax.random.split(jax.random.fold_in(key, number))[0], due)
            told.append(metrics)
    return state, told


def test_a_round_learns_as_single_steps_do_and_reports_means() -> None:
    """Order, keys and the step at which the warm-up ends; a round has other updates than the one before."""
    learner = started(ROUNDS, toys(ROUNDS.copies))
    state, programs = jax.tree.map(jnp.array, learner.carry.algorithm), SingleSteps(learner)
    for step in (3, 6, 9, 12, 15, 18):
        learner.advance(step)
        state, told = one_after_the_other(state, learner, programs, stored(learner)[step - 3 : step], step - 2)
        reports = learner.tally.reports()[0]
        for name in {name for metrics in told for name in metrics}:
            values = [float(metrics[name]) for metrics in told if name in metrics]
            np.testing.assert_allclose(reports[name], np.mean(values), rtol=1e-4, atol=1e-6)
    assert len(told) == 2
    for leaf, expected in zip(jax.tree.leaves(learner.carry.algorithm), jax.tree.leaves(state), strict=True):
        np.testing.assert_allclose(leaf, expected, rtol=1e-4, atol=1e-6)


def test_many_copies_take_few_programs() -> None:
    """A loop for what repeats, and one program for each sequence of updates, whichever step numbers they are of."""
    learner = started(SOFT, toys(SOFT.copies))
    learner.advance(600)
    # Nothing, before a warm action and one of the policy; an update, at whatever place of the round.
    assert learner.programs.traces == len(learner.programs.made) == 3
    wide = started(replace(LEARNER, copies=32), toys(32))
    wide.advance(96)
    assert learner.programs.traces == 3
    assert wide.programs.traces == len(wide.programs.made) == 1
    assert wide.carry.algorithm.critic_optimiser[0].count == 96


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.DISABLED])
def test_the_autoreset_mode_changes_nothing(mode: AutoresetMode) -> None:
    same, other = started(LEARNER, toys()), started(LEARNER, toys(mode=mode))
    for learner in (same, other):
        learner.advance(150)
        assert learner.tally.finished_returns[0] == []  # not yet counted
    np.testing.assert_array_equal(stored(other), stored(same))
    assert other.tally.as_plain() == same.tally.as_plain()
    assert len(same.tally.finished_returns[0]) >= 2 * COPIES


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_copies_in_processes_of_their_own_train_alike(mode: AutoresetMode) -> None:
    makers = [partial(gym.make, "Pendulum-v1", max_episode_steps=15)] * 2
    env = AsyncVectorEnv(makers, context="spawn", autoreset_mode=mode)
    try:
        vectors = env, SyncVectorEnv(makers, autoreset_mode=AutoresetMode.SAME_STEP)
        algorithm = replace(LEARNER, copies=2)
        learners = [started(algorithm, VectorPlant(ConstrainedVectorEnv(vector, torque))) for vector in vectors]
        for learner in learners:
            learner.advance(150)
        apart, here = map(stored, learners)
        np.testing.assert_array_equal(apart, here)
        assert learners[0].tally.as_plain() == learners[1].tally.as_plain()
    finally:
        env.close()


def torque(obs: Observation) -> sets.Box:
    """The less torque the faster it turns."""
    reach = 2.0 - 0.2 * jnp.abs(obs[2:])  # pyright: ignore[reportIndexIssue, reportOptionalSubscript]
    return sets.Box(-reach, reach)


@pytest.fixture
def _toy_task(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TASKS, "toy", toy_task())  # pyright: ignore[reportArgumentType]


@pytest.mark.usefixtures("_toy_task")
@pytest.mark.parametrize(
    ("algo", "changes"),
    [
        ("nfwpo", {"actor_interval": 4}),
        pytest.param("sac-projection", {"interval": 7}, marks=pytest.mark.slow),  # saved by the same code
    ],
)
def test_killed_and_resumed_it_ends_as_an_undisturbed_run(algo: str, changes: dict[str, int], tmp_path: Path) -> None:
    def run(out: Path) -> RunFolder:
        config = configure(
            "toy", algo, 0, changes={"copies": 2, "warmup": 0, **changes}, variant="small", checkpoint_every=70
        )
        return new_run(out, config)

    whole, killed = run(tmp_path / "whole"), run(tmp_path / "killed")
    assert train(whole) == Outcome(300, finished=True)
    for step in (80, 150, 296):
        with pytest.raises(Killed):
            train(killed, At(step, Killed))
    assert train(killed).finished
    assert_equal_runs(killed, whole)
