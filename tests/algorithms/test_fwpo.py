"""FWPO keeps what Proposition 2 promises: feasible tables, values that never fall, and gaps that vanish as bounded."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from feasible.algorithms.finite_mdp import SineMDP, evaluate, performance, random_sine_mdp, smoothness
from feasible.algorithms.fwpo import Iteration, fwpo, squared_gap_bound, step_rates
from feasible.errors import InfeasibleActionError
from feasible.sets import ActionSet, Allocation, Ball, Box, Polytope

STATES, ACTIONS, WAVES = 4, 3, 3
DISCOUNTS = np.array([0.0, 0.1, 0.2, 0.3])
ITERATIONS = 10_000


def boxes(rng: np.random.Generator) -> ActionSet:
    return jax.jit(jax.vmap(Box))(-rng.random((STATES, ACTIONS)), rng.random((STATES, ACTIONS)))


def balls(rng: np.random.Generator) -> ActionSet:
    """The first is a point."""
    return jax.jit(jax.vmap(Ball))(rng.normal(size=(STATES, ACTIONS)), np.array([0.0, 0.3, 1.0, 2.0]))


def allocations(rng: np.random.Generator) -> ActionSet:
    highs = 0.5 + rng.random((STATES, ACTIONS))
    return jax.jit(jax.vmap(lambda high: Allocation(1.0, jnp.zeros(ACTIONS), high)))(highs)


def polytopes(rng: np.random.Generator) -> ActionSet:
    A = rng.normal(size=(5, ACTIONS))
    return jax.vmap(lambda b: Polytope(A, b, -1.0, 1.0))(0.2 + rng.random((STATES, 5)))


@jax.jit
def centres(sets: ActionSet) -> jax.Array:
    return jax.vmap(lambda feasible_set: feasible_set.centre())(sets)


last_values = jax.jit(jax.vmap(evaluate))
constants = jax.jit(jax.vmap(lambda mdp: smoothness(mdp.regularity(), mdp.discount)))
diameters = jax.jit(jax.vmap(lambda feasible_set: feasible_set.diameter()))
bounds = jax.jit(jax.vmap(squared_gap_bound, in_axes=(0, None)))


@jax.jit
def violations(sets: ActionSet, tables: jax.Array) -> jax.Array:
    one_table = jax.vmap(lambda feasible_set, action: feasible_set.violation(action))
    return jax.vmap(one_table, in_axes=(None, 0))(sets, tables)


@jax.jit
def corners(sets: ActionSet) -> jax.Array:
    return jax.vmap(lambda feasible_set: feasible_set.maximise_linear(jnp.arange(1.0, 1.0 + ACTIONS)))(sets)


class Run(NamedTuple):
    """One process for each discount on the same sets, with the processes in front of every array."""

    mdps: SineMDP
    sets: ActionSet
    final: jax.Array
    trace: Iteration
    values: np.ndarray  # of all tables, the final one included
    diameters: np.ndarray
    constants: np.ndarray


def process(discount: float) -> SineMDP:
    return random_sine_mdp(np.random.default_rng(round(100 * discount)), STATES, ACTIONS, WAVES, discount)


@pytest.fixture(scope="module")
def mdps() -> SineMDP:
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *map(process, DISCOUNTS))


# A group keeps the tests of one kind of set, and so its one long run, on one worker.
KINDS = [
    pytest.param(build, id=build.__name__, marks=pytest.mark.xdist_group(f"fwpo-{build.__name__}"))
    for build in (boxes, balls, allocations)
]
# Ten thousand linear programs over vertices take long, and are no other iteration.
KINDS += [pytest.param(polytopes, id="polytopes", marks=[pytest.mark.xdist_group("fwpo-polytopes"), pytest.mark.slow])]


@pytest.fixture(scope="module", params=KINDS)
def run(request: pytest.FixtureRequest, mdps: SineMDP) -> Run:
    build: Callable[[np.random.Generator], ActionSet] = request.param
    sets = build(np.random.default_rng(5))
    initial = 0.5 * (centres(sets) + corners(sets))
    final, trace = jax.jit(jax.vmap(lambda mdp: fwpo(mdp, sets, initial, ITERATIONS)))(mdps)
    values = np.concatenate([trace.values, last_values(mdps, final)[:, None]], axis=1)
    return Run(mdps, sets, final, trace, values, np.asarray(diameters(sets)), np.asarray(constants(mdps)))


def test_every_table_is_feasible(run: Run) -> None:
    tables = np.concatenate([np.reshape(run.trace.policy, (-1, STATES, ACTIONS)), run.final])
    assert violations(run.sets, tables).max() < 1e-13


def test_no_value_ever_falls(run: Run) -> None:
    assert np.diff(run.values, axis=1).min() > -1e-13
    assert (run.values[:, -1] - run.values[:, 0]).max() > 0.05


def test_step_sizes_are_the_theorys(run: Run) -> None:
    """(1 - gamma) mu_min g_k(s) / (L D_s^2), here never cut off at 1, and 0 where the set is a point."""
    widths = np.where(run.diameters > 0.0, run.diameters, np.inf)
    rates = (1.0 - DISCOUNTS[:, None]) / STATES / (run.constants[:, None] * widths**2)
    np.testing.assert_allclose(run.trace.step_sizes, rates[:, None] * run.trace.gaps, rtol=1e-12, atol=1e-15)
    assert run.trace.step_sizes.max() < 1.0


def test_every_iteration_gains_what_its_gaps_promise(run: Run) -> None:
    """J_{k+1} - J_k >= sum_s ((1 - gamma) mu_min g_k(s))^2 / (2 L D_s^2): the step of the proof that bounds the sum."""
    widths = np.where(run.diameters > 0.0, run.diameters, np.inf)
    shares = (1.0 - DISCOUNTS[:, None, None]) / STATES * np.asarray(run.trace.gaps) / widths
    promised = (shares**2).sum(axis=2) / (2.0 * run.constants[:, None])
    assert (np.diff(run.values.mean(axis=2), axis=1) >= promised - 1e-14).all()


def test_squared_gaps_add_up_to_less_than_the_bound(run: Run) -> None:
    assert run.trace.gaps.min() > -1e-14
    squares = (np.asarray(run.trace.gaps) ** 2).sum(axis=2)
    np.testing.assert_allclose(np.asarray(run.trace.effective_gap) ** 2, squares)
    bound = 2.0 * run.constants * run.diameters.max() ** 2 * STATES**2 / (1.0 - DISCOUNTS) ** 3
    np.testing.assert_allclose(bounds(run.mdps, run.sets), bound)
    assert (squares.sum(axis=1) <= bound).all()
    best = np.minimum.accumulate(run.trace.effective_gap, axis=1)
    assert (best <= np.sqrt(bound[:, None] / np.arange(1, ITERATIONS + 1))).all()


def test_gaps_vanish(run: Run) -> None:
    gaps = np.asarray(run.trace.effective_gap)
    assert (gaps[:, -1] < 0.05 * gaps[:, 0]).all()
    assert (gaps[:, -1] < 0.3 * gaps[:, 1000]).all()


def test_points_stay_where_they_are() -> None:
    points = np.random.default_rng(0).normal(size=(STATES, ACTIONS))
    mdp = process(0.3)
    final, trace = fwpo(mdp, jax.vmap(Box)(points, points), jnp.asarray(points), 50)
    np.testing.assert_array_equal(final, points)
    np.testing.assert_array_equal(trace.step_sizes, 0.0)


def test_a_known_optimum_is_found() -> None:
    """Every reward rises along its wave within the ball, and transitions do not depend on the action."""
    waves = np.array([[1.0, 0.0], [-0.6, 0.8], [0.0, -1.0]])
    base = np.array([[0.2, 0.3, 0.5], [0.5, 0.5, 0.0], [0.1, 0.1, 0.8]])
    mdp = jax.jit(SineMDP)(
        waves[:, None], np.zeros((3, 1)), np.full((3, 1), 0.5), base, np.zeros((3, 1, 3)), 0.2, [1 / 3] * 3
    )
    sets = jax.jit(jax.vmap(lambda radius: Ball(np.zeros(2), radius)))(np.array([0.4, 0.8, 1.2]))
    final, _ = fwpo(mdp, sets, centres(sets), ITERATIONS)
    np.testing.assert_allclose(final, waves * [[0.4], [0.8], [1.2]], rtol=0, atol=0.02)
    expected = np.linalg.solve(np.eye(3) - 0.2 * base, 0.5 + 0.5 * np.sin([0.4, 0.8, 1.2])).mean()
    assert float(jax.jit(performance)(mdp, final)) == pytest.approx(expected, abs=1e-3)


def test_a_step_goes_no_further_than_the_vertex() -> None:
    """Slow waves are nearly linear: without the minimum the step would be 101 times too long."""
    mdp = jax.jit(SineMDP)(np.full((1, 1, 2), 1e-3), [[0.0]], [[0.5]], [[1.0]], np.zeros((1, 1, 1)), 0.1, [1.0])
    sets = jax.jit(jax.vmap(Box))(-np.ones((1, 2)), np.ones((1, 2)))
    np.testing.assert_allclose(np.asarray(jax.jit(step_rates)(mdp, sets)) * 1e-3, 101.25)
    final, trace = fwpo(mdp, sets, jnp.zeros((1, 2)), 2)
    np.testing.assert_array_equal(final, [[1.0, 1.0]])
    np.testing.assert_array_equal(trace.step_sizes[0], [1.0])
    assert trace.values[1, 0] > trace.values[0, 0]


def test_a_process_without_choice_stays_finite() -> None:
    still = np.zeros((2, 1, 2))
    mdp = jax.jit(SineMDP)(still, still[..., 0], still[..., 0], np.full((2, 2), 0.5), still, 0.5, [0.5, 0.5])
    sets = jax.jit(jax.vmap(Box))(-np.ones((2, 2)), np.ones((2, 2)))
    start = jnp.full((2, 2), 0.25)
    final, trace = fwpo(mdp, sets, start, 3)
    np.testing.assert_array_equal(final, start)
    np.testing.assert_array_equal(trace.values, 1.0)


def test_a_start_outside_is_refused() -> None:
    mdp = process(0.3)
    sets = jax.jit(jax.vmap(Box))(np.zeros((STATES, ACTIONS)), np.ones((STATES, ACTIONS)))
    with pytest.raises(InfeasibleActionError, match="feasible set of every state"):
        fwpo(mdp, sets, jnp.full((STATES, ACTIONS), 2.0), 1)
    with pytest.raises(ValueError, match="shape"):
        fwpo(mdp, sets, jnp.zeros((STATES, 2)), 1)
