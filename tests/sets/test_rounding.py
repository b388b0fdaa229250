"""Where rounding was once more than rounding: each against exact arithmetic, a closed form, HiGHS or float64."""

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array
from numpy.typing import NDArray
from scipy.optimize import linprog

from feasible.sets import (
    Allocation,
    Ball,
    EllipsoidBox,
    HalfSpaceBox,
    IntegerAllocation,
    Polytope,
    PositivePowerBox,
    WeightedL1Box,
)
from feasible.sets.budget import BudgetBox
from feasible.solve.exact import exact_spectrum
from tests.code_generation import users_code
from tests.one_by_one import one_by_one
from tests.sets.cases import single

BUDGETS = (WeightedL1Box, PositivePowerBox)


def exact_exit(kind: type[BudgetBox], values: tuple[NDArray, ...], origin: NDArray, line: NDArray) -> float:
    """Where the ray leaves the set, in rational arithmetic: the load is linear between the kinks."""
    weights, (budget,), bound = ([Fraction(float(x)) for x in np.atleast_1d(value)] for value in values)
    o, d = ([Fraction(float(x)) for x in vector] for vector in (origin, line))

    def load(t: Fraction) -> Fraction:
        worked = [w * (x + t * v) for w, x, v in zip(weights, o, d, strict=True)]
        return sum((abs(p) if kind is WeightedL1Box else max(p, Fraction(0)) for p in worked), Fraction(0))

    boxed = min((((b if v > 0 else -b) - x) / v for x, v, b in zip(o, d, bound, strict=True) if v), default=None)
    if boxed is None:
        return float("inf")
    kinks = sorted({-x / v for x, v in zip(o, d, strict=True) if v and 0 < -x / v < boxed} | {boxed})
    before = Fraction(0)
    for kink in kinks:
        if load(kink) > budget:
            rise = (load(kink) - load(before)) / (kink - before)
            return float(before + max(budget - load(before), Fraction(0)) / rise)
        before = kink
    return float(boxed)


def test_a_level_piece_before_the_exit_is_not_the_last() -> None:
    """From the centre of a set without budget the load is zero until the first coordinate works."""
    region = PositivePowerBox([0.44334198, 0.72151475], 0.0, [0.88665659, 0.57507955])
    line = np.array([0.44704856, 0.1226652])
    np.testing.assert_allclose(region.exit_distance(region.centre(), line), 0.5 * 0.88665659 / line[0], rtol=1e-12)


def test_where_a_ray_leaves_a_half_space_before_its_box_by_little_tolerances_do_not_see_it() -> None:
    """The ray to the corner (1, 1), of which the limit x + y <= 2 - gap cuts off the last bit."""
    for gap in np.geomspace(1e-7, 1e-3, 40).astype(np.float32):
        region = HalfSpaceBox(np.ones(2, np.float32), np.float32(2) - gap, -1.0, 1.0)
        time = region.exit_distance(jnp.zeros(2, jnp.float32), jnp.ones(2, jnp.float32))
        assert region.contains(jnp.full(2, time)), gap
        assert time >= 1 - gap


@pytest.mark.parametrize("kind", BUDGETS)
def test_exits_are_those_of_exact_arithmetic_in_float32(kind: type[BudgetBox]) -> None:
    rng, count, n = np.random.default_rng(0), 300, 6
    weights = rng.normal(size=(count, n)) * 10.0 ** rng.uniform(-2, 2, (count, n)) * (rng.random((count, n)) < 0.9)
    values = (
        weights,
        rng.uniform(0, n, count) * rng.choice([0, 1e-6, 0.1, 1], size=count),
        rng.uniform(0, 1, (count, n)),
    )
    z, line = rng.normal(size=(2, count, n))

    def asked(values: tuple[Array, Array, Array], z: Array, line: Array) -> tuple[Array, Array]:
        region = kind(*values)
        origin = region.centre() + 0.3 * (region.project(z) - region.centre())
        return origin, region.exit_distance(origin, line)

    asked_all = [np.asarray(x, np.float32) for x in (*values, z, line)]
    origins, times = jax.jit(one_by_one(asked))(tuple(asked_all[:3]), *asked_all[3:])
    exact = [
        exact_exit(kind, tuple(value[k] for value in asked_all[:3]), np.asarray(origins[k]), asked_all[4][k])
        for k in range(count)
    ]
    np.testing.assert_allclose(times, exact, rtol=1e-5, atol=1e-6)


def _budget_errors(kind: type[BudgetBox], n: int, spread: float, size: float, far: float) -> NDArray:
    """Distances between the projections in float32 and in float64, of scale, on 4,000 random sets and points."""
    rng, count = np.random.default_rng(n), 4000
    weights = rng.normal(size=(count, n)) * 10.0 ** (spread * rng.uniform(-1, 1, (count, n)))
    bound = rng.uniform(0.01, 1, (count, n)) * size
    budget = rng.uniform(0, n, count) * 10.0 ** rng.uniform(-3, 0, count) * size
    z = rng.normal(size=(count, n)) * bound.max(1)[:, None] * 10.0 ** rng.uniform(-1, np.log10(far), (count, 1))
    given = [single(x) for x in (weights * (rng.random((count, n)) < 0.9), budget, bound, z)]
    project = jax.jit(one_by_one(lambda w, b, c, z: kind(w, b, c).project(z)))
    fine = np.asarray(project(*(jnp.asarray(x, jnp.float64) for x in given)))
    with users_code():
        coarse = np.asarray(project(*(jnp.asarray(x, jnp.float32) for x in given)))
    return np.max(np.abs(coarse - fine), axis=1) / given[2].max(1)


@pytest.mark.parametrize("kind", BUDGETS)
def test_weights_far_apart_cost_no_accuracy_in_float32(kind: type[BudgetBox]) -> None:
    """What rounding makes of a heavy coordinate is not laid on the light ones."""
    assert np.max(_budget_errors(kind, 6, spread=3.0, size=1.0, far=30.0)) < 1e-5


@pytest.mark.slow
@pytest.mark.parametrize("size", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("n", [1, 2, 6, 20, 50])
@pytest.mark.parametrize("kind", BUDGETS)
def test_budgets_of_all_scales_in_float32(kind: type[BudgetBox], n: int, size: float) -> None:
    """Inputs at up to 1e6 of scale: those are known to 1e-7 of themselves only, and so are the answers."""
    for far in (30.0, 1e6):
        assert np.max(_budget_errors(kind, n, spread=3.0, size=size, far=far)) < 1e-5 + 1e-6 * (far - 30.0)


def test_the_jacobian_of_a_point_is_zero_however_near() -> None:
    """A ball of radius 0 in float32: squared distances underflow below 1e-19."""
    near = jnp.asarray([[s, -0.5 * s] for s in (1e-36, 1e-30, 1e-21, 1e-15, 1.0)], jnp.float32)
    point = Ball(np.zeros(2, np.float32), 0.0)
    for jacobian in (jax.jacfwd, jax.jacrev):
        np.testing.assert_array_equal(jax.jit(jax.vmap(jacobian(point.project)))(near), np.zeros((5, 2, 2)))


def test_integers_that_float32_cannot_count_are_refused() -> None:
    """2^23 is the last whole number below which there are halves."""
    zeros, most = np.zeros(2, np.float32), np.float32(2**23)
    with pytest.raises(ValueError, match=r"total, low and high must not exceed 2\^23 in float32.*; use float64\."):
        IntegerAllocation(np.float32(2**24), zeros, np.float32(2**24))
    with pytest.raises(ValueError, match=r"must not exceed 2\^23"):
        IntegerAllocation(np.float32(5), zeros, np.float32(2**24))

    @jax.jit
    @jax.vmap
    def shared(total: Array, z: Array) -> Array:
        return IntegerAllocation(total, zeros, 2 * total).execute(z)

    rng = np.random.default_rng(0)
    totals = np.append(np.round(rng.uniform(0.25, 0.5, 500) * most), most)
    z = single(rng.uniform(-0.5, 1, (501, 2)) * totals[:, None])
    found = np.asarray(shared(jnp.asarray(totals, jnp.float32), jnp.asarray(z, jnp.float32)), np.float64)
    assert np.all(np.isnan(found[-1]))  # traced values cannot be refused: 2 * total is beyond
    # Of two stations the first gets the whole number nearest to (total + z_0 - z_1) / 2 within its bounds.
    wanted = (totals + z[:, 0] - z[:, 1])[:-1] / 2
    nearest = np.clip(np.ceil(wanted - 0.5), 0, totals[:-1])
    nearest = np.where(wanted - np.floor(wanted) == 0.5, np.clip(np.floor(wanted) + 1, 0, totals[:-1]), nearest)
    np.testing.assert_array_equal(found[:-1], np.stack([nearest, totals[:-1] - nearest], axis=1))


def _slivers(rng: np.random.Generator, count: int, n: int, m: int, slack: float) -> tuple[NDArray, NDArray]:
    """Polytopes about a known point, hardly wider than the slack; some with a row twice or with its opposite."""
    inside, A = rng.uniform(-1, 1, (count, n)), rng.normal(size=(count, m, n))
    A[::5, 1], A[1::5, 1] = A[::5, 0], -A[1::5, 0]
    A[2::5, 1] = -A[2::5, 0] + 1e-6 * rng.normal(size=A[2::5, 0].shape)
    return A, np.einsum("kij,kj->ki", A, inside) + slack * rng.uniform(0, 1, (count, m))


@jax.jit
@one_by_one
def _in_sliver(A: Array, b: Array, z: Array) -> tuple[Array, Array]:
    """How far centre and projection are outside, and the depth of the centre."""
    region = Polytope(A, b, -2.0, 2.0)
    points = jnp.stack([region.centre(), region.project(z), region.maximise_linear(z)])
    rows, limits = region.system()
    return jax.vmap(region.violation)(points), jnp.min(limits - rows @ region.centre())


def _depth_by_highs(A: NDArray, b: NDArray) -> float:
    """The radius of a largest ball in {A x <= b, |x_i| <= 2}."""
    n, norms = A.shape[1], np.linalg.norm(A, axis=1)
    lifted = np.column_stack([np.concatenate([A / norms[:, None], np.eye(n), -np.eye(n)]), np.ones(len(A) + 2 * n)])
    limits = np.concatenate([b / norms, np.full(2 * n, 2.0)])
    tight = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    return -linprog(np.append(np.zeros(n), -1.0), lifted, limits, bounds=(None, None), options=tight).fun


def test_slivers_have_a_centre() -> None:
    """4,000 of them: none empty, and the centres as deep as HiGHS's where that is asked."""
    A, b = _slivers(np.random.default_rng(0), 4_000, 3, 6, 1e-7)
    z = np.random.default_rng(1).normal(size=(len(A), 3))
    outside, depth = map(np.asarray, _in_sliver(A, b, z))
    assert np.max(outside) <= 1e-9
    for k in range(0, 50):
        np.testing.assert_allclose(depth[k], _depth_by_highs(A[k], b[k]), atol=1e-9)


@pytest.mark.parametrize(
    ("dtype", "angle", "slack", "accuracy"),
    [
        (jnp.float64, 1e-4, 1e-5, 1e-9),
        (jnp.float64, 1e-5, 1e-5, 1e-9),
        (jnp.float32, 1e-3, 1e-4, 1e-5),
        (jnp.float32, 1e-3, 1e-2, 1e-5),
    ],
)
def test_wedges_have_a_centre(dtype: type, angle: float, slack: float, accuracy: float) -> None:
    """Three pairs of rows a small angle short of opposite, which are held together where they meet."""
    rng, count, n = np.random.default_rng(0), 1_000, 6
    inside, A = rng.uniform(-1, 1, (count, n)), rng.normal(size=(count, 12, n))
    A[:, 1:6:2] = -A[:, :6:2] + angle * rng.normal(size=(count, 3, n))
    b = np.einsum("kij,kj->ki", A, inside) + slack * rng.uniform(0, 1, (count, 12))
    A, b, z = single(A), single(b), single(rng.normal(size=(count, n)) * 10)
    outside, depth = map(np.asarray, _in_sliver(*(jnp.asarray(x, dtype) for x in (A, b, z))))
    assert np.max(outside) <= accuracy
    for k in range(0, count, 50):
        np.testing.assert_allclose(depth[k], _depth_by_highs(A[k], b[k]), atol=10 * accuracy)


@pytest.mark.parametrize(("dtype", "accuracy"), [(jnp.float64, 1e-9), (jnp.float32, 1e-3)])
@pytest.mark.parametrize("kind", ["combinations", "repeated"])
def test_rows_that_nearly_depend_on_others_cost_no_depth(kind: str, dtype: type, accuracy: float) -> None:
    """Half of the rows are combinations of three others, or equal to one, but for little."""
    rng, count, n = np.random.default_rng(3), 200, 6
    inside, A = rng.uniform(-1, 1, (count, n)), rng.normal(size=(count, 12, n))
    noise = rng.normal(size=(count, 6, n))
    combined = np.einsum("kij,kjl->kil", rng.normal(size=(count, 6, 3)), A[:, :3]) + 1e-4 * noise
    A[:, 6:] = combined if kind == "combinations" else A[:, :6] * (1 + 6e-8 * noise)
    far = rng.uniform(0, 1, (count, 12)) > 0.5
    A, b = single(A), single(np.einsum("kij,kj->ki", A, inside) + 1e-3 * rng.uniform(0, 1, (count, 12)) + far)
    outside, depth = map(np.asarray, _in_sliver(*(jnp.asarray(x, dtype) for x in (A, b, 10 * inside))))
    assert np.max(outside) <= min(accuracy, 1e-5)
    np.testing.assert_allclose(depth, [_depth_by_highs(*one) for one in zip(A, b, strict=True)], rtol=0, atol=accuracy)


@pytest.mark.slow
@pytest.mark.parametrize("slack", [1e-5, 1e-7, 1e-9])
@pytest.mark.parametrize(("n", "m"), [(1, 3), (2, 5), (6, 12), (20, 30)])
def test_slivers_of_all_dimensions_have_a_centre(n: int, m: int, slack: float) -> None:
    A, b = _slivers(np.random.default_rng(n), 20_000 // n, n, m, slack)
    outside, _ = _in_sliver(A, b, np.random.default_rng(1).normal(size=(len(A), n)) * 10.0)
    assert np.max(np.asarray(outside)[:, 1]) <= 1e-9  # projections
    assert np.max(np.asarray(outside)) <= 1e-6  # a twentieth of the tolerance: of rows 1e-6 apart, the climb holds one


def test_a_slab_in_float32() -> None:
    """{(u . a)^2 <= level / s, |a| <= 1} for s of 1e4 and more: a thin slab, whose projection is that on a polytope."""
    rng, count, n = np.random.default_rng(5), 200, 3
    u = np.round(rng.normal(size=(count, n)) * 4) / 4 + np.array([0.5, 0, 0])
    steep = 4.0 ** rng.integers(6, 9, count)
    level = single(10.0 ** rng.uniform(-2, 0, count))
    z = single(rng.normal(size=(count, n)))
    half = np.sqrt(level / steep)

    def flat(u: Array, half: Array, z: Array) -> Array:
        return Polytope(jnp.stack([u, -u]), jnp.stack([half, half]), -1.0, 1.0).project(z)

    def curved(Q: Array, level: Array, z: Array) -> tuple[Array, Array]:
        region = EllipsoidBox(Q, level, 1.0)
        a = region.project(z)
        return a, region.contains(a)

    expected = jax.jit(one_by_one(flat))(u, half, z)
    Q = steep[:, None, None] * np.einsum("ki,kj->kij", u, u)
    found, inside = jax.jit(one_by_one(curved))(*(jnp.asarray(x, jnp.float32) for x in (Q, level, z)))
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert np.all(inside)


def test_small_eigenvalues_are_not_lost_beside_large_ones() -> None:
    """In float32 against float64: the values, and the vectors by what they make of Q."""
    rng, n = np.random.default_rng(2), 5
    F = rng.normal(size=(100, n, n)) * 10.0 ** rng.uniform(-1.5, 2, (100, 1, n))
    F[::2, :, 0] = 0  # not of full rank
    Q = single(np.einsum("kij,klj->kil", F, F))
    found, vectors = map(np.asarray, jax.jit(jax.vmap(exact_spectrum))(jnp.asarray(Q, jnp.float32)))
    exact = np.linalg.eigvalsh(Q)
    np.testing.assert_allclose(found, exact, rtol=1e-5, atol=1e-10 * np.max(exact))
    turned = np.einsum("kji,kjl,klm->kim", vectors, Q, vectors, dtype=np.float64)
    sizes = np.sqrt(np.abs(exact))
    off = np.abs(turned) * (1 - np.eye(n)) / np.maximum(sizes[:, :, None] * sizes[:, None, :], 1e-12)
    assert np.max(off[1::2]) < 1e-2  # as a share of the geometric mean: 1 where two were mixed


def test_a_thin_slab_in_a_box_keeps_the_nearest_point() -> None:
    """{a : ||B a||^2 <= level} of rank 1 with ||Q|| bound^2 / level of 1e14: float32 stays at float64's answer, and is
    not pulled to the origin. All numbers are exact in float32."""
    B = np.array([2.0, 8.0, 5.0])
    given = (4096.0 * np.outer(B, B), 0.00390625, np.array([611.75, 944.0, 957.875]))
    z = np.array([3633.25, 3140.0, -460.25])
    fine, coarse = (
        EllipsoidBox(*(jnp.asarray(x, dtype) for x in given)).project(jnp.asarray(z, dtype))
        for dtype in (jnp.float64, jnp.float32)
    )
    np.testing.assert_allclose(coarse, fine, atol=1e-5 * 957.875)


@pytest.mark.parametrize("kind", ["allocation", "polytope"])
def test_the_line_between_near_points_of_a_plane_stays_in_it(kind: str) -> None:
    """The rounding of two points is of their scale, however near they are; a line that leads off has length 0."""
    low, high = jnp.zeros(3), jnp.full(3, 3.0)
    region = Allocation(4.0, low, high)
    if kind == "polytope":
        region = Polytope(jnp.zeros((0, 3)), jnp.zeros(0), low, high, A_eq=jnp.ones((1, 3)), b_eq=jnp.array([4.0]))
    rng = np.random.default_rng(0)
    lengths = 10.0 ** rng.uniform(-6, 0, (2_000, 1))
    first, second = 4.0 * rng.dirichlet([9.0, 9.0, 9.0], (2, len(lengths)))
    lines = (first + lengths * (second - first)) - first  # with the rounding of both
    exits = jax.jit(jax.vmap(region.exit_distance))
    assert np.min(exits(first, lines)) >= 1 - 1e-6
    assert np.max(exits(first, lines + 1e-6 * np.abs(lines).max(axis=1, keepdims=True))) == 0
