"""The steps of Frank-Wolfe in an actor rule: by the gap, by a line search, several of them, and away steps."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array
from numpy.typing import NDArray

from feasible.algorithms.actor_rules import HALVINGS, STATES, ActionGradient, ActorRule, FrankWolfe
from feasible.algorithms.away_steps import LEAST, Mixture, better
from feasible.algorithms.merged import asks_once
from feasible.sets import ActionSet, Ball, Box

UNIT = Ball(jnp.zeros(3), 1.0)


def references(rule: ActorRule, feasible_set: ActionSet, proposals: NDArray, gradient: ActionGradient) -> NDArray:
    def one(proposed: Array) -> Array:
        return proposed + rule.direction(feasible_set, proposed, gradient)[0]

    return np.asarray(jax.jit(jax.vmap(one, axis_name=STATES))(jnp.asarray(proposals)))


def test_steps_by_the_gap_are_proportional_to_it() -> None:
    rng = np.random.default_rng(0)
    proposals, slopes = rng.normal(size=(40, 3)) / 4, np.array([1.0, -2.0, 0.5])

    def gradient(a: Array) -> Array:
        return jnp.asarray(slopes) * (1 + a[0])

    found = references(FrankWolfe(0.8, by="gap"), UNIT, proposals, gradient)
    gaps, corners = [], []
    for a in proposals:
        g = slopes * (1 + a[0])
        corners.append(g / np.linalg.norm(g))
        gaps.append(g @ (corners[-1] - a))
    steps = np.minimum(1, 0.8 * np.array(gaps) / np.mean(gaps))
    assert (steps == 1).any()
    assert steps.min() < 0.7
    np.testing.assert_allclose(found, proposals + steps[:, None] * (np.array(corners) - proposals), atol=1e-12)


def test_without_any_gap_nothing_moves() -> None:
    proposals = np.array([[0.1, 0.2, 0.3], [0.0, 0.0, 0.0]])
    found = references(FrankWolfe(0.5, by="gap"), UNIT, proposals, jnp.zeros_like)
    np.testing.assert_array_equal(found, proposals)


def test_steps_by_the_gap_never_leave_the_set() -> None:
    """At the best points gaps are rounding errors of either sign, and all there is to scale by."""
    goal = jnp.array([3.0, 4.0, 12.0], jnp.float32)
    proposals = np.asarray(goal / 13) + 1e-7 * np.random.default_rng(5).normal(size=(64, 3))

    def one(proposed: Array) -> Array:
        return FrankWolfe(0.5, by="gap").direction(Ball(jnp.zeros(3, jnp.float32), 1.0), proposed, lambda a: goal)[0]

    moves = jax.jit(jax.vmap(one, axis_name=STATES))(jnp.asarray(proposals, jnp.float32))
    reached = np.linalg.norm(np.asarray(proposals + np.asarray(moves)), axis=1)
    assert reached.max() < 1 + 1e-6
    towards = np.asarray(moves) @ (np.asarray(goal) / 13)
    assert towards.min() > -1e-6


def test_where_the_critic_falls_a_search_stays() -> None:
    """The slope at the start may rise by rounding only: no step at all is then the best of those tried."""
    found = references(FrankWolfe(0.5, by="search"), UNIT, np.zeros((1, 3)), lambda a: jnp.ones(3) - 1e6 * a)
    np.testing.assert_array_equal(found, 0.0)


@pytest.mark.parametrize("longest", [1.0, 0.3])
def test_a_line_search_finds_the_best_step_of_a_quadratic(longest: float) -> None:
    rng = np.random.default_rng(1)
    proposals, goal = rng.normal(size=(30, 3)) / 4, np.array([0.3, -0.2, 0.4])
    found = references(FrankWolfe(longest, by="search"), UNIT, proposals, lambda a: jnp.asarray(goal) - a)
    steps = []
    for a, reference in zip(proposals, found, strict=True):
        g = goal - a
        way = g / np.linalg.norm(g) - a
        best = np.clip(g @ way / (way @ way), 0, longest)
        steps.append(best)
        taken = (reference - a) @ way / (way @ way)
        assert taken == pytest.approx(best, abs=longest / 2**HALVINGS)
    assert min(steps) < longest / 2 or longest < 1
    assert max(steps) == longest or longest == 1


def frank_wolfe(start: NDArray, gradient: ActionGradient, step: float, count: int) -> NDArray:
    """Plain Frank-Wolfe on the unit ball."""
    point = start / max(1.0, np.linalg.norm(start))
    for _ in range(count):
        g = np.asarray(gradient(jnp.asarray(point)))
        point = point + step * (g / np.linalg.norm(g) - point)
    return point


@pytest.mark.parametrize("count", [1, 2, 5])
def test_several_steps_are_a_plain_loop(count: int) -> None:
    proposals = np.random.default_rng(2).normal(size=(20, 3))
    goal = jnp.array([0.2, 0.5, -0.3])

    def gradient(a: Array) -> Array:
        return goal - a**3

    found = references(FrankWolfe(0.2, inner=count), UNIT, proposals, gradient)
    expected = [frank_wolfe(z, gradient, 0.2, count) for z in proposals]
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert asks_once(FrankWolfe(0.2, inner=count)) == (count == 1)


CUBE = Box(jnp.zeros(3), jnp.ones(3))


def with_away_steps(start: NDArray, gradient: ActionGradient, step: float, count: int) -> tuple[NDArray, int]:
    """Plain Frank-Wolfe with away steps on the unit cube, corners in a list, and how many steps were away."""
    point, corners, weights, away = start.copy(), [start], [1.0], 0
    for _ in range(count):
        g = np.asarray(gradient(jnp.asarray(point)))
        corner = (g > 0).astype(float)
        held = [k for k, weight in enumerate(weights) if weight > 0]
        worst = min(held, key=lambda k: corners[k] @ g)
        if g @ (point - corners[worst]) > g @ (corner - point):
            taken = min(step, weights[worst] / (1 - weights[worst]))
            point = point + taken * (point - corners[worst])
            weights = [w * (1 + taken) - taken * (k == worst) for k, w in enumerate(weights)]
            weights = [w if w > LEAST else 0.0 for w in weights]
            weights = [w / sum(weights) for w in weights]
            away += 1
        else:
            point = point + step * (corner - point)
            corners, weights = [*corners, corner], [*(w * (1 - step) for w in weights), step]
    return point, away


def test_away_steps_are_a_plain_loop() -> None:
    goal, proposals = jnp.array([0.9, 0.1, 0.6]), np.random.default_rng(4).uniform(size=(30, 3))

    def gradient(a: Array) -> Array:
        return (goal - a) * jnp.array([3.0, 1.0, 0.3])

    found = references(FrankWolfe(0.3, inner=8, away=True), CUBE, proposals, gradient)
    expected, away = zip(*(with_away_steps(z, gradient, 0.3, 8) for z in proposals), strict=True)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert sum(away) > 30


def test_moves_of_a_mixture_stay_in_the_hull_and_agree_with_the_point() -> None:
    rng = np.random.default_rng(3)
    point = jnp.asarray(rng.uniform(size=3))
    mixture, left = Mixture.of(point, 30), 0

    @jax.jit
    def moved(mixture: Mixture, point: Array, index: int, g: Array, share: float) -> tuple[Mixture, Array, Array]:
        mixture, towards = mixture.adding(index, CUBE.maximise_linear(g), point)
        move = better(g, towards, mixture.away(g, point))
        step = jnp.minimum(share, move.longest)
        return mixture.moved(move, step), point + step * move.towards, move.longest

    for index in range(1, 31):
        mixture, point, longest = moved(mixture, point, index, rng.normal(size=3), rng.uniform())
        left += int(longest != 1.0)
        weights = np.asarray(mixture.weights)
        assert weights.min() > -1e-12
        assert weights.sum() == pytest.approx(1)
        np.testing.assert_allclose(mixture.weights @ mixture.corners, point, atol=30 * LEAST)
    assert left > 2


def test_a_mixture_of_one_point_cannot_leave_it() -> None:
    point = jnp.array([0.2, 0.3])
    move = Mixture.of(point, 1).away(jnp.array([1.0, 0.0]), point)
    assert float(move.longest) == 0.0
    np.testing.assert_array_equal(move.towards, 0.0)
