"""Values, gradients and smoothness of finite processes against loops, finite differences and closed forms."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array

from feasible.algorithms.finite_mdp import (
    Regularity,
    SineMDP,
    action_gradients,
    action_value,
    evaluate,
    performance,
    random_sine_mdp,
    smoothness,
)

STATES, ACTIONS, WAVES = 4, 3, 3
DISCOUNTS = [0.0, 0.1, 0.3, 0.9]
PAIRS = 2_000


def process(discount: float) -> SineMDP:
    return random_sine_mdp(np.random.default_rng(7), STATES, ACTIONS, WAVES, discount)


def tables(seed: int, count: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(count, STATES, ACTIONS))


def table(seed: int) -> np.ndarray:
    return tables(seed, 1)[0]


def waves(mdp: SineMDP, state: int, action: np.ndarray) -> np.ndarray:
    return np.sin(np.asarray(mdp.frequencies[state]) @ action + np.asarray(mdp.phases[state]))


def reward(mdp: SineMDP, state: int, action: np.ndarray) -> float:
    return 0.5 + float(np.asarray(mdp.reward_waves[state]) @ waves(mdp, state, action))


def transition(mdp: SineMDP, state: int, action: np.ndarray) -> np.ndarray:
    return np.asarray(mdp.base[state]) + waves(mdp, state, action) @ np.asarray(mdp.transition_waves[state])


def values_by_iteration(mdp: SineMDP, policy: np.ndarray) -> np.ndarray:
    """V by repeated backups, one state after the other."""
    discount, values = float(mdp.discount), np.zeros(STATES)
    rewards = [reward(mdp, state, policy[state]) for state in range(STATES)]
    rows = [transition(mdp, state, policy[state]) for state in range(STATES)]
    for _ in range(400):
        values = np.array([rewards[state] + discount * rows[state] @ values for state in range(STATES)])
    return values


# The process is an argument of what is compiled, so that all discounts share a program.
constant = jax.jit(lambda mdp: smoothness(mdp.regularity(), mdp.discount))
values_of = jax.jit(evaluate)
gradients_of = jax.jit(action_gradients)
slope_of = jax.jit(jax.grad(performance, argnums=1))


@jax.jit
def outcomes(mdp: SineMDP, policies: Array) -> tuple[Array, Array]:
    every = jnp.arange(STATES)
    return jax.vmap(
        lambda policy: (jax.vmap(mdp.reward)(every, policy), jax.vmap(mdp.transition)(every, policy)),
    )(policies)


@jax.jit
def slopes(mdp: SineMDP, policies: Array) -> Array:
    return jax.vmap(jax.grad(lambda policy: performance(mdp, policy)))(policies)


@jax.jit
def hessians(mdp: SineMDP, policies: Array) -> tuple[Array, Array]:
    """Of V in every state by the whole table, and of Q in every state by its action."""
    by_action = jax.hessian(action_value, argnums=3)

    def both(policy: Array) -> tuple[Array, Array]:
        values = evaluate(mdp, policy)
        of_values = jax.hessian(lambda flat: evaluate(mdp, flat.reshape(STATES, ACTIONS)))(policy.ravel())
        of_q = jax.vmap(lambda state, action: by_action(mdp, values, state, action))(jnp.arange(STATES), policy)
        return of_values, of_q

    return jax.vmap(both)(policies)


@pytest.mark.parametrize("discount", DISCOUNTS)
def test_rewards_and_transitions_are_what_they_must_be(discount: float) -> None:
    mdp = process(discount)
    rewards, rows = outcomes(mdp, 10.0 * tables(0, 500))
    assert 0.0 <= rewards.min() < 0.2
    assert 0.8 < rewards.max() <= 1.0
    assert rows.min() >= -1e-15
    np.testing.assert_allclose(rows.sum(axis=2), 1.0, rtol=0, atol=1e-14)


@pytest.mark.parametrize("discount", DISCOUNTS)
def test_evaluation_equals_a_loop_of_backups(discount: float) -> None:
    mdp, policy = process(discount), table(0)
    expected = values_by_iteration(mdp, policy)
    np.testing.assert_allclose(values_of(mdp, policy), expected, rtol=1e-12)


@pytest.mark.parametrize("discount", DISCOUNTS)
def test_action_gradients_equal_finite_differences(discount: float) -> None:
    mdp, policy, width = process(discount), table(1), 1e-6
    values = values_by_iteration(mdp, policy)

    def q(state: int, action: np.ndarray) -> float:
        return reward(mdp, state, action) + discount * float(transition(mdp, state, action) @ values)

    expected = np.array(
        [
            [(q(state, policy[state] + step) - q(state, policy[state] - step)) / (2 * width) for step in steps]
            for state, steps in enumerate(np.broadcast_to(width * np.eye(ACTIONS), (STATES, ACTIONS, ACTIONS)))
        ]
    )
    actual = gradients_of(mdp, values, policy)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize("discount", DISCOUNTS)
def test_the_policy_gradient_weighs_action_gradients_by_visits(discount: float) -> None:
    """grad J in state s is grad_a Q times the discounted number of visits, mu'(I - gamma P)^-1, not normalised."""
    mdp, policy = process(discount), table(2)
    rows = np.stack([transition(mdp, state, policy[state]) for state in range(STATES)])
    visits = np.linalg.solve((np.eye(STATES) - discount * rows).T, np.asarray(mdp.restart))
    assert visits.sum() == pytest.approx(1.0 / (1.0 - discount))
    gradients = gradients_of(mdp, values_of(mdp, policy), policy)
    np.testing.assert_allclose(slope_of(mdp, policy), visits[:, None] * gradients, rtol=0, atol=1e-12)


def along(function: Callable[[Array], Array], point: Array, direction: Array) -> tuple[Array, Array]:
    """First and second derivative on the line through a point."""

    def line(step: Array) -> Array:
        return function(point + step * direction)

    origin = jnp.zeros(())
    return jax.jacfwd(line)(origin), jax.jacfwd(jax.jacfwd(line))(origin)


def test_derivatives_stay_below_their_bounds_and_come_near() -> None:
    mdp = process(0.3)
    rng = np.random.default_rng(1)
    points, directions = 3.0 * rng.normal(size=(PAIRS, ACTIONS)), rng.normal(size=(PAIRS, ACTIONS))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    states = rng.integers(0, STATES, PAIRS)

    @jax.jit
    @jax.vmap
    def sizes(state: Array, point: Array, direction: Array) -> tuple[Array, ...]:
        by_transition = along(lambda a: mdp.transition(state, a), point, direction)
        by_reward = along(lambda a: mdp.reward(state, a), point, direction)
        return tuple(jnp.sum(jnp.abs(part)) for part in (*by_transition, *by_reward))

    bounds = mdp.regularity()
    for seen, bound in zip(sizes(states, points, directions), bounds, strict=True):
        assert 0.3 * bound < seen.max() <= bound


def length(tables: np.ndarray) -> np.ndarray:
    return np.sqrt((tables**2).sum(axis=(1, 2)))


@pytest.mark.parametrize("discount", DISCOUNTS)
def test_performance_is_smooth_with_the_constant(discount: float) -> None:
    """Proposition 1, for pairs of tables near and far."""
    mdp, first = process(discount), tables(2, PAIRS)
    scales = 10.0 ** np.random.default_rng(3).uniform(-4.0, 1.0, (PAIRS, 1, 1))
    second = first + scales * tables(4, PAIRS)
    change = np.asarray(slopes(mdp, first) - slopes(mdp, second))
    assert (length(change) <= float(constant(mdp)) * length(first - second)).all()


@pytest.mark.parametrize("discount", DISCOUNTS)
def test_values_and_action_values_are_smooth_with_the_constant(discount: float) -> None:
    """The Hessians of V by the table and of Q by the action have no eigenvalue above L, in any state."""
    mdp = process(discount)
    for curvatures in hessians(mdp, tables(5, 50)):
        assert np.abs(np.linalg.eigvalsh(curvatures)).max() <= float(constant(mdp))


@pytest.mark.parametrize("discount", DISCOUNTS)
def test_the_constant_is_attained_on_the_crest_of_a_single_wave(discount: float) -> None:
    """With one state V = r / (1 - gamma): only the term of r'' is left, which the paper's constant lacks."""
    wave, flat = np.array([[[3.0, 4.0]]]), np.zeros((1, 1, 1))
    mdp = SineMDP(wave, [[0.5 * np.pi]], [[0.5]], [[1.0]], flat, discount, [1.0])
    hessian = jax.jit(jax.hessian(performance, argnums=1))(mdp, jnp.zeros((1, 2))).reshape(2, 2)
    expected = 0.5 * 25.0 / (1.0 - discount)
    assert np.abs(np.linalg.eigvalsh(hessian)).max() == pytest.approx(expected)
    assert float(constant(mdp)) == pytest.approx(expected)


def test_the_constant_has_all_its_terms() -> None:
    """16 + 6 + 40 + 14 by hand, for C1 = 2, C2 = 3, C_r = 5, L_r = 7 and half discount."""
    bounds = Regularity(*map(jnp.asarray, (2.0, 3.0, 5.0, 7.0)))
    assert float(smoothness(bounds, jnp.asarray(0.5))) == pytest.approx(76.0)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"discount": 1.0}, "discount must lie in"),
        ({"restart": [0.0, 1.0]}, "restart must be positive"),
        ({"base": [[0.5, 0.4], [0.5, 0.5]]}, "every row of base must have sum 1"),
        ({"transition_waves": [[[0.1, 0.1]], [[0.0, 0.0]]]}, "sum 0 over next states"),
        ({"transition_waves": [[[0.6, -0.6]], [[0.0, 0.0]]]}, "must not exceed base"),
        ({"reward_waves": [[0.6], [0.5]]}, "must not exceed 1/2"),
        ({"phases": [[0.0]]}, "shapes must be"),
    ],
)
def test_a_process_that_is_none_is_refused(changes: dict, sentence: str) -> None:
    good = {
        "frequencies": [[[1.0]], [[1.0]]],
        "phases": [[0.0], [0.0]],
        "reward_waves": [[0.5], [0.5]],
        "base": [[0.5, 0.5], [0.5, 0.5]],
        "transition_waves": [[[0.5, -0.5]], [[0.0, 0.0]]],
        "discount": 0.5,
        "restart": [0.5, 0.5],
    }
    SineMDP(**good)
    with pytest.raises(ValueError, match=sentence):
        SineMDP(**good | changes)
