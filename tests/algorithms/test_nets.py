"""Networks against NumPy: values, ranges of outputs and of initial weights, and blending."""

from collections.abc import Callable
from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from feasible.algorithms.nets import Actor, Critic, Hidden, Output, blend, draws_of, uniform
from tests.algorithms.plain import actor_output, critic_value

Net = TypeVar("Net", Actor, Critic)
LOW, HIGH = np.array([-1.0, 10.0]), np.array([1.0, 35.0])


@eqx.filter_jit
def new(kind: Callable[..., Net], *arguments: object) -> Net:
    return kind(*arguments)


def float64(net: Net) -> Net:
    return jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf, np.float64)), net)


@pytest.mark.parametrize("hidden", ["relu", "leaky_relu"])
@pytest.mark.parametrize("output", ["tanh", "relu", "leaky_relu"])
def test_actors_are_what_numpy_computes(hidden: Hidden, output: Output) -> None:
    actor = float64(new(Actor, 3, 2, (7, 5), hidden, output, jax.random.key(0)))
    act = jax.jit(lambda obs: actor(obs, jnp.asarray(LOW), jnp.asarray(HIGH)))
    for obs in np.random.default_rng(0).normal(size=(10, 3)):
        np.testing.assert_allclose(act(obs), actor_output(actor, obs, LOW, HIGH), rtol=1e-12)


def test_outputs_span_the_box_or_stay_positive() -> None:
    wild = 1e3 * np.random.default_rng(1).normal(size=(200, 3))
    outputs = {}
    for output in ("tanh", "relu", "leaky_relu"):
        actor = float64(new(Actor, 3, 2, (64, 64), "relu", output, jax.random.key(0)))
        act = jax.jit(jax.vmap(actor, in_axes=(0, None, None)))
        outputs[output] = np.asarray(act(jnp.asarray(wild), jnp.asarray(LOW), jnp.asarray(HIGH)))
    assert (outputs["tanh"] >= LOW).all()
    assert (outputs["tanh"] <= HIGH).all()
    # Saturated both ways: the whole box can be reached.
    np.testing.assert_allclose([outputs["tanh"].min(0), outputs["tanh"].max(0)], [LOW, HIGH], atol=1e-6)
    assert outputs["relu"].min() == 0
    assert outputs["relu"].max() > 35
    np.testing.assert_allclose(np.maximum(outputs["leaky_relu"], 0), outputs["relu"], rtol=1e-6)
    assert outputs["leaky_relu"].min() < 0


@pytest.mark.parametrize("units", [(6,), (7, 5), (7, 5, 4)])
def test_critics_are_what_numpy_computes_of_a_joined_input(units: tuple[int, ...]) -> None:
    critic = float64(new(Critic, 3, 2, units, "leaky_relu", jax.random.key(2)))
    value, rng = jax.jit(lambda obs, action: critic(obs, action)), np.random.default_rng(2)
    for obs, action in zip(rng.normal(size=(10, 3)), rng.normal(size=(10, 2)), strict=True):
        expected = critic_value(critic, obs, action)
        assert float(value(obs, action)) == pytest.approx(expected, rel=1e-12)


def spread(leaf: np.ndarray, inputs: int) -> tuple[float, float]:
    """Largest size and standard deviation, in units of 1/sqrt(inputs)."""
    return float(np.abs(leaf).max()) * inputs**0.5, float(np.std(leaf)) * inputs**0.5


def test_weights_start_uniform_within_one_over_the_root_of_their_inputs() -> None:
    actor = jax.tree.map(np.asarray, new(Actor, 17, 6, (400, 300), "relu", "tanh", jax.random.key(3)))
    critic = jax.tree.map(np.asarray, new(Critic, 17, 6, (400, 300), "relu", jax.random.key(4)))
    # The critic's second layer has the action among its inputs.
    blocks = [
        *zip([layer.weight for layer in actor.layers], [17, 400, 300], strict=True),
        *zip([layer.bias for layer in actor.layers[:2]], [17, 400], strict=True),
        *zip([layer.weight for layer in critic.layers], [17, 406, 300], strict=True),
        *zip([layer.bias for layer in critic.layers[:2]], [17, 406], strict=True),
        (critic.action_weight, 406),
    ]
    for leaf, inputs in blocks:
        largest, deviation = spread(leaf, inputs)
        assert 0.95 < largest <= 1.0 + 1e-6
        assert deviation == pytest.approx(1 / 3**0.5, rel=0.1)
    assert len({float(leaf.ravel()[0]) for leaf in jax.tree.leaves((actor, critic))}) == 13  # no key used twice


def test_blending_moves_every_weight_by_the_ratio() -> None:
    target, online = (new(Actor, 3, 2, (4,), "relu", "tanh", jax.random.key(i)) for i in (5, 6))
    mixed = blend(target, online, 0.25)
    for m, t, o in zip(*(jax.tree.leaves(net) for net in (mixed, target, online)), strict=True):
        np.testing.assert_allclose(m, 0.75 * np.asarray(t) + 0.25 * np.asarray(o), rtol=1e-5, atol=1e-7)
    for ratio, net in ((0.0, target), (1.0, online)):
        for m, expected in zip(jax.tree.leaves(blend(target, online, ratio)), jax.tree.leaves(net), strict=True):
            np.testing.assert_allclose(m, expected, atol=1e-7)


def test_numbers_drawn_together_are_those_of_each_key() -> None:
    """Some so much smaller than others that they are drawn in a call of their own."""
    draws = draws_of((3, 40, 50, 2), jax.random.split(jax.random.key(5), 3), {1: 2})
    assert [shape for _, shape, _ in draws] == [(3, 40), (40,), (40, 50), (50,), (50, 2), (2,)]
    np.testing.assert_allclose([reach**-2 for _, _, reach in draws], [3, 3, 42, 42, 50, 50])
    for found, (key, shape, reach) in zip(jax.jit(lambda: uniform(draws))(), draws, strict=True):
        known = jax.random.uniform(key, shape, jnp.float32, -reach, reach)
        np.testing.assert_allclose(found, known, rtol=0, atol=reach * 2.0**-22)  # one program rounds once less
