"""PPO, TRPO and FOCOPS: values with time limits, trust regions, multipliers, and what they do not do."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from feasible.algorithms.base import Decision, Metrics, Spec, Transition
from feasible.algorithms.focops import FOCOPS
from feasible.algorithms.gaussian import GaussianPolicy, Normal
from feasible.algorithms.on_policy import Batch, OnPolicy, OnPolicyState
from feasible.algorithms.ppo import PPO
from feasible.algorithms.rollout import Step as RolloutStep
from feasible.algorithms.rollout import broken_off, no_rollout, record, steps
from feasible.algorithms.trpo import TRPO, fisher_product
from feasible.sets import Ball, Box

LOW, HIGH = np.array([-1.0, 2.0]), np.array([1.0, 5.0])
BOX = Spec(3, jnp.asarray(LOW), jnp.asarray(HIGH), lambda obs: Box(LOW, HIGH), 20)
# Centre, radius and its slope by the first observation: numbers of a program, so that one serves all balls.
BALL = jnp.asarray([0.0, 3.0, 0.5, 0.0])
WIDE = BALL.at[2].set(100.0)
SMALL = {"horizon": 128, "minibatch": 8, "epochs": 5, "hidden_layers": (8,)}
DUE = frozenset({"rollout"})


def focops(**settings: float) -> FOCOPS:
    """One program serves all settings of FOCOPS that are numbers."""
    numbers = {"divergence": 0.02, "reach": 0.02, "multiplier_rate": 1e-3, **settings}
    epochs = jnp.asarray(numbers.pop("epochs", 5), jnp.int32)
    return FOCOPS(**{**SMALL, "epochs": epochs}, **{name: jnp.asarray(value) for name, value in numbers.items()})  # pyright: ignore[reportArgumentType]


KINDS = [PPO(**SMALL), TRPO(**SMALL), focops()]
each_kind = pytest.mark.parametrize("algorithm", KINDS, ids=lambda a: type(a).__name__)


def task(ball: jax.Array | None) -> Spec:
    """The task with actions in a ball, or else in the box."""
    if ball is None:
        return BOX
    return replace(BOX, constraint=lambda obs: Ball(ball[:2], ball[2] + ball[3] * obs[0]))


@eqx.filter_jit
def act(
    algorithm: OnPolicy, ball: jax.Array, state: OnPolicyState, obs: jax.Array, key: jax.Array, explore: bool
) -> Decision:
    return algorithm.act(algorithm.policy(state), task(ball), obs, key, explore=explore)


@eqx.filter_jit
def batch_of(algorithm: OnPolicy, ball: jax.Array | None, state: OnPolicyState) -> tuple[Batch, jax.Array]:
    """The whole rollout, and the ratios before learning."""
    batch = algorithm.batch(state, task(ball))
    return batch, algorithm.ratio(jax.vmap(state.actor)(batch.x), batch)


@eqx.filter_jit
def collect(algorithm: OnPolicy, ball: jax.Array | None, key: jax.Array, rows: tuple[jax.Array, ...]) -> OnPolicyState:
    spec = task(ball)

    def one(state: OnPolicyState, row: tuple[jax.Array, ...]) -> tuple[OnPolicyState, None]:
        obs, next_obs, reward, terminated, truncated, key = row
        decision = algorithm.act(algorithm.policy(state), spec, obs, key, explore=True)
        gain = reward + decision.executed[0]
        transition = Transition(obs, decision, gain, next_obs, terminated, truncated)
        return algorithm.observe(state, spec, transition), None

    keys = jax.random.split(key, algorithm.horizon)
    return jax.lax.scan(one, algorithm.init(key, spec), (*rows, keys))[0]


def collected(algorithm: OnPolicy, ball: jax.Array | None, seed: int = 0) -> OnPolicyState:
    """A state with a full rollout of random observations, some of which end an episode."""
    rng, n = np.random.default_rng(seed), algorithm.horizon
    obs, next_obs = rng.normal(size=(2, n, 3))
    ends = [rng.uniform(size=n) < 0.1 for _ in range(2)]
    rows = tuple(jnp.asarray(x) for x in (obs, next_obs, rng.normal(size=n), *ends))
    return collect(algorithm, ball, jax.random.key(seed), rows)


@eqx.filter_jit
def update(algorithm: OnPolicy, ball: jax.Array | None, state: OnPolicyState) -> tuple[OnPolicyState, Metrics]:
    return algorithm.update(state, task(ball), jax.random.key(9), DUE)


def updated(
    algorithm: OnPolicy, ball: jax.Array | None, state: OnPolicyState
) -> tuple[OnPolicyState, dict[str, float]]:
    state, metrics = update(algorithm, ball, state)
    return state, {name: float(value) for name, value in metrics.items()}


def first_mean(state: OnPolicyState) -> float:
    """The first entry of the policy's mean, over a hundred observations."""
    probe = jnp.asarray(np.random.default_rng(5).normal(size=(100, 3)))
    return float(np.mean(means(state.actor, probe)[:, 0]))


@eqx.filter_jit
def means(actor: GaussianPolicy, x: jax.Array) -> jax.Array:
    return jax.vmap(actor)(x).mean


@each_kind
def test_recorded_densities_are_of_the_policy_that_acted(algorithm: OnPolicy) -> None:
    """Although the statistics that normalise observations have moved on, every ratio is one before learning."""
    batch, ratios = batch_of(algorithm, BALL, collected(algorithm, BALL))
    np.testing.assert_array_equal(ratios, np.ones(algorithm.horizon))
    assert np.abs(np.asarray(batch.sample) - np.asarray(batch.clipped)).max() > 0.1


@each_kind
def test_actions_are_executed_through_the_set_at_the_raw_observation(algorithm: OnPolicy) -> None:
    ball = jnp.asarray([0.0, 3.0, 0.1, 0.01])
    state = collected(algorithm, ball)
    # By the statistics this observation is clipped to 5; the constraint sees 30, and a radius of 0.4.
    decision = act(algorithm, ball, state, jnp.full(3, 30.0), jax.random.key(1), explore=True)
    assert np.linalg.norm(np.asarray(decision.executed) - [0.0, 3.0]) == pytest.approx(0.4, abs=1e-6)
    calm = act(algorithm, ball, state, jnp.zeros(3), jax.random.key(1), explore=False)
    np.testing.assert_array_equal(calm.proposed, calm.intended)


@eqx.filter_jit
def learned_value(algorithm: OnPolicy, handled: jax.Array) -> jax.Array:
    """What the critic says after 30 rollouts of reward 1 at every step, with a time limit every 5."""
    spec, obs = task(BALL), jnp.ones(3)

    def one(state: OnPolicyState, place: jax.Array) -> tuple[OnPolicyState, None]:
        ends = place % 5 == 4
        decision = algorithm.act(
            algorithm.policy(state), spec, obs, jax.random.fold_in(jax.random.key(0), place), explore=True
        )
        transition = Transition(obs, decision, jnp.ones(()), obs, ends & ~handled, ends & handled)
        return algorithm.observe(state, spec, transition), None

    def learn(state: OnPolicyState, seed: jax.Array) -> tuple[OnPolicyState, None]:
        state = jax.lax.scan(one, state, jnp.arange(algorithm.horizon))[0]
        return algorithm.update(state, spec, jax.random.key(seed), DUE)[0], None

    state, _ = jax.lax.scan(learn, algorithm.init(jax.random.key(0), spec), jnp.arange(30))
    return state.critics[0](obs)[0]


@pytest.mark.parametrize(
    "algorithm",
    [KINDS[0], pytest.param(KINDS[1], marks=pytest.mark.slow), KINDS[2]],  # TRPO fits its critic as PPO does
    ids=lambda a: type(a).__name__,
)
@pytest.mark.parametrize("handled", [True, False])
def test_value_without_end_is_that_of_the_discount(algorithm: OnPolicy, handled: bool) -> None:
    """V = 1/(1 - 0.9), unless the limit is taken for an end."""
    epochs = jnp.asarray(30, jnp.int32) if isinstance(algorithm, FOCOPS) else 30
    algorithm = replace(algorithm, horizon=32, discount=0.9, rate=2e-2, epochs=epochs, normalised=False)
    value = float(learned_value(algorithm, jnp.asarray(handled)))
    if handled:
        assert value == pytest.approx(10.0, rel=0.05)
    else:
        assert value < 5.0


@each_kind
def test_an_update_learns_and_leaves_the_rest(algorithm: OnPolicy) -> None:
    state = collected(algorithm, BALL)
    after, metrics = updated(algorithm, BALL, state)
    assert all(np.isfinite(value) for value in metrics.values())
    assert not all(map(np.array_equal, jax.tree.leaves(after.actor), jax.tree.leaves(state.actor)))
    for ours, theirs in zip(jax.tree.leaves(after.statistics), jax.tree.leaves(state.statistics), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(after.rollout.rows, state.rollout.rows)


@each_kind
def test_better_actions_become_likelier(algorithm: OnPolicy) -> None:
    """The reward grows with the first entry of the action, and so does the policy's mean of it."""
    state = collected(algorithm, WIDE)
    after, _ = updated(algorithm, WIDE, state)
    assert first_mean(after) > first_mean(state)


@eqx.filter_jit
def improve(actor: GaussianPolicy, batch: Batch, bound: jax.Array) -> tuple[GaussianPolicy, Metrics, Normal, jax.Array]:
    """TRPO's new policy, its distributions on the batch, and the surrogate."""
    algorithm = TRPO(**SMALL, divergence=bound)  # pyright: ignore[reportArgumentType]
    actor, metrics = algorithm.improve(actor, batch)
    normal = jax.vmap(actor)(batch.x)
    return actor, metrics, normal, jnp.mean(algorithm.ratio(normal, batch) * batch.advantages[:, 0])


@pytest.mark.parametrize("bound", [0.01, 2.0])
def test_trust_region_holds_and_the_surrogate_grows(bound: float) -> None:
    """Of the larger bound, to which the quadratic model leads too far, steps have to be halved."""
    halved = []
    for seed in range(4):
        state = collected(KINDS[1], BALL, seed)
        batch, _ = batch_of(KINDS[1], BALL, state)
        _, metrics, normal, surrogate = improve(state.actor, batch, jnp.asarray(bound))
        p, q = (jax.tree.map(np.asarray, each) for each in (batch.before, normal))
        spread, shift = np.exp(2 * (p.log_std - q.log_std)), (p.mean - q.mean) ** 2 / np.exp(2 * q.log_std)
        divergence = np.mean(np.sum(0.5 * (spread + shift - 1) + q.log_std - p.log_std, axis=1))
        assert float(metrics["actor/divergence"]) == pytest.approx(divergence)
        assert 0.1 * bound < divergence <= bound
        halved.append(float(metrics["actor/halvings"]))
        assert float(surrogate) > 0
    assert any(halved) == (bound > 1)


def test_a_step_that_nothing_accepts_is_not_made() -> None:
    """Without advantages no step makes the surrogate grow."""
    state = collected(KINDS[1], BALL)
    batch, _ = batch_of(KINDS[1], BALL, state)
    batch = eqx.tree_at(lambda b: b.advantages, batch, np.zeros((128, 1)))
    actor, metrics, _, _ = improve(state.actor, batch, jnp.asarray(0.01))
    for after, before in zip(jax.tree.leaves(actor), jax.tree.leaves(state.actor), strict=True):
        np.testing.assert_array_equal(after, before)
    assert int(metrics["actor/halvings"]) == TRPO(**SMALL).halvings


def test_fisher_product_is_that_of_the_dense_matrix() -> None:
    """E[score score'] of each distribution, the expectation by Gauss-Hermite quadrature, which is exact here."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(8)

    @jax.jit
    def answer(key: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The scores by row and node, and the product with every unit vector."""
        policy = GaussianPolicy(2, 1, (3,), "tanh", key, log_std=-0.3, bounded=True)
        policy = jax.tree.map(lambda leaf: leaf.astype(jnp.float64) + 0.1, policy)
        vector, rebuilt = ravel_pytree(policy)

        def score(row: jax.Array, node: jax.Array) -> jax.Array:
            normal = policy(row)
            sample = normal.mean + jnp.exp(normal.log_std) * node
            return jax.grad(lambda v: rebuilt(v)(row).log_density(sample))(vector)

        product = fisher_product(lambda v: jax.vmap(rebuilt(v))(x), vector)
        scores = jax.vmap(jax.vmap(score, in_axes=(None, 0)), in_axes=(0, None))(x, jnp.asarray(nodes))
        return scores, jax.vmap(product)(jnp.eye(len(vector)))

    scores, ours = map(np.asarray, answer(jax.random.key(0), np.random.default_rng(1).normal(size=(5, 2))))
    dense = np.einsum("rni,rnj,n->ij", scores, scores, weights / weights.sum()) / 5
    np.testing.assert_allclose(ours, dense, atol=1e-10)


@pytest.mark.parametrize(("radius", "start", "rises"), [(0.01, 0.0, True), (100.0, 1.0, False)])
def test_the_multiplier_follows_the_cost(radius: float, start: float, rises: bool) -> None:
    """Proposals outside a tiny ball cost more than the limit, inside a huge one less."""
    algorithm, ball = focops(), BALL.at[2].set(radius)
    state = eqx.tree_at(lambda s: s.multipliers, collected(algorithm, ball), np.full(1, start))
    after, metrics = updated(algorithm, ball, state)
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
    algorithm = focops(epochs=20, multiplier_rate=1.0, divergence=1.0, reach=1.0)
    ball = jnp.asarray([0.9, 3.5, 0.05, 0.0])
    state = collected(algorithm, ball)
    rows = state.rollout.rows.at[:, 10].set(0.0)  # the reward
    state = eqx.tree_at(lambda s: s.rollout.rows, state, rows)
    after, metrics = updated(algorithm, ball, state)
    assert metrics["actor/multiplier"] == 2.0
    assert first_mean(after) > first_mean(state)


def test_passes_end_once_the_policy_has_come_too_far() -> None:
    algorithm = focops(epochs=40, divergence=1e-4)
    _, metrics = updated(algorithm, BALL, collected(algorithm, BALL))
    assert 1 <= metrics["actor/passes"] < 40
    assert metrics["actor/divergence"] > 1e-4


@pytest.mark.parametrize("kind", [PPO, TRPO])
def test_clipped_densities_are_for_boxes_only(kind: type[OnPolicy]) -> None:
    with pytest.raises(ValueError, match=r"capg needs a Box .* has a Ball; leave capg out, or use nfwpo"):
        kind(**SMALL, capg=True).init(jax.random.key(0), task(BALL))  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("kind", [PPO, pytest.param(TRPO, marks=pytest.mark.slow)])
def test_clipped_densities_are_of_what_is_clipped_at_the_box(kind: type[OnPolicy]) -> None:
    algorithm = kind(**SMALL, capg=True)  # pyright: ignore[reportArgumentType]
    state = collected(algorithm, None)
    batch, _ = batch_of(algorithm, None, state)
    changed = np.asarray(batch.sample != batch.clipped)
    assert changed.any()
    np.testing.assert_allclose(np.abs(np.asarray(batch.clipped))[changed], 1.0, rtol=1e-12)
    assert np.abs(np.asarray(batch.clipped)).max() <= 1.0
    _, metrics = updated(algorithm, None, state)
    assert all(np.isfinite(value) for value in metrics.values())


def test_rewards_are_divided_by_their_scale_and_costs_are_not() -> None:
    algorithm, state = KINDS[2], collected(KINDS[2], BALL)
    place = 2 * (3 + BOX.action_size)
    divided = eqx.tree_at(lambda s: s.rollout.rows, state, state.rollout.rows.at[:, place].divide(4.0))
    found, _ = batch_of(replace(algorithm, reward_scale=4.0), BALL, state)
    expected, _ = batch_of(algorithm, BALL, divided)
    before, _ = batch_of(algorithm, BALL, state)
    np.testing.assert_allclose(found.targets, expected.targets, rtol=1e-12)
    np.testing.assert_allclose(found.advantages, expected.advantages, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(found.targets[:, 1], before.targets[:, 1])
    assert not np.allclose(found.targets[:, 0], before.targets[:, 0], atol=0.1)


def test_settings_that_do_not_go_together_are_named() -> None:
    with pytest.raises(ValueError, match=r"PPO: horizon must be a multiple of copies = 3, not 128\."):
        replace(KINDS[0], copies=3).init(jax.random.key(0), BOX)
    with pytest.raises(ValueError, match=r"TRPO: minibatch must be at most horizon = 128, not 129\."):
        replace(KINDS[1], minibatch=129).init(jax.random.key(0), BOX)
    with pytest.raises(ValueError, match=r"PPO: warmup must be 0, not 5: rollouts are of the policy from the start\."):
        replace(KINDS[0], warmup=5).init(jax.random.key(0), BOX)
    with pytest.raises(ValueError, match=r"PPO: reward_scale must be above 0, not -1: rewards are divided by it\."):
        replace(KINDS[0], reward_scale=-1).init(jax.random.key(0), BOX)


@pytest.mark.parametrize("copies", [1, 2])
def test_episodes_that_are_given_up_end_in_the_rollout(copies: int) -> None:
    """So that nothing of what follows a reset between two calls of `learn` is credited to what came before."""
    rollout = no_rollout(6, 1, 1, 1, jnp.dtype("float64"))
    assert not broken_off(rollout, copies).rows.any()
    one, no = jnp.ones(1), jnp.zeros((), bool)
    for _ in range(8):  # the last two rows overwrite the first two
        rollout = record(rollout, RolloutStep(one, one, one, one, one, jnp.zeros(0), no, no))
    taken = steps(broken_off(rollout, copies), 1, 1, 1)
    assert np.flatnonzero(np.asarray(taken.ended)).tolist() == ([1] if copies == 1 else [0, 1])
    assert not taken.terminated.any()
