"""Tabular FWPO and its baselines on bike allocations against plain loops over the cells."""

from functools import partial
from itertools import product

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array
from numpy.typing import NDArray

from feasible.algorithms.actor_rules import FrankWolfe, PolicyGradient
from feasible.algorithms.base import Decision, Spec, Transition
from feasible.algorithms.fwpo_critic import BikeTable, TableState
from feasible.algorithms.nets import Critic
from feasible.sets import IntegerAllocation
from tests.algorithms.plain import critic_value, new

STATIONS = IntegerAllocation(90.0, np.zeros(3, np.float32), np.full(3, 35.0, np.float32))
SPEC = Spec(7, jnp.zeros(3, jnp.float32), jnp.full(3, 35.0, jnp.float32), lambda obs: STATIONS, 100)
ALPHA = 0.05
ALLOCATIONS = np.array([a for a in product(range(36), repeat=3) if sum(a) == 90], np.float32)


def fwpo(**settings: object) -> BikeTable:
    defaults = {"replay_size": 32, "batch_size": 8, "hidden_layers": (20,)}
    return BikeTable(rule=FrankWolfe(ALPHA), bikes=90, low=20, high=35, **{**defaults, **settings})  # pyright: ignore[reportArgumentType]


def lively(algorithm: BikeTable) -> TableState:
    """A state whose critic prefers different corners in different cells, and whose table is feasible at random."""
    state = new(algorithm, SPEC)
    rng = np.random.default_rng(0)
    mixes = rng.dirichlet(np.ones(len(ALLOCATIONS)), size=len(ALLOCATIONS))
    table = jnp.asarray(mixes @ ALLOCATIONS, jnp.float32)
    weights, action_weights = (jnp.asarray(rng.normal(size=(3, 20)), jnp.float32) for _ in range(2))
    # Every unit has its kink among the allocations, which are 30 bikes a station on average.
    bias = -30.0 * (weights.sum(0) + action_weights.sum(0))

    def changed(s: TableState) -> tuple[Array, ...]:
        return s.table, s.target_table, s.critic.layers[0].weight, s.critic.layers[0].bias, s.critic.action_weight

    return eqx.tree_at(changed, state, (table, table[::-1], weights, bias, action_weights))


def action_gradient(critic: Critic, obs: NDArray, action: NDArray) -> NDArray:
    """Of a critic of one hidden layer of ReLUs: W_a (v * [active])."""
    first, last = critic.layers
    before = obs @ np.asarray(first.weight) + action @ np.asarray(critic.action_weight) + np.asarray(first.bias)
    return np.asarray(critic.action_weight) @ (np.asarray(last.weight)[:, 0] * (before > 0))


def test_there_are_136_cells_each_found_by_its_allocation() -> None:
    algorithm = fwpo()
    assert len(ALLOCATIONS) == 136
    np.testing.assert_array_equal(algorithm.allocations, ALLOCATIONS)
    np.testing.assert_array_equal(jax.vmap(algorithm.cell)(jnp.asarray(ALLOCATIONS)), np.arange(136))
    np.testing.assert_array_equal(algorithm.bikes_of(jnp.arange(7.0, dtype=jnp.float32)), [3.0, 4.0, 5.0])


def test_the_table_starts_where_the_authors_starts() -> None:
    state = new(fwpo(), SPEC)
    np.testing.assert_array_equal(state.table, np.tile([20.0, 35.0, 35.0], (136, 1)))
    np.testing.assert_array_equal(state.table, state.target_table)


def test_cells_move_towards_the_best_corner_by_alpha_and_stay_feasible() -> None:
    algorithm = fwpo()
    state = lively(algorithm)
    update = jax.jit(partial(algorithm.update, due=frozenset({"table"})))
    corners = set()
    for _ in range(3):
        moved, metrics = update(state, SPEC, jax.random.key(1))
        expected = np.empty((136, 3))
        for cell, (allocation, theta) in enumerate(zip(ALLOCATIONS, np.asarray(state.table, np.float64), strict=True)):
            # The maximum of a linear function over the hull is at one of its integer points.
            g = action_gradient(state.critic, allocation, theta)
            assert np.abs(g).max() > 1e-2  # or all points were maximisers
            c = ALLOCATIONS[np.argmax(ALLOCATIONS @ g)]
            corners.add(tuple(c))
            expected[cell] = theta + ALPHA * (c - theta)
        np.testing.assert_allclose(moved.table, expected, atol=2e-5)
        distance = np.linalg.norm(np.round(np.asarray(moved.table)) - ALLOCATIONS, axis=1).sum()
        assert float(metrics["policy/distance_to_optimal"]) == pytest.approx(distance, rel=1e-5)
        assert float(metrics["actor/frank_wolfe_gap"]) > 0
        np.testing.assert_array_equal(moved.target_table, state.target_table)
        state = moved
    assert len(corners) > 1
    table = np.asarray(state.table)
    np.testing.assert_allclose(table.sum(1), 90, atol=1e-4)
    assert table.min() >= 20 - 1e-4
    assert table.max() <= 35 + 1e-4


def test_staying_put_is_at_distance_zero() -> None:
    algorithm = BikeTable(rule=FrankWolfe(0.0), bikes=90, low=20, high=35, replay_size=2)
    state = jax.jit(lambda key: algorithm.init(key, SPEC))(jax.random.key(0))
    put = eqx.tree_at(lambda s: s.table, state, jnp.asarray(ALLOCATIONS))
    update = jax.jit(partial(algorithm.update, due=frozenset({"table"})))
    for table, expected in ((put, 0.0), (state, np.linalg.norm([20, 35, 35] - ALLOCATIONS, axis=1).sum())):
        _, metrics = update(table, SPEC, jax.random.key(0))
        assert float(metrics["policy/distance_to_optimal"]) == pytest.approx(expected, rel=1e-5)


def test_the_baseline_s_cells_move_by_adam_along_the_critic_s_gradient() -> None:
    algorithm = eqx.tree_at(lambda a: a.rule, fwpo(table_rate=0.5), PolicyGradient())
    state = lively(algorithm)
    moved, _ = jax.jit(partial(algorithm.update, due=frozenset({"table"})))(state, SPEC, jax.random.key(1))
    for allocation, theta, after in zip(ALLOCATIONS, np.asarray(state.table), np.asarray(moved.table), strict=True):
        g = action_gradient(state.critic, allocation, theta)
        np.testing.assert_allclose(after, theta + 0.5 * np.sign(g), atol=1e-3)


def random_transition(rng: np.random.Generator, proposed: NDArray) -> Transition:
    obs, next_obs = (np.concatenate([rng.integers(0, 20, 3), rng.choice(ALLOCATIONS), [7]]) for _ in range(2))
    action = rng.choice(ALLOCATIONS)
    before, after, made, wanted, reward = (
        jnp.asarray(x, jnp.float32) for x in (obs, next_obs, action, proposed, rng.normal())
    )
    no = jnp.zeros((), bool)
    return Transition(before, Decision(wanted, made, wanted), reward, after, terminated=no, truncated=~no)


def test_the_critic_s_loss_is_that_of_a_plain_loop_and_its_target_follows() -> None:
    algorithm = fwpo(discount=0.7, target_ratio=0.1)
    state, rng, observe = lively(algorithm), np.random.default_rng(1), jax.jit(algorithm.observe)
    for _ in range(20):
        state = observe(state, SPEC, random_transition(rng, rng.uniform(0, 35, 3)))
    batch, errors = jax.jit(algorithm.batch)(state.replay, SPEC, jax.random.key(2)), []
    for i in range(8):
        bikes, after = np.asarray(batch.obs[i])[3:6], np.asarray(batch.next_obs[i])[3:6]
        cell = int(np.flatnonzero((after == ALLOCATIONS).all(1))[0])
        future = critic_value(state.target_critic, after, np.asarray(state.target_table[cell]))
        target = float(batch.reward[i]) + 0.7 * future
        errors.append(critic_value(state.critic, bikes, np.asarray(batch.executed[i])) - target)
    update = jax.jit(partial(algorithm.update, due=frozenset({"critic"})))
    moved, metrics = update(state, SPEC, jax.random.key(2))
    assert float(metrics["critic/loss"]) == pytest.approx(np.mean(np.square(errors)), rel=1e-4)
    np.testing.assert_array_equal(moved.table, state.table)
    online, old, target = (
        np.asarray(s.layers[0].weight) for s in (moved.critic, state.target_critic, moved.target_critic)
    )
    np.testing.assert_allclose(target, 0.9 * old + 0.1 * online, rtol=1e-4, atol=1e-6)


def test_the_target_table_is_a_copy_when_due() -> None:
    algorithm = fwpo()
    state = lively(algorithm)
    update = jax.jit(algorithm.update, static_argnames="due")
    copied, metrics = update(state, SPEC, jax.random.key(0), due=frozenset({"target_table"}))
    np.testing.assert_array_equal(copied.target_table, state.table)
    assert not metrics
    both, _ = update(state, SPEC, jax.random.key(0), due=frozenset({"table", "target_table"}))
    np.testing.assert_array_equal(both.target_table, both.table)
    assert not np.array_equal(both.table, state.table)
    assert fwpo().intervals == {"critic": 25, "table": 50, "target_table": 100}


def test_shaping_is_the_distance_to_the_hull() -> None:
    algorithm, rng = fwpo(shaping=2.0), np.random.default_rng(3)
    transition = random_transition(rng, np.array([25.0, 25.0, 25.0]))
    state = jax.jit(algorithm.observe)(new(algorithm, SPEC), SPEC, transition)
    # (25, 25, 25) is 5 bikes a station short: its projection is (30, 30, 30).
    assert float(state.replay.rows[0, -2]) == pytest.approx(float(transition.reward) - 2 * 75**0.5, rel=1e-5)


def test_one_in_ten_proposals_is_any_allocation() -> None:
    algorithm = fwpo()
    state = lively(algorithm)
    obs = jnp.asarray([0, 0, 0, *ALLOCATIONS[40], 0], jnp.float32)
    keys = jax.random.split(jax.random.key(4), 20_000)
    act = jax.jit(jax.vmap(partial(algorithm.act, explore=True), in_axes=(None, None, None, 0)))
    decision = act(algorithm.policy(state), SPEC, obs, keys)
    np.testing.assert_array_equal(decision.intended, np.tile(state.table[40], (20_000, 1)))
    drawn = np.asarray(decision.proposed)[(np.asarray(decision.proposed) != np.asarray(decision.intended)).any(1)]
    assert len(drawn) / 20_000 == pytest.approx(0.1, abs=4 * (0.1 * 0.9 / 20_000) ** 0.5)
    kinds, counts = np.unique(drawn, axis=0, return_counts=True)
    assert len(kinds) == 136
    assert counts.max() < 45  # 15 each on average
    # Executed are whole bikes, 90 of them.
    executed = np.asarray(decision.executed)
    np.testing.assert_array_equal(executed, np.round(executed))
    np.testing.assert_array_equal(executed.sum(1), 90)
    calm = jax.jit(partial(algorithm.act, explore=False))(algorithm.policy(state), SPEC, obs, keys[0])
    np.testing.assert_array_equal(calm.proposed, state.table[40])


def test_a_task_of_another_size_is_refused() -> None:
    other = Spec(11, jnp.zeros(5, jnp.float32), jnp.ones(5, jnp.float32), SPEC.constraint)
    with pytest.raises(ValueError, match="stations is 3, but the task has actions of size 5"):
        fwpo().init(jax.random.key(0), other)
