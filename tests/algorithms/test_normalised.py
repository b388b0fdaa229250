"""Observations that networks see by their running statistics, for learners with a replay; constraints see them raw."""

import zipfile
from dataclasses import replace
from pathlib import Path

import equinox as eqx
import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import feasible as fs
from feasible.agents import Agent
from feasible.algorithms.actor_rules import FrankWolfe, PolicyGradient
from feasible.algorithms.base import Algorithm, Spec, Transition
from feasible.algorithms.ddpg import DDPG
from feasible.algorithms.replay import draw
from feasible.algorithms.sac import SAC
from feasible.algorithms.statistics import Statistics
from feasible.run.disk import checkpoint
from feasible.run.drive.lone import Lone
from feasible.run.drive.programs import Programs
from feasible.run.folder import RunFolder
from feasible.sets import Ball
from tests.algorithms.plain import (
    actor_output,
    ball_task,
    critic_value,
    in_ball,
    new,
    radius,
    random_transition,
    stored,
)
from tests.algorithms.test_probes import HIGH, LOW, SLOPE, SOFT, ddpg, trained
from tests.run.test_checkpoint import assert_equal_drivers
from tests.run.toys import TOY, SavedDrift, force, toy_plant

SPEC = ball_task()
NORMALISED = DDPG(
    rule=PolicyGradient(), noise=0.1, batch_size=8, replay_size=64, hidden_layers=(8, 8), normalised=True, discount=0.9
)
SOFTLY = SAC(batch_size=8, replay_size=64, hidden_layers=(8,), normalised=True)
SHRUNK = replace(NORMALISED, normalised="shrunk")
BOTH: tuple[Algorithm, Algorithm] = (NORMALISED, SOFTLY)


def transitions(count: int) -> list[Transition]:
    """Observations around (40, 40, 40) with deviations of 3, where the constraint's radius is about 320."""
    rng = np.random.default_rng(0)
    made = [random_transition(rng, SPEC, terminated=step % 5 == 0, truncated=False) for step in range(count)]
    return [replace(t, obs=40.0 + 3.0 * t.obs, next_obs=40.0 + 3.0 * t.next_obs) for t in made]


@pytest.mark.parametrize("algorithm", BOTH, ids=["ddpg", "sac"])
def test_statistics_are_of_every_stored_observation_once(algorithm: Algorithm) -> None:
    """More are counted than the replay holds; the replay keeps them as they came."""
    made = transitions(100)
    state = stored(algorithm, SPEC, new(algorithm, SPEC), made)
    seen = np.stack([t.obs for t in made])
    assert state.statistics is not None
    assert int(state.statistics.count) == 100
    np.testing.assert_allclose(state.statistics.mean, seen.mean(axis=0), rtol=1e-9)
    np.testing.assert_allclose(np.sqrt(state.statistics.variance), seen.std(axis=0), rtol=1e-9)
    np.testing.assert_array_equal(state.replay.rows[:36, :3], seen[64:])
    after, _ = jax.jit(lambda state: algorithm.update(state, SPEC, jax.random.key(0), frozenset(algorithm.intervals)))(
        state
    )
    for left, right in zip(jax.tree.leaves(after.statistics), jax.tree.leaves(state.statistics), strict=True):
        np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize(("algorithm", "least"), [(NORMALISED, 0.0), (SHRUNK, 1.0)], ids=["normalised", "shrunk"])
def test_critic_loss_is_that_of_a_plain_loop_over_normalised_observations(algorithm: DDPG, least: float) -> None:
    """Of the observations one entry has a deviation of 3, one of 0.3 and one of 0.03."""
    sizes = np.array([1.0, 0.1, 0.01])
    made = [replace(t, obs=sizes * t.obs, next_obs=sizes * t.next_obs) for t in transitions(20)]
    state = stored(algorithm, SPEC, new(algorithm, SPEC), made)
    statistics = state.statistics
    assert statistics is not None
    assert sorted(statistics.variance > 1.0) == [False, False, True]
    batch = jax.jit(lambda replay: draw(replay, 8, jax.random.key(1), SPEC))(state.replay)
    low, high = np.asarray(SPEC.low), np.asarray(SPEC.high)

    def x(obs: np.ndarray) -> np.ndarray:
        return np.clip((obs - statistics.mean) / np.maximum(np.sqrt(statistics.variance + 1e-8), least), -5, 5)

    errors = []
    for obs, executed, next_obs, reward, goes_on in zip(
        batch.obs, batch.executed, batch.next_obs, batch.reward, batch.continues, strict=True
    ):
        action = in_ball(actor_output(state.target_actor, x(next_obs), low, high), radius(next_obs))
        target = reward + 0.9 * goes_on * critic_value(state.target_critic, x(next_obs), action)
        errors.append((critic_value(state.critic, x(obs), np.asarray(executed)) - target) ** 2)
    loss, _ = jax.jit(algorithm.critic_loss)(state.critic, state, SPEC, batch, jax.random.key(2))
    np.testing.assert_allclose(loss, np.mean(errors), rtol=1e-9)


@pytest.mark.parametrize("name", ["td3-radial", "sac-proposed", "aram"])
def test_shrunk_observations_are_only_made_smaller(name: str, tmp_path: Path) -> None:
    """As a policy acts on raw observations that were centred and divided by hand: a deviation of 5 counts, of 0.2 not.
    A policy that is read from its file does the same."""
    small = {"warmup": 10, "batch_size": 8, "hidden_layers": (8,), "replay_size": 64}
    env = fs.constrain(Wide(), lambda obs: fs.sets.Box(-1.0, jnp.ones(2)))
    agent = fs.agent(name, env, seed=0, normalised="shrunk", **small).learn(40)  # pyright: ignore
    statistics = next(leaf for leaf in jax.tree.leaves(agent.policy, is_leaf=is_statistics) if is_statistics(leaf))
    mean, deviation = np.asarray(statistics.mean), np.sqrt(statistics.variance)
    assert deviation[0] > 2.0 > 1.0 > deviation[1]
    unit = eqx.tree_at(lambda s: (s.mean, s.variance), statistics, (np.zeros(2, np.float32), np.ones(2, np.float32)))
    policy = jax.tree.map(lambda leaf: unit if is_statistics(leaf) else leaf, agent.policy, is_leaf=is_statistics)
    by_hand = Agent(env, agent.algorithm, 0, policy)
    obs = np.array([[7.0, 0.3], [-4.0, -0.1]], np.float32)
    expected = by_hand.predict((obs - mean) / np.maximum(deviation, 1.0))
    np.testing.assert_allclose(agent.predict(obs), expected, atol=1e-5)
    agent.save(tmp_path / "policy")
    np.testing.assert_array_equal(fs.load(tmp_path / "policy", env).predict(obs), agent.predict(obs))


def is_statistics(leaf: object) -> bool:
    return isinstance(leaf, Statistics)


class Wide(gym.Env):
    """Two numbers drawn anew at every step, one with a deviation of 5, one of 0.2; the action is to be the second."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (2,), np.float32)
    action_space = gym.spaces.Box(-1.0, 1.0, (2,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, object] | None = None):
        super().reset(seed=seed)
        return self._drawn(), {}

    def step(self, action: np.ndarray):
        return self._drawn(), -float(np.abs(action).sum()), False, False, {}

    def _drawn(self) -> np.ndarray:
        return self.np_random.normal(scale=(5.0, 0.2)).astype(np.float32)


def test_the_constraint_sees_what_is_raw() -> None:
    """Normalised and clipped, the observation would be at most 5, and the radius at most 5.1."""
    for algorithm in BOTH:
        state = stored(algorithm, SPEC, new(algorithm, SPEC), transitions(20))
        narrow = Spec(3, jnp.full(2, -9.0), jnp.full(2, 9.0), lambda obs: Ball(jnp.full(2, obs[0]), 1.0))  # pyright: ignore[reportArgumentType, reportOptionalSubscript]
        decision = algorithm.act(
            algorithm.policy(state),
            narrow,
            jnp.full(3, 7.5),
            jax.random.key(0),
            explore=True,
        )
        assert np.linalg.norm(decision.executed - 7.5) <= 1.0 + 1e-9


def test_without_it_no_statistics_are_kept() -> None:
    for algorithm in BOTH:
        plain = replace(algorithm, normalised=False)
        state, with_them = (jax.eval_shape(lambda a=a: a.init(jax.random.key(0), SPEC)) for a in (plain, algorithm))
        assert state.statistics is None
        assert plain.policy(state) is state.actor
        assert len(jax.tree.leaves(with_them)) == len(jax.tree.leaves(state)) + 3


@pytest.mark.parametrize(
    "algorithm",
    [
        pytest.param(ddpg(FrankWolfe(0.1)), id="nfwpo", marks=pytest.mark.slow),
        pytest.param(ddpg(PolicyGradient()), id="ddpg", marks=pytest.mark.slow),
        pytest.param(SOFT, id="sac"),
    ],
)
def test_observations_in_thousands_are_learned_from(algorithm: Algorithm) -> None:
    """The probe of `test_probes`, with an observation of a thousand times the radius."""
    spec = Spec(1, LOW, HIGH, lambda obs: Ball(jnp.zeros(2), 1e-3 * obs[0]))  # pyright: ignore[reportArgumentType, reportOptionalSubscript]
    act = trained(replace(algorithm, normalised=True), spec, 2_000, scale=1e3)
    for wanted in (0.25, 0.5, 0.75):
        assert SLOPE @ np.asarray(act(jnp.full(1, 1e3 * wanted))) > 0.9 * wanted


@pytest.mark.slow  # tests/run/test_checkpoint.py asks it of the same driver with another state
def test_restored_it_ends_the_same_bit_for_bit(tmp_path: Path) -> None:
    algorithm, plant = replace(TOY, normalised=True), toy_plant()
    programs = Programs(algorithm, plant.spec)

    def driver() -> Lone:
        made = Lone(algorithm, toy_plant(), seed=3)
        made.programs = programs  # compiled once for all of them
        return made

    whole, first, folder = driver(), driver(), RunFolder(tmp_path)
    whole.start()
    whole.advance(80)
    first.start()
    first.advance(45)
    folder.metrics.write_text("")
    checkpoint.save(folder.checkpoint, [folder], first)
    again = driver()
    checkpoint.restore(folder.checkpoint, [folder], again)
    again.advance(80)
    assert_equal_drivers(again, whole)


class Thousands(SavedDrift):
    """The toy with observations in thousands; the last entry, which the constraint reads, is as it was."""

    def _obs(self) -> np.ndarray:
        return super()._obs() * np.array([1e3, 1e3, 1.0], np.float32)


@pytest.mark.parametrize("make", [fs.NFWPO, pytest.param(fs.SAC, marks=pytest.mark.slow)])
def test_files_and_exports_hold_the_statistics(make: type[fs.NFWPO], tmp_path: Path) -> None:
    """In use they stay as 120 steps left them, and no action that is executed is outside the raw constraint's set."""
    env = fs.constrain(Thousands(), force)
    agent = make(env, warmup=120, batch_size=16, replay_size=100, hidden_layers=(8,), normalised=True).learn(120)  # pyright: ignore[reportArgumentType]
    statistics = agent.policy[1]
    assert isinstance(statistics, Statistics)
    assert int(statistics.count) == 120
    assert float(np.sqrt(statistics.variance)[0]) > 50
    points = np.random.default_rng(0).normal(size=(20, 2)) * 500
    obs = np.column_stack([points, np.full(20, 0.5)]).astype(np.float32)
    actions = agent.predict(obs)
    assert (np.linalg.norm(actions, axis=1) <= 0.5 + 1e-5).all()
    evaluation = agent.evaluate(2, env=lambda: fs.constrain(Thousands(), force))  # pyright: ignore[reportArgumentType]
    assert evaluation.executed_violation <= 1e-5
    assert int(agent.policy[1].count) == 120
    agent.save(tmp_path / "policy.feasible")
    loaded = fs.load(tmp_path / "policy.feasible", env)  # pyright: ignore[reportArgumentType]
    np.testing.assert_array_equal(loaded.predict(obs), actions)
    assert int(loaded.policy[1].count) == 120
    agent.export(tmp_path / "policy.zip")
    with zipfile.ZipFile(tmp_path / "policy.zip") as archive:
        program = jax.export.deserialize(bytearray(archive.read("policy.stablehlo")))
    np.testing.assert_allclose(program.call(obs)["action"], actions, atol=1e-5)
