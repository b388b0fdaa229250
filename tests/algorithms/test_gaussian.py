"""Normal distributions against SciPy, and the clipped-action gradient against moments of the normal distribution."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from feasible.algorithms.gaussian import GaussianPolicy, Normal, SquashedGaussian

MEAN, STD = np.array([0.3, -1.2]), np.array([0.5, 2.0])
NORMAL = Normal(jnp.asarray(MEAN), jnp.asarray(np.log(STD)))
LOW, HIGH = -1.0, 1.0


def test_density_entropy_and_divergence_are_scipys() -> None:
    points = np.random.default_rng(0).normal(size=(50, 2))
    ours = jax.jit(jax.vmap(NORMAL.log_density))(jnp.asarray(points))
    np.testing.assert_allclose(ours, stats.norm.logpdf(points, MEAN, STD).sum(axis=1), rtol=1e-12)
    assert float(NORMAL.entropy()) == pytest.approx(stats.norm.entropy(MEAN, STD).sum())
    other = Normal(jnp.asarray([0.0, 1.0]), jnp.asarray(np.log([1.5, 0.7])))
    # KL(p || q) = cross entropy - entropy, by quadrature in each coordinate.
    divergence = 0.0
    for k in range(2):
        p, q = (MEAN[k], STD[k]), (float(np.asarray(other.mean)[k]), float(np.exp(other.log_std)[k]))
        difference = lambda x, p=p, q=q: stats.norm.logpdf(x, *p) - stats.norm.logpdf(x, *q)  # noqa: E731
        divergence += float(stats.norm.expect(difference, loc=p[0], scale=p[1]))
    apart = jax.jit(lambda other: NORMAL.divergence(other))
    assert float(apart(other)) == pytest.approx(divergence, rel=1e-8)
    assert float(apart(NORMAL)) == 0.0


def test_clipped_density_is_density_inside_and_tail_probability_outside() -> None:
    log_clipped = jax.jit(lambda sample: NORMAL.log_clipped(sample, jnp.clip(sample, LOW, HIGH)))
    ours = log_clipped(np.array([0.4, 3.0]))
    theirs = stats.norm.logpdf(0.4, MEAN[0], STD[0]) + stats.norm.logsf(HIGH, MEAN[1], STD[1])
    assert float(ours) == pytest.approx(theirs, rel=1e-12)
    ours = log_clipped(np.array([-7.0, 0.0]))
    theirs = stats.norm.logcdf(LOW, MEAN[0], STD[0]) + stats.norm.logpdf(0.0, MEAN[1], STD[1])
    assert float(ours) == pytest.approx(theirs, rel=1e-12)


def test_clipped_density_far_outside_has_finite_gradients() -> None:
    def density(mean: jax.Array, bound: float) -> jax.Array:
        return Normal(mean, jnp.zeros(1)).log_clipped(jnp.full(1, 2 * bound), jnp.full(1, bound))

    slope = jax.jit(jax.grad(density))
    for bound in (50.0, -50.0):
        gradient = slope(np.zeros(1), bound)
        # The hazard of a tail: about its distance from the mean.
        assert float(gradient[0]) == pytest.approx(bound, rel=1e-3)


def scores(clipped: bool, samples: NDArray) -> NDArray:
    """The gradient of the log-density of each sample by the mean."""

    def one(sample: jax.Array) -> jax.Array:
        executed = jnp.clip(sample, LOW, HIGH)

        def density(mean: jax.Array) -> jax.Array:
            normal = Normal(mean, jnp.log(jnp.asarray([STD[1]])))
            return normal.log_clipped(sample, executed) if clipped else normal.log_density(sample)

        return jax.grad(density)(jnp.asarray([MEAN[1]]))

    return np.asarray(jax.jit(jax.vmap(one))(samples))[:, 0]


def test_clipped_gradient_is_unbiased_with_less_variance() -> None:
    """For a reward of the clipped action, its square, whose mean has a derivative in closed form."""
    mean, std, count = MEAN[1], STD[1], 400_000
    samples = np.random.default_rng(1).normal(mean, std, size=(count, 1))
    reward = np.clip(samples[:, 0], LOW, HIGH) ** 2
    plain, capg = reward * scores(False, samples), reward * scores(True, samples)
    # d/dm E[clip(u)^2] = E[2 u; low < u < high]: what lies beyond the bounds is constant.
    normal, a, b = stats.norm, (LOW - mean) / std, (HIGH - mean) / std
    truth = 2 * (mean * (normal.cdf(b) - normal.cdf(a)) - std * (normal.pdf(b) - normal.pdf(a)))
    for estimate in (plain, capg):
        assert abs(estimate.mean() - truth) < 4 * estimate.std() / np.sqrt(count)
    # Var[plain] from moments: where clipped, the reward is 1 and the score u standardised over std.
    assert capg.var() < 0.8 * plain.var()
    tails = [(normal.expect(lambda z: z, ub=a), normal.cdf(a)), (normal.expect(lambda z: z, lb=b), normal.sf(b))]
    second = [normal.expect(lambda z: z * z, ub=a), normal.expect(lambda z: z * z, lb=b)]
    saved = sum(square - first**2 / mass for (first, mass), square in zip(tails, second, strict=True)) / std**2
    error = 4 * np.sqrt(np.var(plain**2 - capg**2) / count)
    assert plain.var() - capg.var() == pytest.approx(saved, abs=error)


@pytest.mark.parametrize("bounded", [False, True])
def test_policy_has_one_spread_and_its_mean_may_be_bounded(bounded: bool) -> None:
    policy = GaussianPolicy(3, 2, (8, 8), "tanh", jax.random.key(0), log_std=-0.5, bounded=bounded)
    policy = eqx.tree_at(lambda p: p.mean.layers[-1].bias, policy, jnp.asarray([2.0, -0.5], jnp.float32))
    normal = policy(jnp.ones(3, jnp.float32))
    np.testing.assert_array_equal(normal.log_std, [-0.5, -0.5])
    middle = np.tanh([2.0, -0.5]) if bounded else [2.0, -0.5]
    np.testing.assert_allclose(normal.mean, middle, atol=0.05)  # the last layer's weights start small


def test_squashed_density_integrates_to_one_and_its_entropy_is_that_of_quadrature() -> None:
    actor = SquashedGaussian(1, 1, (8,), "relu", jax.random.key(3))
    actor = jax.tree.map(lambda leaf: leaf.astype(jnp.float64), actor)
    low, high, obs = jnp.full(1, -1.0), jnp.full(1, 3.0), jnp.full(1, 0.7)
    mean, log_std = (float(x[0]) for x in actor(obs))
    keys = jax.random.split(jax.random.key(0), 200_000)
    actions, densities = jax.jit(jax.vmap(lambda key: actor.sample(obs, key, low, high)))(keys)
    # The density at an action by interpolation of the samples' own, integrated over the box.
    order = np.argsort(np.asarray(actions)[:, 0])
    x, log_p = np.asarray(actions)[order, 0], np.asarray(densities)[order]
    grid = np.linspace(x[0], x[-1], 20_001)
    p = np.exp(np.interp(grid, x, log_p))
    assert np.trapezoid(p, grid) == pytest.approx(1.0, abs=1e-3)
    # H = E[log std + log sqrt(2 pi e) + log(2 (1 - tanh(u)^2))], the last by quadrature over u.
    half = 0.5 * (3.0 + 1.0)
    stretch = lambda v: np.log(half) + 2 * (np.log(2) - v - np.logaddexp(0, -2 * v))  # noqa: E731
    law = {"loc": mean, "scale": np.exp(log_std)}
    entropy = stats.norm.entropy(**law) + stats.norm.expect(stretch, **law)
    estimate = -np.asarray(densities)
    assert estimate.mean() == pytest.approx(entropy, abs=4 * estimate.std() / np.sqrt(len(estimate)))
