"""PPO entry by entry: intervals by SciPy's LPs, densities by quadrature, feasible draws, a uniform start, a probe."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.stats import beta as scipy_beta

from feasible.algorithms.base import Decision, Spec, Transition
from feasible.algorithms.betas import Betas, SequentialPolicy, uniform_parameters
from feasible.algorithms.intervals import ends, scaled
from feasible.algorithms.sequential import SequentialPPO, SequentialState, walk
from feasible.sets import (
    Allocation,
    AllocationAtMost,
    Ball,
    Box,
    EllipsoidBox,
    IntegerAllocation,
    Polytope,
    PositivePowerBox,
    WeightedL1Box,
)
from feasible.sets.base import ActionSet
from tests.algorithms.plain import new
from tests.algorithms.test_probes import trained

SMALL = SequentialPPO(horizon=64, minibatch=16, epochs=3, hidden_layers=(8,), head_units=8, rate=3e-3)
ONES = np.ones(4)
SIGNS = np.array(np.meshgrid(*[[-1.0, 1.0]] * 4)).reshape(4, -1).T  # the facets of an L1 budget
WEIGHTS = np.array([1.0, -2.0, 0.5, 0.0])
ROWS, LIMITS = np.random.default_rng(1).normal(size=(5, 4)), np.full(5, 0.9)
# Each set, and its inequalities and equalities for SciPy.
SETS: dict[str, tuple[ActionSet, NDArray, NDArray, NDArray | None, NDArray | None, float, float]] = {
    "box": (Box(-ONES, ONES), np.zeros((0, 4)), np.zeros(0), None, None, -1.0, 1.0),
    "allocation": (Allocation(1.0, 0 * ONES, 0.6 * ONES), np.zeros((0, 4)), np.zeros(0), ONES[None], ONES[:1], 0, 0.6),
    "at most": (AllocationAtMost(1.5, 0.1 * ONES, ONES), ONES[None], np.array([1.5]), None, None, 0.1, 1.0),
    "weighted L1": (
        WeightedL1Box(WEIGHTS, 1.5, ONES),
        SIGNS * WEIGHTS[None],
        np.full(16, 1.5),
        None,
        None,
        -1.0,
        1.0,
    ),
    "positive power": (
        PositivePowerBox(WEIGHTS, 1.5, ONES),
        (SIGNS > 0) * WEIGHTS[None],
        np.full(16, 1.5),
        None,
        None,
        -1.0,
        1.0,
    ),
    "polytope": (Polytope(ROWS, LIMITS, -ONES, ONES), ROWS, LIMITS, None, None, -1.0, 1.0),
    "with equalities": (
        Polytope(ROWS, LIMITS, 0 * ONES, ONES, ONES[None], ONES[:1]),
        ROWS,
        LIMITS,
        ONES[None],
        ONES[:1],
        0.0,
        1.0,
    ),
}


@eqx.filter_jit
def found(region: ActionSet, key: Array) -> tuple[Array, Array, Array]:
    """A point of the set, and the ends of the interval of each of its entries."""
    point = region.sample(key)

    def one(entry: Array) -> tuple[Array, Array]:
        least, most = ends(region, entry, point)
        return least[entry], most[entry]

    return point, *jax.vmap(one)(jnp.arange(region.dim))


@pytest.mark.parametrize("name", SETS)
def test_intervals_are_those_of_linear_programs(name: str) -> None:
    region, rows, limits, equal, levels, low, high = SETS[name]
    for seed in range(4):
        point, least, most = (np.asarray(x) for x in found(region, jax.random.key(seed)))
        for entry in range(4):
            bounds = [(p, p) for p in point[:entry]] + [(low, high)] * (4 - entry)
            for sign, ours in ((1.0, least[entry]), (-1.0, most[entry])):
                answer = linprog(sign * np.eye(4)[entry], rows, limits + 1e-12, equal, levels, bounds)
                assert ours == pytest.approx(sign * answer.fun, abs=1e-6), (entry, sign)


@eqx.filter_jit
def walked(region: ActionSet, seed: Array, count: int) -> tuple[Array, Array, Array]:
    """Draws of as many policies with random weights, each at a random observation."""

    def one(key: Array) -> tuple[Array, Array, Array]:
        make, see, go = jax.random.split(key, 3)
        actor = SequentialPolicy(3, jnp.ones((region.dim, 2)), (8,), 8, "tanh", make)
        actor = jax.tree.map(lambda leaf: 10.0 * leaf.astype(region.dtype), actor)
        return walk(actor, actor.features(jax.random.normal(see, (3,), region.dtype)), region, go)

    return jax.vmap(one)(jax.random.split(jax.random.key(seed), count))


@pytest.mark.parametrize("name", ["allocation", "positive power", "polytope", "with equalities"])
def test_draws_are_feasible_before_any_projection(name: str) -> None:
    """In float32, by policies far from the first one."""
    region = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), SETS[name][0])
    points, z, widths = walked(region, jnp.asarray(0), 3_000)
    violations = jax.vmap(region.violation)(points)
    assert float(jnp.max(violations)) <= float(region.tolerance)
    assert float(jnp.min(z)) > 0 and float(jnp.max(z)) < 1  # noqa: PT018
    flat = name in ("allocation", "with equalities")
    assert bool((widths[:, -1] == 0).all()) == flat
    assert float(np.mean(widths[:, 0] > 0)) == 1.0


@pytest.fixture(scope="module")
def actor() -> SequentialPolicy:
    made = SequentialPolicy(3, jnp.full((2, 2), 2.0), (8,), 8, "tanh", jax.random.key(0))
    return jax.tree.map(lambda leaf: 3.0 * leaf.astype(jnp.float64), made)


@eqx.filter_jit
def log_densities(actor: SequentialPolicy, region: ActionSet, points: Array) -> Array:
    x = jnp.asarray([0.3, -1.0, 0.8])

    def one(point: Array) -> Array:
        z, width = scaled(region, point)
        return actor.given(x, z, width).log_density(z)

    return jax.vmap(one)(points)


def test_densities_integrate_to_one_over_a_triangle(actor: SequentialPolicy) -> None:
    """{a >= 0, a_1 + a_2 <= 1} by Gauss and Legendre's rule in each direction."""
    region = AllocationAtMost(1.0, np.zeros(2), np.ones(2))
    nodes, weights = np.polynomial.legendre.leggauss(60)
    s, v = (nodes + 1) / 2, weights / 2
    first, second = (grid.ravel() for grid in np.meshgrid(s, s, indexing="ij"))
    points = np.stack([first, (1 - first) * second], axis=1)
    mass = np.outer(v, v).ravel() * (1 - first) * np.exp(np.asarray(log_densities(actor, region, points)))
    assert mass.sum() == pytest.approx(1.0, abs=2e-3)


def test_entropy_and_divergence_are_those_of_integrals() -> None:
    """Against sums over a grid with SciPy's densities; the entry without room counts nothing."""
    one = Betas(jnp.asarray([2.0, 1.5, 9.0]), jnp.asarray([3.0, 4.0, 9.0]), jnp.asarray([0.5, 2.0, 0.0]))
    two = Betas(jnp.asarray([1.2, 2.5, 1.0]), jnp.asarray([2.0, 2.0, 1.0]), jnp.asarray([0.5, 2.0, 0.0]))
    z = (np.arange(200_000) + 0.5) / 200_000
    entropy = divergence = 0.0
    for k in range(2):
        p, q = (scipy_beta(float(d.alpha[k]), float(d.beta[k])).logpdf(z) for d in (one, two))
        entropy += np.mean(-np.exp(p) * p) + np.log(float(one.width[k]))
        divergence += np.mean(np.exp(p) * (p - q))
    assert float(one.entropy()) == pytest.approx(entropy, abs=1e-4)
    assert float(one.divergence(two)) == pytest.approx(divergence, abs=1e-4)


def test_the_first_policy_is_uniform_on_a_simplex() -> None:
    """Beta(1, number of free entries after): each entry of a uniform point has mean 1/4 and variance 3/80."""
    region = Allocation(1.0, np.zeros(4), np.ones(4))

    @jax.jit
    def drawn(key: Array) -> tuple[Array, Array]:
        fit, make, go = jax.random.split(key, 3)
        start = uniform_parameters(region, fit, 2_000)
        actor = SequentialPolicy(3, start, (8,), 8, "tanh", make)
        actor = jax.tree.map(lambda leaf: leaf.astype(jnp.float64), actor)
        features = actor.features(jnp.zeros(3))
        return start, jax.vmap(lambda k: walk(actor, features, region, k)[0])(jax.random.split(go, 4_000))

    start, points = (np.asarray(x) for x in drawn(jax.random.key(0)))
    np.testing.assert_allclose(start[:3], [[1, 3], [1, 2], [1, 1]], rtol=0.15)
    np.testing.assert_allclose(start[3], [1, 1])
    np.testing.assert_allclose(points.mean(axis=0), 1 / 4, atol=0.015)
    np.testing.assert_allclose(points.var(axis=0), 3 / 80, atol=0.005)


BOUNDED = Spec(3, jnp.zeros(3), jnp.ones(3), lambda obs: AllocationAtMost(0.5 + obs[0] ** 2, jnp.zeros(3), jnp.ones(3)))


@eqx.filter_jit
def collected(state: SequentialState, key: Array) -> tuple[SequentialState, Decision]:
    def one(state: SequentialState, key: Array) -> tuple[SequentialState, Decision]:
        see, go = jax.random.split(key)
        obs, next_obs = 0.3 * jax.random.normal(see, (2, 3), jnp.float64)
        decision = SMALL.act(SMALL.policy(state), BOUNDED, obs, go, explore=True)
        made = Transition(obs, decision, decision.executed[0], next_obs, jnp.asarray(True), jnp.asarray(False))
        return SMALL.observe(state, BOUNDED, made), decision

    return jax.lax.scan(one, state, jax.random.split(key, SMALL.horizon))


def test_ratios_are_one_before_learning_and_better_actions_become_likelier() -> None:
    state, decisions = collected(new(SMALL, BOUNDED), jax.random.key(1))
    np.testing.assert_allclose(decisions.executed, decisions.proposed, atol=1e-12)

    @eqx.filter_jit
    def learned(state: SequentialState):
        batch = SMALL.batch(state, BOUNDED)
        now = jax.vmap(state.actor.given)(batch.x, batch.z, batch.before.width)
        after, metrics = SMALL.update(state, BOUNDED, jax.random.key(2), frozenset({"rollout"}))
        then = jax.vmap(after.actor.given)(batch.x, batch.z, batch.before.width)
        return batch, now.log_density(batch.z), metrics, now.alpha / (now.alpha + now.beta), then

    batch, density, metrics, mean, then = learned(state)
    np.testing.assert_array_equal(density, batch.log_density)
    known = np.zeros(64)
    for k in range(3):
        alpha, beta, width = (
            np.asarray(part)[:, k] for part in (batch.before.alpha, batch.before.beta, batch.before.width)
        )
        known += scipy_beta(alpha, beta, scale=width).logpdf(np.asarray(batch.z)[:, k] * width)
    np.testing.assert_allclose(batch.log_density, known, rtol=1e-7)
    assert all(np.isfinite(value) for value in metrics.values())
    assert np.mean(then.alpha[:, 0] / (then.alpha[:, 0] + then.beta[:, 0])) > np.mean(np.asarray(mean)[:, 0])


@pytest.mark.parametrize("region", [Ball(jnp.zeros(2), 1.0), EllipsoidBox(jnp.eye(2), 1.0, jnp.ones(2))])
def test_a_set_without_intervals_is_refused(region: ActionSet) -> None:
    spec = Spec(1, jnp.full(2, -1.0), jnp.ones(2), lambda obs: region)
    with pytest.raises(
        ValueError, match=rf"has a {type(region).__name__}; ppo-radial and ppo-projection take every set"
    ):
        SMALL.init(jax.random.key(0), spec)


def test_integers_are_executed_of_draws_in_their_hull() -> None:
    spec = Spec(1, jnp.zeros(3), jnp.full(3, 4.0), lambda obs: IntegerAllocation(6.0, jnp.zeros(3), jnp.full(3, 4.0)))
    decide = eqx.filter_jit(lambda state, key: SMALL.act(SMALL.policy(state), spec, jnp.zeros(1), key, explore=True))
    decision = decide(new(SMALL, spec), jax.random.key(3))
    assert float(jnp.sum(decision.proposed)) == pytest.approx(6.0)
    assert np.abs(np.asarray(decision.proposed) - np.round(decision.proposed)).max() > 1e-3
    np.testing.assert_array_equal(decision.executed, np.round(decision.executed))
    assert float(jnp.sum(decision.executed)) == 6.0


def test_the_best_vertex_of_a_moving_allocation_is_found() -> None:
    """Reward 0.6 a_1 + 0.8 a_2, a_1 + a_2 + a_3 = the observation, each at most its half: the first two are at most."""
    low, high = jnp.zeros(2), jnp.ones(2)
    spec = Spec(1, low, high, lambda obs: AllocationAtMost(obs[0], jnp.zeros(2), 0.75 * obs[0] * jnp.ones(2)))
    algorithm = replace(SMALL, horizon=256, minibatch=64, epochs=10, hidden_layers=(16,), head_units=16)
    act = trained(algorithm, spec, 6_144)
    for total in (0.25, 0.5, 0.75):
        executed = np.asarray(act(jnp.full(1, total)))
        best = total * (0.8 * 0.75 + 0.6 * 0.25)
        assert np.array([0.6, 0.8]) @ executed > 0.9 * best, (total, executed)
