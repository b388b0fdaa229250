"""PPO, TRPO and FOCOPS: values with time limits, trust regions, multipliers, and what they do not do."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from feasible.algorithms.base import Spec, Transition
from feasible.algorithms.focops import FOCOPS
from feasible.algorithms.gaussian import GaussianPolicy
from feasible.algorithms.on_policy import OnPolicy, OnPolicyState
from feasible.algorithms.ppo import PPO
from feasible.algorithms.trpo import TRPO, fisher_product
from feasible.sets import Ball, Box

LOW, HIGH = np.array([-1.0, 2.0]), np.array([1.0, 5.0])
BALL = Spec(3, jnp.asarray(LOW), jnp.asarray(HIGH), lambda obs: Ball(jnp.asarray([0.0, 3.0]), 0.5), 20)
BOX = replace(BALL, constraint=lambda obs: Box(LOW, HIGH))
SMALL = {"horizon": 32, "minibatch": 8, "epochs": 2, "hidden_layers": (8, 8)}
DUE = frozenset({"rollout"})
KINDS = [PPO(**SMALL), TRPO(**SMALL), FOCOPS(**SMALL)]
each_kind = pytest.mark.parametrize("algorithm", KINDS, ids=lambda a: type(a).__name__)


_COMPILED: dict[tuple[str, str, int], Callable[..., Any]] = {}


def compiled(name: str, algorithm: OnPolicy, spec: Spec, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, compiled once for all tests of the same algorithm and task."""
    return _COMPILED.setdefault((name, repr(algorithm), id(spec.constraint)), jax.jit(function))


def collected(algorithm: OnPolicy, spec: Spec, seed: int = 0) -> OnPolicyState:
    """A state with a full rollout of random observations, some of which end an episode."""
    rng = np.random.default_rng(seed)

    def one(state: OnPolicyState, row: tuple[jax.Array, ...]) -> tuple[OnPolicyState, None]:
        obs, next_obs, reward, terminated, truncated, key = row
        decision = algorithm.act(algorithm.policy(state), spec, obs, key, explore=True)
        gain = reward + decision.executed[0]
        transition = Transition(obs, decision, gain, next_obs, terminated, truncated)
        return algorithm.observe(state, spec, transition), None

    def collect(key: jax.Array, rows: tuple[jax.Array, ...]) -> OnPolicyState:
        return jax.lax.scan(one, algorithm.init(key, spec), rows)[0]

    n = algorithm.horizon
    obs, next_obs = (jnp.asarray(x) for x in rng.normal(size=(2, n, 3)))
    ends = [jnp.asarray(rng.uniform(size=n) < 0.1) for _ in range(2)]
    rows = (obs, next_obs, jnp.asarray(rng.normal(size=n)), *ends, jax.random.split(jax.random.key(seed), n))
    return compiled("collect", algorithm, spec, collect)(jax.random.key(seed), rows)


def updated(algorithm: OnPolicy, spec: Spec, state: OnPolicyState) -> tuple[OnPolicyState, dict[str, float]]:
    update = compiled("update", algorithm, spec, lambda s, k: algorithm.update(s, spec, k, DUE))
    state, metrics = update(state, jax.random.key(9))
    return state, {name: float(value) for name, value in metrics.items()}


@each_kind
def test_recorded_densities_are_of_the_policy_that_acted(algorithm: OnPolicy) -> None:
    """Although the statistics that normalise observations have moved on, every ratio is one before learning."""
    state = collected(algorithm, BALL)
    batch = algorithm.batch(state, BALL)
    normal = jax.vmap(state.actor)(batch.x)
    np.testing.assert_array_equal(algorithm.ratio(normal, batch), np.ones(algorithm.horizon))
    assert float(jnp.abs(batch.sample - batch.clipped).max()) > 0.1


@each_kind
def test_actions_are_executed_through_the_set_at_the_raw_observation(algorithm: OnPolicy) -> None:
    spec = replace(BALL, constraint=lambda obs: Ball(jnp.asarray([0.0, 3.0]), 0.1 + 0.01 * obs[0]))  # pyright: ignore[reportArgumentType, reportOptionalSubscript]
    state = collected(algorithm, spec)
    # By the statistics this observation is clipped to 5; the constraint sees 30, and a radius of 0.4.
    decision = algorithm.act(algorithm.policy(state), spec, jnp.full(3, 30.0), jax.random.key(1), explore=True)
    assert np.linalg.norm(np.asarray(decision.executed) - [0.0, 3.0]) == pytest.approx(0.4, abs=1e-6)
    calm = algorithm.act(algorithm.policy(state), spec, jnp.zeros(3), jax.random.key(1), explore=False)
    np.testing.assert_array_equal(calm.proposed, calm.intended)


@each_kind
@pytest.mark.parametrize("handled", [True, False])
def test_value_without_end_is_that_of_the_discount(algorithm: OnPolicy, handled: bool) -> None:
    """Reward 1 at every step, a time limit every 5: V = 1/(1 - 0.9), unless the limit is taken for an end."""
    algorithm = replace(algorithm, discount=0.9, rate=2e-2, epochs=30, normalised=False)
    obs = jnp.ones(3)

    def learn(state: OnPolicyState, key: jax.Array, handled: jax.Array) -> OnPolicyState:
        def one(state: OnPolicyState, place: jax.Array) -> tuple[OnPolicyState, None]:
            ends = place % 5 == 4
            decision = algorithm.act(
                algorithm.policy(state), BALL, obs, jax.random.fold_in(jax.random.key(0), place), explore=True
            )
            transition = Transition(obs, decision, jnp.ones(()), obs, ends & ~handled, ends & handled)
            return algorithm.observe(state, BALL, transition), None

        state = jax.lax.scan(one, state, jnp.arange(algorithm.horizon))[0]
        return algorithm.update(state, BALL, key, DUE)[0]

    state = algorithm.init(jax.random.key(0), BALL)
    for k in range(30):
        state = compiled("learn", algorithm, BALL, learn)(state, jax.random.key(k), jnp.asarray(handled))
    value = float(state.critics[0](obs)[0])
    if handled:
        assert value == pytest.approx(10.0, rel=0.05)
    else:
        assert value < 5.0


@each_kind
def test_an_update_learns_and_leaves_the_rest(algorithm: OnPolicy) -> None:
    state = collected(algorithm, BALL)
    after, metrics = updated(algorithm, BALL, state)
    assert all(np.isfinite(value) for value in metrics.values())
    moved = ravel_pytree(after.actor)[0] - ravel_pytree(state.actor)[0]
    assert float(jnp.abs(moved).max()) > 0
    for ours, theirs in zip(jax.tree.leaves(after.statistics), jax.tree.leaves(state.statistics), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(after.rollout.rows, state.rollout.rows)


@each_kind
def test_better_actions_become_likelier(algorithm: OnPolicy) -> None:
    """The reward grows with the first entry of the action, and so does the policy's mean of it."""
    algorithm = replace(algorithm, horizon=256, epochs=5)
    state = collected(algorithm, BOX)
    after, _ = updated(algorithm, BOX, state)
    probe = jax.random.normal(jax.random.key(5), (100, 3))
    before = float(jax.vmap(state.actor)(probe).mean[:, 0].mean())
    assert float(jax.vmap(after.actor)(probe).mean[:, 0].mean()) > before


@pytest.mark.parametrize("bound", [0.01, 2.0])
def test_trust_region_holds_and_the_surrogate_grows(bound: float) -> None:
    """Of the larger bound, to which the quadratic model leads too far, steps have to be halved."""
    algorithm = TRPO(**{**SMALL, "horizon": 128}, divergence=bound)
    improve, halved = compiled("improve", algorithm, BALL, algorithm.improve), []
    for seed in range(4):
        state = collected(algorithm, BALL, seed)
        batch = compiled("batch", algorithm, BALL, lambda s: algorithm.batch(s, BALL))(state)
        actor, metrics = improve(state.actor, batch)
        normal = jax.vmap(actor)(batch.x)
        p, q = batch.before, normal
        spread, shift = np.exp(2 * (p.log_std - q.log_std)), np.asarray(p.mean - q.mean) ** 2 / np.exp(2 * q.log_std)
        divergence = np.mean(np.sum(0.5 * (spread + shift - 1) + np.asarray(q.log_std - p.log_std), axis=1))
        assert float(metrics["actor/divergence"]) == pytest.approx(divergence)
        assert 0.1 * bound < divergence <= bound
        halved.append(float(metrics["actor/halvings"]))
        assert float(jnp.mean(algorithm.ratio(normal, batch) * batch.advantages[:, 0])) > 0
    assert any(halved) == (bound > 1)


def test_a_step_that_nothing_accepts_is_not_made() -> None:
    """Without advantages no step makes the surrogate grow."""
    algorithm = TRPO(**{**SMALL, "horizon": 128})
    state = collected(algorithm, BALL)
    batch = compiled("batch", algorithm, BALL, lambda s: algorithm.batch(s, BALL))(state)
    batch = eqx.tree_at(lambda b: b.advantages, batch, jnp.zeros((128, 1)))
    actor, metrics = compiled("improve", algorithm, BALL, algorithm.improve)(state.actor, batch)
    np.testing.assert_array_equal(ravel_pytree(actor)[0], ravel_pytree(state.actor)[0])
    assert int(metrics["actor/halvings"]) == algorithm.halvings


def test_fisher_product_is_that_of_the_dense_matrix() -> None:
    """E[score score'] of each distribution, the expectation by Gauss-Hermite quadrature, which is exact here."""
    policy = GaussianPolicy(2, 1, (3,), "tanh", jax.random.key(0), log_std=-0.3, bounded=True)
    policy = jax.tree.map(lambda leaf: leaf.astype(jnp.float64) + 0.1, policy)
    vector, rebuilt = ravel_pytree(policy)
    x = jax.random.normal(jax.random.key(1), (5, 2), jnp.float64)
    nodes, weights = np.polynomial.hermite_e.hermegauss(8)
    dense = np.zeros((len(vector), len(vector)))
    score = jax.jit(jax.grad(lambda v, row, sample: rebuilt(v)(row).log_density(sample)))
    for row in x:
        normal = policy(row)
        for node, weight in zip(nodes, weights / weights.sum(), strict=True):
            each = score(vector, row, normal.mean + jnp.exp(normal.log_std) * node)
            dense += weight * np.outer(each, each) / len(x)
    product = fisher_product(lambda v: jax.vmap(rebuilt(v))(x), vector)
    ours = np.asarray(jax.vmap(product)(jnp.eye(len(vector))))
    np.testing.assert_allclose(ours, dense, atol=1e-10)


@pytest.mark.parametrize(("radius", "start", "rises"), [(0.01, 0.0, True), (100.0, 1.0, False)])
def test_the_multiplier_follows_the_cost(radius: float, start: float, rises: bool) -> None:
    """Proposals outside a tiny ball cost more than the limit, inside a huge one less."""
    algorithm = FOCOPS(**SMALL)
    spec = replace(BALL, constraint=lambda obs: Ball(jnp.asarray([0.0, 3.0]), radius))
    state = eqx.tree_at(lambda s: s.multipliers, collected(algorithm, spec), jnp.full(1, start))
    after, metrics = updated(algorithm, spec, state)
    discounted = (1 - 0.99**20) / (1 - 0.99)
    rows = np.asarray(state.rollout.rows)
    centre, half = (LOW + HIGH) / 2, (HIGH - LOW) / 2
    proposed = np.clip(centre + half * rows[:, 3:5], LOW, HIGH)
    cost = discounted * np.mean(np.linalg.norm(proposed - [0.0, 3.0], axis=1) - radius)
    assert metrics["actor/cost"] == pytest.approx(cost, rel=1e-6)
    assert (cost > 0) == rises
    expected = np.clip(start + 1e-3 * cost, 0.0, 2.0)
    assert metrics["actor/multiplier"] == pytest.approx(expected, rel=1e-6)
    assert (float(after.multipliers[0]) > start) == rises


def test_a_multiplier_makes_costly_actions_rarer() -> None:
    """With the reward the same everywhere only the cost decides, and proposals draw near the ball."""
    algorithm = FOCOPS(**{**SMALL, "horizon": 256, "epochs": 20}, multiplier_rate=1.0, divergence=1.0, reach=1.0)
    spec = replace(BALL, constraint=lambda obs: Ball(jnp.asarray([0.9, 3.5]), 0.05))
    state = collected(algorithm, spec)
    rows = state.rollout.rows.at[:, 10].set(0.0)  # the reward
    state = eqx.tree_at(lambda s: s.rollout.rows, state, rows)
    after, metrics = updated(algorithm, spec, state)
    assert metrics["actor/multiplier"] == 2.0
    probe = jax.random.normal(jax.random.key(5), (100, 3))
    assert jax.vmap(after.actor)(probe).mean[:, 0].mean() > jax.vmap(state.actor)(probe).mean[:, 0].mean()


def test_passes_end_once_the_policy_has_come_too_far() -> None:
    algorithm = FOCOPS(**{**SMALL, "epochs": 40}, divergence=1e-4)
    _, metrics = updated(algorithm, BALL, collected(algorithm, BALL))
    assert 1 <= metrics["actor/passes"] < 40
    assert metrics["actor/divergence"] > 1e-4


@pytest.mark.parametrize("kind", [PPO, TRPO])
def test_clipped_densities_are_for_boxes_only(kind: type[OnPolicy]) -> None:
    with pytest.raises(ValueError, match=r"capg needs a Box .* has a Ball; leave capg out, or use nfwpo"):
        kind(**SMALL, capg=True).init(jax.random.key(0), BALL)  # pyright: ignore[reportArgumentType]
    algorithm = kind(**SMALL, capg=True)  # pyright: ignore[reportArgumentType]
    state = collected(algorithm, BOX)
    batch = algorithm.batch(state, BOX)
    changed = np.asarray(batch.sample != batch.clipped)
    assert changed.any()
    np.testing.assert_allclose(np.abs(np.asarray(batch.clipped))[changed], 1.0, rtol=1e-12)
    assert np.abs(np.asarray(batch.clipped)).max() <= 1.0
    _, metrics = updated(algorithm, BOX, state)
    assert all(np.isfinite(value) for value in metrics.values())


def test_settings_that_do_not_go_together_are_named() -> None:
    with pytest.raises(ValueError, match=r"PPO: horizon must be a multiple of copies = 3, not 32\."):
        replace(KINDS[0], copies=3).init(jax.random.key(0), BALL)
    with pytest.raises(ValueError, match=r"TRPO: minibatch must be at most horizon = 32, not 33\."):
        replace(KINDS[1], minibatch=33).init(jax.random.key(0), BALL)
    with pytest.raises(ValueError, match=r"PPO: warmup must be 0, not 5: rollouts are of the policy from the start\."):
        replace(KINDS[0], warmup=5).init(jax.random.key(0), BALL)
