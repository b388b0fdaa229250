"""SAC: densities by integration, targets by a plain loop, the entropy's weight, and a task with a known answer."""

from dataclasses import replace
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array
from numpy.typing import NDArray

from feasible.algorithms.base import Decision, Metrics, Spec, Transition
from feasible.algorithms.gaussian import SquashedGaussian
from feasible.algorithms.replay import Batch
from feasible.algorithms.sac import SAC, SACState
from feasible.sets import Ball, Box, Polytope
from tests.algorithms.plain import critic_value, new, random_transition, stored

LOW, HIGH = np.array([-1.0, 2.0]), np.array([1.0, 5.0])
SPEC = Spec(3, jnp.asarray(LOW), jnp.asarray(HIGH), lambda obs: Box(LOW, HIGH))
SMALL = SAC(
    warmup=0, learning_starts=0, interval=3, updates=3, batch_size=4, replay_size=16, hidden_layers=(8, 8), rate=3e-3
)


@eqx.filter_jit
def heads(actor: SquashedGaussian, obs: Array) -> tuple[Array, Array]:
    return actor(obs)


@eqx.filter_jit
def sample(actor: SquashedGaussian, obs: Array, key: Array) -> tuple[Array, Array]:
    return actor.sample(obs, key, SPEC.low, SPEC.high)


@eqx.filter_jit
def act(spec: Spec, state: SACState, obs: Array, explore: bool) -> Decision:
    return SMALL.act(SMALL.policy(state), spec, obs, jax.random.key(1), explore=explore)


@eqx.filter_jit
def update(algorithm: SAC, state: SACState, spec: Spec = SPEC, seed: int = 1) -> tuple[SACState, Metrics]:
    return algorithm.update(state, spec, jax.random.key(seed), frozenset({"networks"}))


def squashed(actor: SquashedGaussian, obs: NDArray, u: NDArray) -> tuple[NDArray, float]:
    """The action of u and the logarithm of its density, by the change of variables written out."""
    mean, log_std = (np.asarray(x) for x in heads(actor, jnp.asarray(obs)))
    action = LOW + (HIGH - LOW) * (np.tanh(u) + 1) / 2
    normal = -0.5 * ((u - mean) / np.exp(log_std)) ** 2 - log_std - 0.5 * np.log(2 * np.pi)
    return action, float(np.sum(normal - np.log((HIGH - LOW) / 2 * (1 - np.tanh(u) ** 2))))


def sampled(actor: SquashedGaussian, obs: NDArray, key: Array) -> tuple[NDArray, float]:
    action, density = sample(actor, jnp.asarray(obs), key)
    return np.asarray(action), float(density)


@pytest.fixture(scope="module")
def actor() -> SquashedGaussian:
    @eqx.filter_jit
    def made() -> SquashedGaussian:
        net = SquashedGaussian(3, 2, (8,), "relu", jax.random.key(3))
        return jax.tree.map(lambda leaf: leaf.astype(jnp.float64), net)

    return made()


@pytest.fixture(scope="module")
def filled() -> SACState:
    rng = np.random.default_rng(0)
    made = [random_transition(rng, SPEC, terminated=k == 3, truncated=k == 4) for k in range(6)]
    return stored(SMALL, SPEC, new(SMALL, SPEC), made)


def test_log_density_is_that_of_the_change_of_variables(actor: SquashedGaussian) -> None:
    rng = np.random.default_rng(1)
    for k in range(20):
        obs, key = rng.normal(size=3), jax.random.key(k)
        action, density = sampled(actor, obs, key)
        mean, log_std = (np.asarray(x) for x in heads(actor, jnp.asarray(obs)))
        u = mean + np.exp(log_std) * np.asarray(jax.random.normal(key, (2,), jnp.float64))
        theirs = squashed(actor, obs, u)
        np.testing.assert_allclose(action, theirs[0], rtol=1e-12)
        assert density == pytest.approx(theirs[1], abs=1e-9)
        assert (action > LOW).all()
        assert (action < HIGH).all()


def test_density_far_out_is_finite(actor: SquashedGaussian) -> None:
    """tanh is 1 to the last bit at u = 40, where the logarithm of 1 - tanh^2 written out is minus infinity."""
    far = eqx.tree_at(lambda net: net.mean.bias, actor, jnp.full(2, 40.0))
    gradient = eqx.filter_jit(jax.grad(lambda net: sample(net, jnp.zeros(3), jax.random.key(0))[1]))(far)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient))
    assert np.isfinite(sampled(far, np.zeros(3), jax.random.key(0))[1])


def test_critic_loss_is_that_of_a_plain_loop(filled: SACState) -> None:
    rng = np.random.default_rng(2)
    arrays = [rng.normal(size=(4, n)) for n in (3, 2, 2, 3)]
    obs, proposed, executed, next_obs = (jnp.asarray(x) for x in arrays)
    reward, continues = jnp.asarray(rng.normal(size=4)), jnp.asarray([1.0, 0.0, 1.0, 1.0])
    batch = Batch(obs, proposed, executed, next_obs, reward, continues)
    keys = jax.random.split(jax.random.key(7), 4)
    ours = jax.jit(lambda state: SMALL.critic_loss(state.critics, state, SPEC, batch, keys))(filled)
    theirs = 0.0
    for k in range(4):
        action, density = sampled(filled.actor, arrays[3][k], keys[k])
        least = min(critic_value(net, arrays[3][k], action) for net in filled.target_critics)
        in_the_box = density + np.log((HIGH - LOW) / 2).sum()
        target = float(reward[k]) + 0.99 * float(continues[k]) * (least - 0.2 * in_the_box)
        theirs += sum((critic_value(net, arrays[0][k], arrays[2][k]) - target) ** 2 for net in filled.critics) / 4
    assert float(ours) == pytest.approx(theirs, rel=1e-9)


def test_update_learns_from_as_many_batches_as_it_says(filled: SACState) -> None:
    updated, metrics = update(SMALL, filled)
    counts = [int(leaf) for leaf in jax.tree.leaves(updated.actor_optimiser) if leaf.shape == ()]
    assert counts == [3]
    np.testing.assert_array_equal(updated.replay.rows, filled.replay.rows)
    assert updated.log_weight == filled.log_weight
    assert set(metrics) == {"actor/loss", "actor/entropy", "actor/entropy_weight", "critic/loss"}


@pytest.mark.parametrize(("target", "grows"), [(100.0, True), (-100.0, False)])
def test_weight_moves_towards_the_wanted_entropy(filled: SACState, target: float, grows: bool) -> None:
    """Less entropy than wanted makes it dearer, more makes it cheaper."""
    updated, _ = update(replace(SMALL, entropy_target=jnp.asarray(target)), filled)  # pyright: ignore[reportArgumentType]
    assert (float(updated.log_weight) > float(filled.log_weight)) == grows


@pytest.mark.parametrize("map", ["squash", "radial", "truncated"])
def test_the_automatic_entropy_has_no_unit(map: Literal["squash", "radial", "truncated"]) -> None:
    """In a hundredfold box the same policy has an entropy larger by d log 100, and so much more is asked of it.

    The critics' targets do not change: else to live would be worth more in it. They are seen where all values are zero.
    """
    algorithm = replace(SMALL, map=map, entropy_target="auto")
    asked, had, targets = [], [], []
    for unit in (1.0, 100.0):
        low, high = jnp.asarray([-unit, 0.0, -unit]), jnp.asarray([unit, 2 * unit, unit])
        plane = Polytope([[1.0, -1.0, 0.0]], [2 * unit], low, high, [[1.0, 1.0, 1.0]], [unit])
        spec = Spec(3, low, high, lambda obs, plane=plane: plane)
        state = new(algorithm, spec)
        batch = Batch(jnp.ones((4, 3)), *jnp.zeros((3, 4, 3)), *jnp.zeros((2, 4)))  # pyright: ignore[reportArgumentType]
        loss = eqx.filter_jit(algorithm.actor_loss)
        had.append(loss(state.actor, state, spec, batch, jax.random.split(jax.random.key(0), 4))[1])
        asked.append(algorithm.wanted_entropy(spec, "auto"))
        nothing = jax.tree.map(jnp.zeros_like, state.critics)
        state = eqx.tree_at(lambda s: s.target_critics, state, nothing)
        onward = eqx.tree_at(lambda b: b.continues, batch, jnp.ones(4))
        loss = eqx.filter_jit(algorithm.critic_loss)
        targets.append(loss(nothing, state, spec, onward, jax.random.split(jax.random.key(1), 4)))
    d = 3 if map == "squash" else 2
    assert float(asked[0]) == pytest.approx(-d)
    assert float(asked[1] - asked[0]) == pytest.approx(float(had[1] - had[0]), rel=1e-5)
    assert float(asked[1] - asked[0]) == pytest.approx(d * np.log(100.0))
    assert float(targets[0]) > 0
    assert float(targets[1]) == pytest.approx(float(targets[0]), rel=1e-5)


def test_the_automatic_entropy_leaves_out_coordinates_without_room() -> None:
    spec = Spec(1, jnp.asarray([0.0, 3.0]), jnp.asarray([8.0, 3.0]), lambda obs: Box([0.0, 3.0], [8.0, 3.0]))
    assert float(SMALL.wanted_entropy(spec, "auto")) == pytest.approx(-2 + np.log(4.0))
    assert SMALL.wanted_entropy(spec, -5.0) == -5.0


def test_actions_are_executed_through_the_set_and_both_are_kept() -> None:
    spec = replace(SPEC, constraint=lambda obs: Ball(jnp.asarray([0.0, 3.0]), 0.1))
    state = new(SMALL, SPEC)
    decision = act(spec, state, jnp.zeros(3), explore=True)
    assert np.linalg.norm(np.asarray(decision.executed) - [0.0, 3.0]) <= 0.1 + 1e-9
    assert np.linalg.norm(np.asarray(decision.proposed) - [0.0, 3.0]) > 0.1
    calm = act(spec, state, jnp.zeros(3), explore=False)
    np.testing.assert_array_equal(calm.proposed, calm.intended)


def test_it_finds_the_best_action_of_a_one_step_task() -> None:
    """Reward -(a - 0.5)^2 in one step: with little weight on entropy the mode comes to 0.5."""
    low, high = jnp.full(1, -1.0), jnp.full(1, 1.0)
    spec = Spec(1, low, high, lambda obs: Box(low, high))
    algorithm = replace(
        SMALL, entropy_weight=0.01, batch_size=32, replay_size=256, updates=1000, hidden_layers=(32, 32)
    )
    one, made = jnp.ones(1), []
    for action in np.random.default_rng(0).uniform(-1, 1, (256, 1)):
        a, reward = jnp.asarray(action), jnp.asarray(-np.square(action[0] - 0.5))
        made.append(Transition(one, Decision(a, a, a), reward, one, jnp.array(True), jnp.array(False)))
    state, _ = update(algorithm, stored(algorithm, spec, new(algorithm, spec), made), spec, 2)
    mode = act(spec, state, one, explore=False).executed
    assert float(mode[0]) == pytest.approx(0.5, abs=0.08)
