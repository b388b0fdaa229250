"""Densities of mapped and restricted Gaussians, against quadrature that knows the sets by formulas of its own."""

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import integrate, special, stats

from feasible.algorithms.densities import boundary_log_density, radial_log_det, ray_log_integral
from feasible.algorithms.gaussian import gaussian_log_density
from feasible.algorithms.heads import AlphaHead, Drawn, RadialHead, TruncatedHead
from feasible.algorithms.maps import Hull, gauge
from feasible.algorithms.truncated import Truncated, inverse_chi, log_chi, scored, spread_directions
from feasible.sets import ActionSet, Allocation, Ball, Box, WeightedL1Box
from tests.lazily import Lazily


@dataclass(frozen=True)
class Known:
    """A set, and its gauge in coordinates of its hull by a formula."""

    region: ActionSet
    gauge: Callable[[NDArray], NDArray]


HELMERT = np.array([[1, -1, 0], [1, 1, -2]]).T / np.sqrt([2.0, 6.0])
KNOWN: Mapping[str, Known] = Lazily(
    {
        "interval": lambda: Known(Box([-0.5], [1.0]), lambda y: np.abs(y[:, 0]) / 0.75),
        "ball-2": lambda: Known(Ball([0.1, 0.2], 0.8), lambda y: np.linalg.norm(y, axis=1) / 0.8),
        "box-2": lambda: Known(Box([-1.0, -0.4], [1.0, 0.4]), lambda y: np.max(np.abs(y) / [1.0, 0.4], axis=1)),
        "weighted-l1-2": lambda: Known(
            WeightedL1Box([1.0, 2.0], 1.2, [1.0, 1.0]),
            lambda y: np.maximum(np.abs(y) @ [1.0, 2.0] / 1.2, np.max(np.abs(y), axis=1)),
        ),
        "allocation-hull-2": lambda: Known(  # of a simplex, around its middle: no entry two thirds below it
            Allocation(2.0, np.zeros(3), np.full(3, 2.0)), lambda y: np.max(-(y @ HELMERT.T) * 1.5, axis=1)
        ),
        "ball-3": lambda: Known(Ball([0.0, 0.0, 0.0], 0.9), lambda y: np.linalg.norm(y, axis=1) / 0.9),
        "box-3": lambda: Known(Box([-1.0] * 3, [1.0] * 3), lambda y: np.max(np.abs(y), axis=1)),
    }
)
MEAN, STD = np.array([0.3, -0.4, 0.2]), np.array([0.7, 0.5, 0.6])
each = pytest.mark.parametrize("name", KNOWN)


def directions(d: int) -> tuple[NDArray, NDArray]:
    """Directions that cover the sphere, by patch, and the corners of the patches."""
    if d == 1:
        return np.array([[1.0], [-1.0]]), np.zeros((2, 0, 1))
    if d == 2:
        angles = np.linspace(0, 2 * np.pi, 2401)
        ends = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        middle = 0.5 * (angles[1:] + angles[:-1])
        return np.stack([np.cos(middle), np.sin(middle)], axis=1), np.stack([ends[:-1], ends[1:]], axis=1)
    heights, turns = np.linspace(0, np.pi, 91), np.linspace(0, 2 * np.pi, 181)

    def on_sphere(h: NDArray, t: NDArray) -> NDArray:
        return np.stack([np.sin(h) * np.cos(t), np.sin(h) * np.sin(t), np.cos(h)], axis=-1)

    h, t = np.meshgrid(heights, turns, indexing="ij")
    grid = on_sphere(h, t)
    middle = on_sphere(h[:-1, :-1] + np.diff(heights)[0] / 2, t[:-1, :-1] + np.diff(turns)[0] / 2)
    corners = np.stack([grid[:-1, :-1], grid[1:, :-1], grid[1:, 1:], grid[:-1, 1:]], axis=2)
    return middle.reshape(-1, 3), corners.reshape(-1, 4, 3)


def surfaces(known: Known, corners: NDArray) -> NDArray:
    """Areas of the boundary's patches, between the points where the corners' rays leave."""
    if corners.shape[1] == 0:
        return np.ones(len(corners))
    count, each_, d = corners.shape
    b = (corners.reshape(-1, d) / known.gauge(corners.reshape(-1, d))[:, None]).reshape(count, each_, d)
    if d == 2:
        return np.linalg.norm(b[:, 1] - b[:, 0], axis=1)
    return 0.5 * np.linalg.norm(np.cross(b[:, 2] - b[:, 0], b[:, 3] - b[:, 1]), axis=1)


def solid_angles(corners: NDArray) -> NDArray:
    if corners.shape[1] == 0:
        return np.ones(len(corners))
    if corners.shape[1] == 2:
        return np.linalg.norm(corners[:, 1] - corners[:, 0], axis=1)
    return 0.5 * np.linalg.norm(np.cross(corners[:, 2] - corners[:, 0], corners[:, 3] - corners[:, 1]), axis=1)


def density(y: NDArray, mean: NDArray, std: NDArray) -> NDArray:
    return np.prod(stats.norm.pdf(y, mean, std), axis=-1)


def inside(known: Known, d: int, up_to: float = 1.0) -> float:
    """The Gaussian's mass where the gauge is at most so much, by rays from the centre."""
    ways, corners = directions(d)
    ends = up_to / known.gauge(ways)
    nodes, weights = np.polynomial.legendre.leggauss(24)
    r = 0.5 * ends[:, None] * (1 + nodes)
    values = density(r[..., None] * ways[:, None, :], MEAN[:d], STD[:d]) * r ** (d - 1)
    return float(np.sum(solid_angles(corners) * 0.5 * ends * (values @ weights)))


@each
def test_the_density_of_alpha_is_one_over_the_set_and_its_boundary(name: str) -> None:
    known = KNOWN[name]
    d = known.region.hull_dim
    ways, corners = directions(d)
    b = ways / known.gauge(ways)[:, None]
    mean, std = jnp.asarray(MEAN[:d]), jnp.asarray(STD[:d])

    @jax.jit
    @jax.vmap
    def boundary(b: jax.Array) -> jax.Array:
        return boundary_log_density(known.region, Hull.of(known.region), b, (b - mean) / std, std, 1.0)

    mass = np.sum(np.exp(np.asarray(boundary(jnp.asarray(b)))) * surfaces(known, corners))
    assert mass > 0.05
    assert mass + inside(known, d) == pytest.approx(1.0, abs=3e-3)


@each
def test_gauges_are_those_of_the_formulas(name: str) -> None:
    known = KNOWN[name]
    ways = directions(known.region.hull_dim)[0][::50]

    @jax.jit
    def gauges(ways: jax.Array) -> jax.Array:
        hull = Hull.of(known.region)
        return jax.vmap(lambda y: gauge(known.region, hull.centre, hull.lifted(y)))(ways)

    np.testing.assert_allclose(gauges(ways), known.gauge(ways), rtol=1e-12)


HEADS = (AlphaHead(), RadialHead(), TruncatedHead(256))
# Each head and each set is asked by default, but not each pair.
LONG = (("AlphaHead", "allocation-hull-2"), ("RadialHead", "ball-2"), ("TruncatedHead", "interval"))


@pytest.mark.parametrize(
    ("head", "name"),
    [
        pytest.param(
            head,
            name,
            id=f"{type(head).__name__}-{name}",
            marks=[pytest.mark.slow] if (type(head).__name__, name) in LONG else [],
        )
        for head in HEADS
        for name in ("interval", "ball-2", "allocation-hull-2")
    ],
)
def test_samples_have_the_density_that_comes_with_them(name: str, head: AlphaHead | RadialHead | TruncatedHead) -> None:
    """Kolmogorov and Smirnov's distance of the samples' gauges from what quadrature says of them."""
    known = KNOWN[name]
    d = known.region.hull_dim
    mean, std = MEAN[:d], STD[:d]
    if isinstance(head, TruncatedHead):  # what `radial` brings to the mean itself
        (g,) = known.gauge(mean[None])
        mean = np.arctanh(g / 0.99) * mean / g

    @jax.jit
    def draws(key: jax.Array) -> tuple[Drawn, jax.Array]:
        hull, keys = Hull.of(known.region), jax.random.split(key, 2_000)
        drawn = jax.vmap(lambda key: head.drawn(known.region, hull, jnp.asarray(mean), jnp.asarray(std), key))(keys)
        return drawn, jax.vmap(hull.coordinates)(drawn.action)

    drawn, y = jax.tree.map(np.asarray, draws(jax.random.key(5)))
    found = np.sort(known.gauge(y))
    levels = np.linspace(0.02, 0.98, 25)
    if isinstance(head, RadialHead):
        expected = [inside(known, d, math.atanh(level)) for level in levels]
    else:
        expected = [inside(known, d, level) for level in levels]
        if isinstance(head, TruncatedHead):
            expected = list(np.array(expected) / inside(known, d))
    share = np.searchsorted(found, levels) / len(found)
    assert np.max(np.abs(share - expected)) < 1.63 / math.sqrt(len(found))  # a chance of one in a hundred
    within = known.gauge(y) < 1 - 1e-9
    log_density = np.log(density(y, MEAN[:d], STD[:d]))
    if isinstance(head, TruncatedHead):
        apart = drawn.log_density - (log_density - math.log(inside(known, d)))
        assert np.max(np.abs(apart)) < 0.15
        assert abs(np.mean(apart)) < 0.01
    elif isinstance(head, AlphaHead):
        np.testing.assert_allclose(drawn.log_density[within], log_density[within], atol=1e-9)
    else:
        g = np.arctanh(known.gauge(y))
        before = np.log(density(y * (g / np.tanh(g))[:, None], MEAN[:d], STD[:d]))
        np.testing.assert_allclose(drawn.log_density, before - np.asarray(radial_log_det(jnp.asarray(g), d)), atol=1e-6)


def reference(b: NDArray, mean: NDArray) -> float:
    """log of the integral of t^(d - 1) exp(-|t b - mean|^2 / 2) over t > 1, adaptively, in pieces around its peak."""
    more, square, linear = len(b) - 1, float(b @ b) / 2, float(b @ (b - mean))

    def height(x: float) -> float:
        return more * math.log1p(x) - square * x * x - linear * x

    half = 0.5 * linear - square
    root = math.sqrt(half * half + 2 * square * more)
    mode = max((more / (half + root) if half > 0 else (root - half) / (2 * square)) - 1, 0.0)
    width = min(1 / math.sqrt(more / (1 + mode) ** 2 + 2 * square), 1 / max(linear + 2 * square * mode - more, 1e-9))
    edges = [max(mode - 40 * width, 0), max(mode - 8 * width, 0), mode, *(mode + w * width for w in (3, 10, 40, 200))]
    pieces = [
        integrate.quad(lambda x: math.exp(height(x) - height(mode)), a, c, epsabs=1e-14, epsrel=1e-10)[0]
        for a, c in itertools.pairwise(edges)
    ]
    return math.log(sum(pieces)) + height(mode) - float((b - mean) @ (b - mean)) / 2


@pytest.mark.parametrize("n", [1, 2, 6, 20])
def test_the_integral_along_a_ray_is_right_in_float32(n: int) -> None:
    """For deviations from a hundredth to thirty times the way to the boundary, and means up to 5 of them away."""
    rng = np.random.default_rng(n)
    way = rng.normal(size=(60, n))
    way /= np.linalg.norm(way, axis=1, keepdims=True)
    b = way * math.sqrt(2) * 10 ** rng.uniform(-2, 1.5, size=(60, 1))
    across = rng.normal(size=(60, n))
    across -= np.sum(across * way, axis=1, keepdims=True) * way
    mean = -rng.uniform(-5, 5, size=(60, 1)) * math.sqrt(2) * way + across
    g = rng.uniform(1, 2, size=60)
    expected = [reference(*pair) for pair in zip(b, mean, strict=True)]
    for scale, noise in ((g, g[:, None] * b - mean), (np.ones(60), b - mean)):  # by a point beyond, and by b itself
        given = (jnp.asarray(value, jnp.float32) for value in (b, noise, scale))
        found = jax.jit(jax.vmap(ray_log_integral))(*given)
        assert found.dtype == jnp.float32
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-3)


@pytest.mark.parametrize("deviation", [1e-3, 1e-5, 1e-8])
def test_small_deviations_leave_a_gaussian_on_the_boundary(deviation: float) -> None:
    """Around the mean's ray alpha is linear: v -> v_2 / v_1 on the face of a box, a Gaussian with known deviation."""
    region = jax.tree.map(lambda leaf: leaf.astype(jnp.float32), Box([-1.0, -1.0], [1.0, 1.0]))
    mean, keys = np.array([2.0, 0.5]), jax.random.split(jax.random.key(0), 500)

    @jax.jit
    @jax.vmap
    def draws(key: jax.Array) -> jax.Array:
        std = jnp.full(2, deviation, jnp.float32)
        return AlphaHead().drawn(region, Hull.of(region), jnp.asarray(mean, jnp.float32), std, key).log_density

    noise = np.array(jax.vmap(lambda key: jax.random.normal(key, (2,), jnp.float32))(keys), float)
    spread = deviation * math.hypot(1.0, mean[1] / mean[0]) / mean[0]
    across = (mean[1] + deviation * noise[:, 1]) / (mean[0] + deviation * noise[:, 0]) - mean[1] / mean[0]
    expected = stats.norm.logpdf(across, 0.0, spread)
    np.testing.assert_allclose(draws(keys), expected, rtol=1e-5, atol=10 * deviation + 1e-5)


@pytest.mark.parametrize("far", [0.9, 1.2, 3.0])
def test_derivatives_of_the_density_on_the_boundary_are_those_of_finite_differences(far: float) -> None:
    """By mean and deviation, of the density of a sample that moves with them; the mean inside and outside."""
    rng = np.random.default_rng(1)
    region, noise = Ball(np.zeros(3), 1.0), rng.normal(size=(40, 3))
    way = np.array([1.0, -2.0, 2.0]) / 3
    noise[np.linalg.norm(far * way + 0.3 * noise, axis=1) < 1.05] *= -1
    noise = noise[np.linalg.norm(far * way + 0.3 * noise, axis=1) > 1.05]
    assert len(noise) > 10

    def plainly(theta: NDArray, noise: NDArray) -> float:
        mean, std = theta[:3], np.exp(theta[3:])
        b = mean + std * noise
        b /= np.linalg.norm(b)
        return reference(b / std, mean / std) - float(np.sum(theta[3:])) - 1.5 * math.log(2 * math.pi)

    def ours(theta: jax.Array, noise: jax.Array) -> jax.Array:
        hull, std = Hull.of(region), jnp.exp(theta[3:])
        y = theta[:3] + std * noise
        g = gauge(region, hull.centre, hull.lifted(y))
        return boundary_log_density(region, hull, y / g, noise, std, g)

    at = np.concatenate([far * way, np.full(3, math.log(0.3))])
    found = jax.jit(jax.vmap(jax.value_and_grad(ours), in_axes=(None, 0)))(jnp.asarray(at), jnp.asarray(noise))
    moves = 1e-5 * np.eye(6)
    for n, value, slope in zip(noise, *map(np.asarray, found), strict=True):
        assert value == pytest.approx(plainly(at, n), abs=1e-7)
        expected = [(plainly(at + move, n) - plainly(at - move, n)) / 2e-5 for move in moves]
        np.testing.assert_allclose(slope, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dim", [1, 2, 3, 8, 17])
def test_chi_is_the_incomplete_gamma_function_in_float32(dim: int) -> None:
    r = np.logspace(-2, 1.3, 100)
    truth = special.gammainc(dim / 2, r * r / 2)
    found = jax.jit(lambda r: log_chi(r, dim))(jnp.asarray(r, jnp.float32))
    np.testing.assert_allclose(found, np.log(truth), rtol=2e-6, atol=1e-6)
    slope = jax.jit(jax.vmap(jax.grad(lambda r: log_chi(r, dim))))(jnp.asarray(r))
    np.testing.assert_allclose(slope, stats.chi.pdf(r, dim) / truth, rtol=1e-9, atol=1e-12)
    level, top = np.linspace(0.01, 0.99, 50), np.logspace(-2, 1, 50)

    def inverse(level: jax.Array, top: jax.Array) -> jax.Array:
        return inverse_chi(log_chi(top, dim) + jnp.log(level), top, dim)

    goal = level * special.gammainc(dim / 2, top * top / 2)
    back = jax.jit(jax.vmap(inverse))(jnp.asarray(level), jnp.asarray(top))
    np.testing.assert_allclose(special.gammainc(dim / 2, np.asarray(back) ** 2 / 2), goal, rtol=1e-4)


def test_gradients_through_restricted_samples_are_those_of_quadrature() -> None:
    """Along the ray and by the choice of the direction; without the second part they would be far off."""
    region, slope, at = Ball([0.0, 0.0], 0.6), np.array([0.6, 0.8]), np.array([0.2, -0.3, -0.5, -1.0])
    grid = np.linspace(-0.6, 0.6, 401)
    points = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
    points = points[np.sum(points**2, axis=1) <= 0.36]

    def expected(theta: NDArray) -> float:
        weight = np.exp(-np.sum(((points - theta[:2]) / np.exp(theta[2:])) ** 2, axis=1) / 2)
        return float(weight @ (points @ slope) / weight.sum())

    truth = [(expected(at + 1e-3 * e) - expected(at - 1e-3 * e)) / 2e-3 for e in np.eye(4)]

    def loss(theta: jax.Array, key: jax.Array) -> jax.Array:
        def one(key: jax.Array) -> tuple[jax.Array, jax.Array]:
            first, second = jax.random.split(key)
            ways = spread_directions(first, 64, 2, theta.dtype)
            y, log_choice = Truncated.of(region, Hull.of(region), theta[:2], jnp.exp(theta[2:]), ways).sample(second)
            return jnp.vdot(jnp.asarray(slope), y), log_choice

        losses, log_choices = jax.vmap(one)(jax.random.split(key, 20_000))
        return jnp.mean(losses + scored(losses, log_choices))

    found = jax.jit(jax.grad(loss))(jnp.asarray(at), jax.random.key(2))
    np.testing.assert_allclose(found, truth, atol=0.02)


def test_the_entropy_of_a_restricted_gaussian_is_that_of_its_density() -> None:
    region, y = KNOWN["ball-2"].region, MEAN[:2] + 0.1

    @jax.jit
    def answers(key: jax.Array, mean: jax.Array, std: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
        ways = spread_directions(key, 4_096, 2, mean.dtype)
        policy = Truncated.of(region, Hull.of(region), mean, std, ways)
        at = jnp.asarray(y)
        known = gaussian_log_density((at - policy.mean) / policy.std, jnp.log(policy.std)) - policy.log_inside
        return policy.entropy, policy.log_inside, policy.log_density(at), known

    entropy, log_inside, log_density, known = map(float, answers(jax.random.key(0), MEAN[:2], STD[:2]))
    rays, corners = directions(2)
    nodes, weights = np.polynomial.legendre.leggauss(24)
    r = 0.4 * (1 + nodes)[None, :, None] * rays[:, None, :]
    p = density(r, MEAN[:2], STD[:2]) / inside(KNOWN["ball-2"], 2)
    area = solid_angles(corners)[:, None] * 0.4 * weights * np.linalg.norm(r, axis=-1)
    assert np.sum(area * p) == pytest.approx(1.0, abs=1e-4)
    assert entropy == pytest.approx(-np.sum(area * p * np.log(p)), abs=0.01)
    assert log_inside == pytest.approx(math.log(inside(KNOWN["ball-2"], 2)), abs=0.01)
    assert log_density == pytest.approx(known)


@pytest.mark.parametrize("d", [2, 8])
def test_a_narrow_gaussian_far_from_the_boundary_is_one(d: int) -> None:
    """In float32, deviations of a hundred thousandth and less: draws are as wide as they say."""
    region = Box(-np.ones(d, np.float32), np.ones(d, np.float32))

    @jax.jit
    def drawn(std: jax.Array, keys: jax.Array) -> jax.Array:
        lines = spread_directions(keys[0], 16, d, jnp.dtype("float32"))
        wide = Truncated.of(region, Hull.of(region), jnp.zeros(d, jnp.float32), jnp.full(d, std), lines)
        return jax.vmap(lambda key: wide.sample(key)[0])(keys) / std

    for std in (1e-5, 1e-8):
        points = drawn(jnp.float32(std), jax.random.split(jax.random.key(0), 4000))
        assert float(jnp.std(points)) == pytest.approx(1.0, abs=0.03)
