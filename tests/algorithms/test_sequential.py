"""PPO entry by entry: intervals by SciPy's LPs, densities by quadrature, feasible draws, a uniform start, a probe."""

from collections.abc import Callable, Mapping

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.stats import beta as scipy_beta

from feasible.algorithms.base import Metrics, Spec, Transition
from feasible.algorithms.betas import EDGE, Betas, SequentialPolicy, uniform_parameters
from feasible.algorithms.intervals import ends, scaled
from feasible.algorithms.sequential import SequentialBatch, SequentialPPO, SequentialState, walk
from feasible.algorithms.statistics import no_statistics
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
from tests.lazily import Lazily
from tests.one_by_one import one_by_one

SMALL = SequentialPPO(horizon=256, minibatch=64, epochs=10, hidden_layers=(16,), head_units=16, rate=3e-3)
ONES = np.ones(4)
SIGNS = np.array(np.meshgrid(*[[-1.0, 1.0]] * 4)).reshape(4, -1).T  # the facets of an L1 budget
WEIGHTS = np.array([1.0, -2.0, 0.5, 0.0])
ROWS, LIMITS = np.random.default_rng(1).normal(size=(5, 4)), np.full(5, 0.9)
# Each set, and its inequalities and equalities for SciPy.
SETS: Mapping[str, tuple[ActionSet, NDArray, NDArray, NDArray | None, NDArray | None, float, float]] = Lazily(
    {
        "box": lambda: (Box(-ONES, ONES), np.zeros((0, 4)), np.zeros(0), None, None, -1.0, 1.0),
        "allocation": lambda: (
            Allocation(1.0, 0 * ONES, 0.6 * ONES),
            np.zeros((0, 4)),
            np.zeros(0),
            ONES[None],
            ONES[:1],
            0,
            0.6,
        ),
        "at most": lambda: (AllocationAtMost(1.5, 0.1 * ONES, ONES), ONES[None], np.array([1.5]), None, None, 0.1, 1.0),
        "weighted L1": lambda: (
            WeightedL1Box(WEIGHTS, 1.5, ONES),
            SIGNS * WEIGHTS[None],
            np.full(16, 1.5),
            None,
            None,
            -1.0,
            1.0,
        ),
        "positive power": lambda: (
            PositivePowerBox(WEIGHTS, 1.5, ONES),
            (SIGNS > 0) * WEIGHTS[None],
            np.full(16, 1.5),
            None,
            None,
            -1.0,
            1.0,
        ),
        "polytope": lambda: (Polytope(ROWS, LIMITS, -ONES, ONES), ROWS, LIMITS, None, None, -1.0, 1.0),
        "with equalities": lambda: (
            Polytope(ROWS, LIMITS, 0 * ONES, ONES, ONES[None], ONES[:1]),
            ROWS,
            LIMITS,
            ONES[None],
            ONES[:1],
            0.0,
            1.0,
        ),
    }
)


@eqx.filter_jit
def found(region: ActionSet, key: Array) -> tuple[Array, Array, Array]:
    """A point of the set, and the ends of the interval of each of its entries."""
    point = region.sample(key)

    def one(entry: Array) -> tuple[Array, Array]:
        least, most = ends(region, entry, point)
        return least[entry], most[entry]

    return point, *one_by_one(one)(jnp.arange(region.dim))


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name == "polytope" else []) for name in SETS]
)
def test_intervals_are_those_of_linear_programs(name: str) -> None:
    region, rows, limits, equal, levels, low, high = SETS[name]
    for seed in range(3):
        point, least, most = (np.asarray(x) for x in found(region, jax.random.key(seed)))
        for entry in range(4):
            bounds = [(p, p) for p in point[:entry]] + [(low, high)] * (4 - entry)
            for sign, ours in ((1.0, least[entry]), (-1.0, most[entry])):
                answer = linprog(sign * np.eye(4)[entry], rows, limits + 1e-12, equal, levels, bounds)
                assert ours == pytest.approx(sign * answer.fun, abs=1e-6), (entry, sign)


@pytest.fixture(scope="module")
def actor() -> SequentialPolicy:
    """Far from uniform, and otherwise in every state."""

    @jax.jit
    def made(key: Array) -> SequentialPolicy:
        first = SequentialPolicy(3, jnp.full((4, 2), 2.0), (8,), 8, "tanh", key)
        shifted = eqx.tree_at(lambda net: net.heads.layers[-1].weight, first, replace_fn=lambda leaf: 300.0 * leaf)
        return jax.tree.map(lambda leaf: leaf.astype(jnp.float64), shifted)

    return made(jax.random.key(0))


@eqx.filter_jit
def walked(actor: SequentialPolicy, region: ActionSet, count: int) -> tuple[Array, Array, Array, Array]:
    """Draws at random observations, and how far they are outside."""

    def one(key: Array) -> tuple[Array, Array, Array, Array]:
        see, go = jax.random.split(key)
        features = actor.features(2.0 * jax.random.normal(see, (3,), region.dtype))
        point, z, width = walk(actor, features, region, go)
        return point, z, width, region.violation(point)

    return jax.vmap(one)(jax.random.split(jax.random.key(0), count))


@pytest.mark.parametrize(
    "name",
    [
        "allocation",
        "with equalities",
        *(pytest.param(n, marks=pytest.mark.slow) for n in ("positive power", "polytope")),
    ],
)
def test_draws_are_feasible_before_any_projection(name: str, actor: SequentialPolicy) -> None:
    """In float32."""
    actor, region = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), (actor, SETS[name][0]))
    points, z, widths, violations = map(np.asarray, walked(actor, region, 2_000))
    assert violations.max() <= 1e-5 * float(region.scale)
    assert np.ptp(points[:, 0]) > 0.5 * np.max(widths[:, 0])
    assert z.min() > 0
    assert z.max() < 1
    flat = name in ("allocation", "with equalities")
    assert bool((widths[:, -1] == 0).all()) == flat
    assert (widths[:, 0] > 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("equalities", [0, 1])
def test_draws_are_feasible_in_polytopes_that_depend_on_the_state(actor: SequentialPolicy, equalities: int) -> None:
    """In float32, where linear programs with nearly dependent rows end outside once in a thousand times."""
    actor = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), actor)
    low, sums = jnp.full(4, equalities - 1.0, jnp.float32), jnp.ones((equalities, 4), jnp.float32)

    @jax.jit
    @jax.vmap
    def outside(key: Array) -> Array:
        rows_key, limits_key, see, go = jax.random.split(key, 4)
        rows = jax.random.normal(rows_key, (6, 4), jnp.float32)
        limits = 0.3 + jax.random.uniform(limits_key, (6,), jnp.float32) + 0.25 * equalities * jnp.sum(rows, axis=1)
        region = Polytope(rows, limits, low, jnp.ones(4, jnp.float32), sums, jnp.ones(equalities, jnp.float32))
        features = actor.features(2.0 * jax.random.normal(see, (3,), jnp.float32))
        return region.violation(walk(actor, features, region, go)[0]) / region.tolerance

    assert float(jnp.max(outside(jax.random.split(jax.random.key(0), 10_000)))) < 0.5


@eqx.filter_jit
def log_densities(actor: SequentialPolicy, region: ActionSet, points: Array) -> Array:
    x = jnp.asarray([0.3, -1.0, 0.8])

    def one(point: Array) -> Array:
        z, width = scaled(region, point)
        return actor.given(x, z, width).log_density(z)

    return jax.vmap(one)(points)


def pair(actor: SequentialPolicy) -> SequentialPolicy:
    """The policy's first two entries alone."""
    first, last = actor.heads.layers
    heads = (first.weight[:2, :10], first.bias[:2], last.weight[:2], last.bias[:2])
    return eqx.tree_at(
        lambda net: [part for layer in net.heads.layers for part in (layer.weight, layer.bias)], actor, heads
    )


def test_densities_integrate_to_one_over_a_triangle(actor: SequentialPolicy) -> None:
    """{a >= 0, a_1 + a_2 <= 1} by Gauss and Legendre's rule in each direction, with the first two heads."""
    region = AllocationAtMost(1.0, np.zeros(2), np.ones(2))
    actor = pair(actor)
    nodes, weights = np.polynomial.legendre.leggauss(60)
    s, v = (nodes + 1) / 2, weights / 2
    first, second = (grid.ravel() for grid in np.meshgrid(s, s, indexing="ij"))
    points = np.stack([first, (1 - first) * second], axis=1)
    mass = np.outer(v, v).ravel() * (1 - first) * np.exp(np.asarray(log_densities(actor, region, jnp.asarray(points))))
    assert mass.sum() == pytest.approx(1.0, abs=2e-3)


def test_entropy_and_divergence_are_those_of_integrals() -> None:
    """Against sums over a grid with SciPy's densities; the entry without room counts nothing."""
    one = Betas(jnp.asarray([2.0, 1.5, 9.0]), jnp.asarray([3.0, 4.0, 9.0]), jnp.asarray([0.5, 2.0, 0.0]))
    two = Betas(jnp.asarray([1.2, 2.5, 1.0]), jnp.asarray([2.0, 2.0, 1.0]), jnp.asarray([0.5, 2.0, 0.0]))
    z = (np.arange(200_000) + 0.5) / 200_000
    entropy = divergence = 0.0
    for k in range(2):
        p, q = (scipy_beta.logpdf(z, float(d.alpha[k]), float(d.beta[k])) for d in (one, two))
        entropy += np.mean(-np.exp(p) * p) + np.log(float(one.width[k]))
        divergence += np.mean(np.exp(p) * (p - q))
    assert float(one.entropy()) == pytest.approx(entropy, abs=1e-4)
    assert float(one.divergence(two)) == pytest.approx(divergence, abs=1e-4)


def merged(alpha: float, beta: float) -> tuple[NDArray, NDArray]:
    """The two pieces at the ends and a thousand between them: how likely each is, and how long."""
    edges = np.concatenate([[0.0], np.geomspace(EDGE, 0.5, 501), 1 - np.geomspace(0.5, EDGE, 501)[1:], [1.0]])
    low, high = scipy_beta.cdf(edges[:502], alpha, beta), scipy_beta.sf(edges[501:], alpha, beta)
    return np.concatenate([np.diff(low), -np.diff(high)]), np.diff(edges)


SHAPES = [(0.007, 0.5), (0.02, 30.0), (0.3, 0.01), (2.0, 20.0), (1.0, 1.0)]


@pytest.mark.parametrize("shape", SHAPES)
def test_draws_at_an_end_count_as_all_that_are_nearer_to_it(shape: tuple[float, float]) -> None:
    """Density, entropy and divergence, and what the density follows, against SciPy's distribution function."""

    @jax.jit
    def asked(shape: Array, other: Array) -> tuple[Array, Array, Array, Array]:
        def at(shape: Array, z: float) -> Array:
            return Betas(shape[:1], shape[1:], jnp.ones(1)).log_density(jnp.asarray([z]))

        slopes = jnp.stack([jax.grad(at)(shape, z) for z in (EDGE, 1 - EDGE)])
        one, two = (Betas(own[:1], own[1:], jnp.ones(1)) for own in (shape, other))
        return jnp.stack([at(shape, 0.0), at(shape, 1.0)]), slopes, one.entropy(), one.divergence(two)

    other = (0.1, 0.2)
    density, slopes, entropy, divergence = map(np.asarray, asked(jnp.asarray(shape), jnp.asarray(other)))
    (mass, length), (of_other, _) = merged(*shape), merged(*other)
    np.testing.assert_allclose(density, np.log(mass / EDGE)[[0, -1]], rtol=1e-3, atol=1e-3)
    for k, step in enumerate(1e-4 * np.eye(2) * shape):
        up, down = (np.log(merged(*(np.array(shape) + sign * step))[0][[0, -1]]) for sign in (1, -1))
        np.testing.assert_allclose(slopes[:, k], (up - down) / (2 * step[k]), rtol=1e-2, atol=1e-2)
    some = mass > 0
    assert entropy == pytest.approx(-np.sum((mass * np.log(mass / length))[some]), rel=1e-3, abs=2e-3)
    assert divergence == pytest.approx(np.sum((mass * np.log(mass / of_other))[some]), rel=1e-3, abs=2e-3)


def test_the_first_policy_is_uniform_on_a_simplex() -> None:
    """Beta(1, number of free entries after): breaking a stick so is uniform. The last entry has no room."""
    region = Allocation(1.0, np.zeros(4), np.ones(4))
    start = np.asarray(jax.jit(lambda key: uniform_parameters(region, key, 2_000))(jax.random.key(0)))
    np.testing.assert_allclose(start, [[1, 3], [1, 2], [1, 1], [1, 1]], rtol=0.15)


MOVING = Spec(
    1, jnp.zeros(2), jnp.ones(2), lambda obs: AllocationAtMost(obs[0], jnp.zeros(2), 0.75 * obs[0] * jnp.ones(2))
)
TOTALS = (0.25, 0.5, 0.75)


@jax.jit
def learned(key: Array) -> tuple[SequentialBatch, Array, Metrics, Array, Array]:
    """16 rollouts of single steps with reward 0.6 a_1 + 0.8 a_2: every batch with its densities again
    and its metrics, the last policy's actions and how far proposals were from what was executed."""

    def observed(key: Array) -> Array:
        return jax.random.uniform(key, (1,), jnp.float64, 0.2, 0.8)

    def step(state: SequentialState, key: Array) -> tuple[SequentialState, Array]:
        see, go, onward = jax.random.split(key, 3)
        obs = observed(see)
        decision = SMALL.act(SMALL.policy(state), MOVING, obs, go, explore=True)
        reward = jnp.asarray([0.6, 0.8]) @ decision.executed
        made = Transition(obs, decision, reward, observed(onward), jnp.asarray(True), jnp.asarray(False))
        return SMALL.observe(state, MOVING, made), jnp.max(jnp.abs(decision.proposed - decision.executed))

    def learn(state: SequentialState, key: Array):
        go, update = jax.random.split(key)
        state, moved = jax.lax.scan(step, state, jax.random.split(go, SMALL.horizon))
        batch = SMALL.batch(state, MOVING)
        again = jax.vmap(state.actor.given)(batch.x, batch.z, batch.before.width).log_density(batch.z)
        state, metrics = SMALL.update(state, MOVING, update, frozenset({"rollout"}))
        return state, (batch, again, metrics, jnp.max(moved))

    first = SMALL.init(key, MOVING)
    last, (batches, again, metrics, moved) = jax.lax.scan(learn, first, jax.random.split(key, 16))
    actions = jax.vmap(lambda obs: SMALL.act(SMALL.policy(last), MOVING, obs, key, explore=False).executed)(
        jnp.asarray(TOTALS)[:, None]
    )
    return batches, again, metrics, actions, jnp.max(moved)


def test_it_learns_the_best_vertex_of_a_moving_set_from_ratios_that_are_one_at_first() -> None:
    batches, again, metrics, actions, moved = learned(jax.random.key(0))
    assert float(moved) < 1e-12
    np.testing.assert_allclose(again, batches.log_density, rtol=1e-12)
    found, before = np.asarray(batches.log_density), batches.before
    known, inner = np.zeros_like(found), np.ones(found.shape, bool)
    for k in range(2):
        alpha, beta, width, z = (
            np.asarray(part)[..., k] for part in (before.alpha, before.beta, before.width, batches.z)
        )
        at_low, at_high = scipy_beta.logcdf(EDGE, alpha, beta), scipy_beta.logsf(1 - EDGE, alpha, beta)
        ends = np.where(z > EDGE, at_high, at_low) - np.log(EDGE * width)
        within = (z > EDGE) & (z < 1 - EDGE)
        inner = inner & within
        known = known + np.where(within, scipy_beta.logpdf(z * width, alpha, beta, scale=width), ends)
    assert np.mean(inner) > 0.9
    np.testing.assert_allclose(found[inner], known[inner], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found, known, rtol=1e-4, atol=1e-4)  # masses at the ends are a series' first term
    assert all(np.isfinite(value).all() for value in metrics.values())
    for total, executed in zip(TOTALS, np.asarray(actions), strict=True):
        best = total * (0.8 * 0.75 + 0.6 * 0.25)
        assert np.array([0.6, 0.8]) @ executed > 0.9 * best, (total, executed)


@pytest.mark.parametrize(
    "make",
    [lambda: Ball(jnp.zeros(2), 1.0), lambda: EllipsoidBox(jnp.eye(2), 1.0, jnp.ones(2))],
    ids=["ball", "ellipsoid"],
)
def test_a_set_without_intervals_is_refused(make: Callable[[], ActionSet]) -> None:
    region = make()
    spec = Spec(1, jnp.full(2, -1.0), jnp.ones(2), lambda obs: region)
    with pytest.raises(
        ValueError, match=rf"has a {type(region).__name__}; ppo-radial and ppo-projection take every set"
    ):
        SMALL.init(jax.random.key(0), spec)


def test_integers_are_executed_of_draws_in_their_hull(actor: SequentialPolicy) -> None:
    spec = Spec(3, jnp.zeros(4), jnp.full(4, 4.0), lambda obs: IntegerAllocation(7.0, jnp.zeros(4), jnp.full(4, 4.0)))
    policy = actor, no_statistics(3, jnp.dtype(float))
    decision = jax.jit(lambda key: SMALL.act(policy, spec, jnp.zeros(3), key, explore=True))(jax.random.key(3))
    assert float(jnp.sum(decision.proposed)) == pytest.approx(7.0)
    assert np.abs(np.asarray(decision.proposed) - np.round(decision.proposed)).max() > 1e-3
    np.testing.assert_array_equal(decision.executed, np.round(decision.executed))
    assert float(jnp.sum(decision.executed)) == 7.0
