"""One-dimensional duals against root finding by brentq and linear programs by HiGHS."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array
from numpy.typing import NDArray
from scipy.optimize import brentq, linprog

from feasible.solve.breakpoints import (
    DENSE,
    _nearest,
    coordinates,
    fill_by_worth,
    nearest_on_budget,
)
from feasible.solve.convex_load import convex_chord, convex_exit
from tests.one_by_one import one_by_one
from tests.sets.cases import PRECISIONS
from tests.sets.families import coarse, sometimes

COUNT = 120
# Below and above the size from which kinks are sorted.
each_size = pytest.mark.parametrize("n", [6, DENSE + 4])
each_precision = pytest.mark.parametrize("dtype", PRECISIONS)


def budgets(n: int) -> tuple[NDArray, ...]:
    """z, weights, low, high and budget; zero weights, ties, pinned coordinates, and budgets that leave one point."""
    rng = np.random.default_rng(n)
    low = coarse(rng, COUNT, n, low=-2, high=1)
    high = low + coarse(rng, COUNT, n) * sometimes(rng, 0.9, COUNT, n)
    weights = coarse(rng, COUNT, n, high=3) * sometimes(rng, 0.8, COUNT, n)
    weights[::6] = 1.0
    weights[:, 0] = np.maximum(weights[:, 0], 1 / 64)
    z = np.round(rng.normal(size=(COUNT, n)) * rng.choice([1, 20], (COUNT, 1)) * 64) / 64
    z[1::6] = z[1::6, :1]
    share = np.round(rng.random(COUNT) * 8) / 8  # 0 and 1 among them
    budget = np.sum(weights * (low + share[:, None] * (high - low)), axis=1)
    return z, weights, low, high, budget


def priced(z: NDArray, w: NDArray, low: NDArray, high: NDArray, budget: float, *, equality: bool) -> NDArray:
    """clip(z - t w, low, high) at the root t of a falling function."""

    def over(t: float) -> float:
        return float(w @ np.clip(z - t * w, low, high)) - budget

    if not equality and over(0.0) <= 0:
        return np.clip(z, low, high)
    ends = np.concatenate([(z - high)[w > 0] / w[w > 0], (z - low)[w > 0] / w[w > 0]])
    first, last = float(ends.min()) - 1, float(ends.max()) + 1
    t = first if over(first) <= 0 else last if over(last) >= 0 else brentq(over, first, last, xtol=1e-15)
    return np.clip(z - t * w, low, high)


@jax.jit
@one_by_one
def nearest(z: Array, w: Array, low: Array, high: Array, budget: Array) -> tuple[Array, Array]:
    return tuple(nearest_on_budget(z, w, low, high, budget, equality=equality) for equality in (True, False))  # pyright: ignore


@each_size
@each_precision
def test_the_nearest_point_has_the_price_that_brentq_finds(n: int, dtype: type) -> None:
    problems = budgets(n)
    z, weights, low, high, budget = problems
    rounding = 64 * float(jnp.finfo(dtype).eps) * (2 + np.abs(z).max(axis=1))
    for ours, equality in zip(nearest(*(jnp.asarray(x, dtype) for x in problems)), (True, False), strict=True):
        answers = np.asarray(ours, np.float64)
        assert np.all((low <= answers) & (answers <= high))
        spent = np.sum(weights * answers, axis=1) - budget
        assert np.max((np.abs(spent) if equality else spent) / (1 + weights.sum(axis=1)) / rounding) <= 1
        for k in range(COUNT):
            theirs = priced(*(x[k] for x in problems), equality=equality)
            np.testing.assert_allclose(answers[k], theirs, rtol=0, atol=n * rounding[k])


def test_both_layouts_give_the_same_answers() -> None:
    """The one that is written out coordinate by coordinate is a GPU's; here it is asked on the CPU."""
    problems = [jnp.asarray(x) for x in budgets(6)]
    for equality, whole in zip((True, False), nearest(*problems), strict=True):
        written_out = jax.jit(jax.vmap(functools.partial(_nearest, split=coordinates, equality=equality)))
        np.testing.assert_allclose(written_out(*problems), whole, rtol=0, atol=1e-12)


def test_slopes_are_those_of_the_free_coordinates() -> None:
    """Between the bounds a moves by dz less its part along w, and by w / |w|^2 with the budget."""
    z, weights, low, high, budget = budgets(6)
    answer = jax.vmap(functools.partial(nearest_on_budget, equality=True))
    arrays = [jnp.asarray(x) for x in (z, weights, low, high, budget)]
    _, moved = jax.jvp(
        lambda z, b: answer(z, arrays[1], arrays[2], arrays[3], b),
        (arrays[0], arrays[4]),
        (arrays[1] + 1.0, jnp.ones(COUNT)),
    )
    checked = 0
    for k in range(COUNT):
        a = priced(z[k], weights[k], low[k], high[k], budget[k], equality=True)
        free = (low[k] + 1e-9 < a) & (a < high[k] - 1e-9)
        w = np.where(free, weights[k], 0.0)
        if not w.any() or (a - np.clip(z[k], low[k], high[k]) == 0).all():
            continue  # one point only, or the kink at price zero
        shift = np.where(free, weights[k] + 1.0, 0.0)
        np.testing.assert_allclose(moved[k], shift + w * (1 - w @ shift) / (w @ w), atol=1e-9)
        checked += 1
    assert checked > COUNT / 2


@pytest.mark.parametrize("equality", [True, False])
def test_slopes_in_weights_bounds_and_budget_are_those_of_differences(equality: bool) -> None:
    """Along a random direction of all data, in problems without ties; where both sides differ there is a kink."""
    rng = np.random.default_rng(8)
    low = rng.uniform(-2, 0, (COUNT, 6))
    high, weights = low + rng.uniform(0.5, 2, (COUNT, 6)), rng.uniform(0.2, 3, (COUNT, 6))
    inner = low + rng.uniform(0.2, 0.8, (COUNT, 1)) * (high - low)
    data = rng.normal(size=(COUNT, 6)), weights, low, high, np.sum(weights * inner, axis=1)
    way = tuple(rng.normal(size=x.shape) for x in data)

    @jax.jit
    def asked(data: tuple[Array, ...], way: tuple[Array, ...]) -> tuple[Array, ...]:
        answer = one_by_one(functools.partial(nearest_on_budget, equality=equality))
        places = tuple(jnp.concatenate([x + 1e-6 * d, x - 1e-6 * d, x]) for x, d in zip(data, way, strict=True))
        found, slopes = jax.jvp(answer, places, tuple(jnp.concatenate([d, d, d]) for d in way))
        ahead, behind, here = jnp.split(found, 3)
        return slopes[2 * COUNT :], (ahead - here) / 1e-6, (here - behind) / 1e-6

    slope, forward, backward = (np.asarray(x) for x in asked(data, way))
    smooth = np.max(np.abs(forward - backward), axis=1) < 1e-3
    assert np.mean(smooth) > 0.9
    np.testing.assert_allclose(slope[smooth], (0.5 * (forward + backward))[smooth], atol=1e-6)


@each_size
@each_precision
def test_filling_by_worth_solves_the_linear_program(n: int, dtype: type) -> None:
    """Zero weights, equal worth, empty budgets and budgets for everything among the problems."""
    rng = np.random.default_rng(n)
    weights = coarse(rng, COUNT, n, high=3) * sometimes(rng, 0.8, COUNT, n)
    caps, worth = coarse(rng, COUNT, n) * sometimes(rng, 0.9, COUNT, n), coarse(rng, COUNT, n)
    worth[::5] = weights[::5]
    budget = np.sum(weights * caps, axis=1) * np.round(rng.random(COUNT) * 8) / 8
    filled = jax.jit(jax.vmap(fill_by_worth))(*(jnp.asarray(x, dtype) for x in (worth, weights, caps, budget)))
    x = np.asarray(filled, np.float64)
    assert np.all((x >= 0) & (x <= caps))
    slack = 16 * n * float(jnp.finfo(dtype).eps)
    assert np.all(np.sum(weights * x, axis=1) <= budget + slack * (1 + budget))
    for k in range(0, COUNT, 3):
        best = -linprog(-worth[k], weights[k][None], budget[k], bounds=list(zip(np.zeros(n), caps[k], strict=True))).fun
        assert worth[k] @ x[k] == pytest.approx(best, abs=max(slack * n, 1e-9))


@each_size
def test_ties_go_to_the_lowest_index(n: int) -> None:
    """Equal worth, unit weights: the first coordinates are filled, the next gets the rest. So with any worth's sign."""
    filled = jax.jit(fill_by_worth)(jnp.full(n, -1.5), jnp.ones(n), jnp.full(n, 0.5), jnp.asarray(1.75))
    np.testing.assert_array_equal(filled, [0.5, 0.5, 0.5, 0.25, *[0.0] * (n - 4)])


@each_precision
def test_the_exit_of_a_convex_load_is_where_bisection_finds_it(dtype: type) -> None:
    """Loads sum_i max(w_i (x_i + t d_i), 0): some never pass the budget, some are at it and rise, fall or stay."""
    rng, n = np.random.default_rng(0), 5
    weights, x = coarse(rng, COUNT, n, high=2), coarse(rng, COUNT, n, low=-1)
    d = coarse(rng, COUNT, n, low=-1) * sometimes(rng, 0.7, COUNT, n)

    def load(t: float, k: int) -> float:
        return float(np.maximum(weights[k] * (x[k] + t * d[k]), 0).sum())

    room = coarse(rng, COUNT) * sometimes(rng, 0.8, COUNT)
    budget = np.array([load(0.0, k) for k in range(COUNT)]) + room

    @jax.jit
    @one_by_one
    def leaves(weights: Array, x: Array, d: Array, budget: Array) -> tuple[Array, Array, Array]:
        kinks = jnp.where(d != 0, -x / jnp.where(d != 0, d, 1.0), 0.0)
        rate, still = weights * d, jnp.sum(jnp.where(d == 0, weights * jnp.maximum(x, 0.0), 0.0))
        pieces = (kinks, jnp.minimum(rate, 0.0), jnp.maximum(rate, 0.0), still, budget)
        exact = convex_exit(lambda t: jnp.sum(jnp.maximum(weights * (x + t * d), 0.0)), *pieces)
        return exact, *convex_chord(*pieces)

    def bisected(k: int, way: float) -> float:
        inside, outside = 0.0, 1e6
        for _ in range(100 if load(way * outside, k) > budget[k] else 0):
            middle = 0.5 * (inside + outside)
            inside, outside = (middle, outside) if load(way * middle, k) <= budget[k] else (inside, middle)
        return np.inf if outside == 1e6 else inside

    found, back, ahead = map(np.asarray, leaves(*(jnp.asarray(a, dtype) for a in (weights, x, d, budget))))
    slack = 1e-9 if dtype == jnp.float64 else 1e-4
    ends, starts = ([bisected(k, way) for k in range(COUNT)] for way in (1.0, -1.0))
    np.testing.assert_allclose(found, ends, rtol=slack, atol=slack)
    np.testing.assert_allclose(ahead, ends, rtol=slack, atol=slack)
    np.testing.assert_allclose(back, starts, rtol=slack, atol=slack)
    assert np.isinf(ends).any()
    assert np.less(ends, 1e-12).any()
