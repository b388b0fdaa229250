"""Every set against reference solvers and against the inequalities that define its answers, in both precisions."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.typing import NDArray

from feasible.sets import IntegerAllocation
from tests.one_by_one import one_by_one
from tests.reference import Reference
from tests.sets.cases import LARGE, PRECISIONS, case, each_kernel, problems
from tests.sets.cases import each_family_and_precision as each
from tests.sets.families import Family, Values

# All problems take minutes; the first fifth of them, or a hundred, is enough to see a mistake.
few_and_all = pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["few", "all"])


def asked(family: Family, every: bool) -> int:
    """How many problems the reference solves."""
    return family.problems if every else min(family.problems // 5, 100)


@functools.cache
def reference(family: Family) -> Reference:
    return Reference(family.description)


@functools.cache
def nearest(family: Family, count: int) -> list[NDArray]:
    """The reference's projections of the first problems: the same for both precisions."""
    given = problems(family)
    return [reference(family).project(given.z[k], member(given.values, k)) for k in range(count)]


@functools.cache
def supports(family: Family, count: int) -> list[float]:
    given = problems(family)
    return reference(family).supports(given.g[:count], [member(given.values, k) for k in range(count)])


def member(values: Values, index: int) -> dict[str, NDArray]:
    return {name: value[index] for name, value in values.items()}


@each
@few_and_all
def test_projection_is_the_nearest_point(family: Family, dtype: type, every: bool) -> None:
    """Within the promised accuracy of the reference, or certified nearer than it by the variational inequality.

    Clarabel itself is off by more than 1e-7 on a few degenerate problems; there the optimality of our answer a is
    shown by max <z - a, y - a> over y in the set, which bounds ||a - a*||^2, with the maximum taken by HiGHS.
    """
    c = case(family, dtype)
    for k, theirs in enumerate(nearest(family, asked(family, every))):
        ours = c.found["projected"][k]
        if np.max(np.abs(ours - theirs)) <= c.accuracy[k]:
            continue
        g = c.z[k] - ours
        (support,) = reference(family).supports(g[None], [member(c.values, k)])
        gap = support - g @ ours
        assert np.sqrt(max(gap, 0.0)) <= 10 * c.accuracy[k], (k, ours, gap)


@each
@few_and_all
def test_linear_maximisation_reaches_the_support(family: Family, dtype: type, every: bool) -> None:
    c = case(family, dtype)
    for k, support in enumerate(supports(family, asked(family, every))):
        length = np.linalg.norm(c.g[k])
        value = c.g[k] @ c.found["best"][k]
        slack = c.accuracy[k] * max(length, 1e-12) + 8 * c.eps * np.abs(c.g[k]) @ np.abs(c.found["best"][k])
        assert abs(value - support) <= slack, k


@each
def test_every_answer_is_inside(family: Family, dtype: type) -> None:
    """Projections, executions (also of inputs at 1e6 of scale), maximisers, samples, centres and exits."""
    c = case(family, dtype)
    assert np.all(c.found["violations"] <= 1e-5 * c.scale[:, None])


@each
def test_projection_is_idempotent_and_non_expansive(family: Family, dtype: type) -> None:
    c = case(family, dtype)
    moved = np.linalg.norm(c.found["again"] - c.found["projected"], axis=1)
    assert np.all(moved <= 2 * c.accuracy)
    apart = np.linalg.norm(c.found["projected"] - c.found["other"], axis=1)
    assert np.all(apart <= np.linalg.norm(c.z - c.y, axis=1) + 2 * c.accuracy)


@each
def test_variational_inequality_and_linear_optimality_against_samples(family: Family, dtype: type) -> None:
    """<z - a, y - a> <= 0 and <g, y> <= <g, best> for feasible y, here each problem's own samples."""
    c = case(family, dtype)
    a, outward = c.found["projected"], c.z - c.found["projected"]
    for feasible_point in ("sample", "centre", "other", "best", "exit"):
        towards = c.found[feasible_point] - a
        products = np.sum(outward * towards, axis=1)
        allowed = 4 * c.accuracy * (np.linalg.norm(outward, axis=1) + np.linalg.norm(towards, axis=1))
        assert np.all(products <= allowed), feasible_point
        ahead = np.sum(c.g * (c.found[feasible_point] - c.found["best"]), axis=1)
        assert np.all(ahead <= 4 * c.accuracy * np.linalg.norm(c.g, axis=1) + 1e-300), feasible_point


@each
def test_exit_distance_ends_at_the_boundary(family: Family, dtype: type) -> None:
    c = case(family, dtype)
    moving = np.linalg.norm(c.found["line"], axis=1) > 1e-2 * c.scale
    assert np.mean(moving) > 0.3
    assert np.all(c.found["beyond"][moving] > 0)


@each
def test_diameter_bounds_all_distances(family: Family, dtype: type) -> None:
    c = case(family, dtype)
    for one in ("projected", "sample", "best"):
        for other in ("other", "centre", "exit"):
            apart = np.linalg.norm(c.found[one] - c.found[other], axis=1)
            assert np.all(apart <= c.found["diameter"] * (1 + 1e-5) + 2e-5 * c.scale)


@each_kernel
def test_vmapped_equals_looped(family: Family) -> None:
    """The case asks most families one by one, those of many coordinates at once; here it is the other way."""
    c, few = case(family, jnp.float64), slice(0, 40, 4)
    one = jax.tree.map(lambda leaf: leaf[few], c.sets)
    other_way = jax.vmap if family.description.dim < LARGE else one_by_one
    a, best = jax.jit(other_way(lambda s, z, g: (s.project(z), s.maximise_linear(g))))(one, c.z[few], c.g[few])
    for k, near, highest in zip(range(0, 40, 4), np.asarray(a), np.asarray(best), strict=True):
        np.testing.assert_allclose(near, c.found["projected"][k], atol=float(c.accuracy[k]), rtol=0)
        value = float(c.g[k] @ c.found["best"][k])
        slack = 2 * float(c.accuracy[k]) * float(np.linalg.norm(c.g[k]))
        np.testing.assert_allclose(c.g[k] @ highest, value, atol=slack + 1e-300, rtol=1e-5)


def _integers(values: dict[str, NDArray]) -> NDArray:
    """All integer allocations of one set, by enumeration."""
    ranges = [np.arange(lo, hi + 1) for lo, hi in zip(values["low"], values["high"], strict=True)]
    grid = np.stack(np.meshgrid(*ranges, indexing="ij"), -1).reshape(-1, len(ranges))
    return grid[grid.sum(1) == values["total"]]


@pytest.mark.parametrize("dtype", PRECISIONS)
def test_integer_execution_is_exact_with_ties_to_the_lowest_index(dtype: type) -> None:
    """Against enumeration, on inputs that are multiples of 1/4 so that ties are exact and frequent."""
    rng = np.random.default_rng(3)
    count, n = 600, 4
    low = rng.integers(0, 3, (count, n)).astype(float)
    high = low + rng.integers(0, 5, (count, n))
    total = low.sum(1) + np.floor(rng.random(count) * ((high - low).sum(1) + 1))
    z = np.round(rng.normal(size=(count, n)) * 8) / 4 + rng.choice([0, 1e3], size=(count, 1))
    z[::9] = z[::9, :1]
    build = jax.jit(jax.vmap(IntegerAllocation))
    sets = build(*(jnp.asarray(x, dtype) for x in (total, low, high)))
    ours = np.asarray(jax.jit(jax.vmap(lambda s, z: s.execute(z)))(sets, jnp.asarray(z, dtype)))
    for k in range(count):
        points = _integers({"low": low[k], "high": high[k], "total": total[k]})
        distances = np.sum((points - z[k]) ** 2, axis=1)
        nearest = points[distances == distances.min()]
        # Ties to the lowest index: the units go to the front, so the answer is the lexicographically largest.
        np.testing.assert_array_equal(ours[k], nearest[np.lexsort(nearest.T[::-1])[-1]])


def test_integers_are_ranked_in_exact_arithmetic() -> None:
    """In float32 1 - 1e-9 is 1, but the unit above 1 is cheaper where z is 1e-9 than where it is 0."""
    shares = IntegerAllocation(np.float32(3), np.ones(2, np.float32), np.full(2, 2, np.float32))
    np.testing.assert_array_equal(shares.execute([0.0, 1e-9]), [1, 2])
    np.testing.assert_array_equal(shares.execute([1e-9, 0.0]), [2, 1])
    np.testing.assert_array_equal(shares.execute([0.0, 0.0]), [2, 1])
