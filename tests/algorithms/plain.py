"""Networks, projections and small tasks in plain NumPy: what the algorithms are compared with."""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from numpy.typing import NDArray

from feasible.algorithms.base import Algorithm, Decision, Spec, State, Transition
from feasible.algorithms.nets import Actor, Critic
from feasible.sets import Ball

ACTIVATIONS = {
    "relu": lambda x: np.maximum(x, 0.0),
    "leaky_relu": lambda x: np.where(x > 0, x, 0.2 * x),
}


def actor_output(actor: Actor, obs: NDArray, low: NDArray, high: NDArray) -> NDArray:
    x = np.asarray(obs)
    for layer in actor.layers[:-1]:
        x = ACTIVATIONS[actor.hidden](np.asarray(layer.weight).T @ x + np.asarray(layer.bias))
    x = np.asarray(actor.layers[-1].weight).T @ x + np.asarray(actor.layers[-1].bias)
    if actor.output == "tanh":
        return low + (high - low) * (np.tanh(x) + 1) / 2
    return ACTIVATIONS[actor.output](x)


def critic_value(critic: Critic, obs: NDArray, action: NDArray) -> float:
    """The action is concatenated to the input of the layer where it joins."""
    x = np.asarray(obs)
    for index, layer in enumerate(critic.layers[:-1]):
        weight = np.asarray(layer.weight)
        if index == critic.joined:
            x, weight = np.concatenate([x, action]), np.vstack([weight, np.asarray(critic.action_weight)])
        x = ACTIVATIONS[critic.hidden](x @ weight + np.asarray(layer.bias))
    return float(x @ np.asarray(critic.layers[-1].weight)[:, 0] + np.asarray(critic.layers[-1].bias)[0])


def radius(obs: NDArray) -> float:
    return 0.1 + 0.2 * obs[0] ** 2


def in_ball(point: NDArray, reach: float) -> NDArray:
    """The nearest point of the ball around zero."""
    return point * min(1.0, reach / max(np.linalg.norm(point), 1e-300))


def ball_task(observation_size: int = 3, action_size: int = 2, bound: float = 1.0) -> Spec:
    """Actions in a box and in a ball around zero whose radius depends on the observation, in float64."""
    return Spec(
        observation_size,
        jnp.full(action_size, -bound),
        jnp.full(action_size, bound),
        lambda obs: Ball(jnp.zeros(action_size), 0.1 + 0.2 * obs[0] ** 2),
        episode_length=5,
    )


def random_transition(rng: np.random.Generator, spec: Spec, *, terminated: bool, truncated: bool) -> Transition:
    obs, next_obs = rng.normal(size=(2, spec.observation_size))
    proposed = rng.uniform(np.asarray(spec.low), np.asarray(spec.high))
    executed = in_ball(proposed, radius(obs))
    floats = [jnp.asarray(x, spec.low.dtype) for x in (obs, proposed, executed, rng.normal(), next_obs)]
    obs, proposed, executed, reward, next_obs = floats
    ends = jnp.asarray(terminated), jnp.asarray(truncated)
    return Transition(obs, Decision(proposed, executed, proposed), reward, next_obs, *ends)


@eqx.filter_jit
def _first(algorithm: Algorithm[State], spec: Spec, key: Array) -> State:
    return algorithm.init(key, spec)


def new(algorithm: Algorithm[State], spec: Spec, seed: int = 0) -> State:
    """The first state, by one program instead of one for each of its numbers."""
    return _first(algorithm, spec, jax.random.key(seed))


@eqx.filter_jit
def _stored(algorithm: Algorithm[State], spec: Spec, state: State, transitions: Transition) -> State:
    return jax.lax.scan(lambda s, made: (algorithm.observe(s, spec, made), None), state, transitions)[0]


def stored(algorithm: Algorithm[State], spec: Spec, state: State, transitions: Sequence[Transition]) -> State:
    """The state that has observed all of them."""
    return _stored(algorithm, spec, state, jax.tree.map(lambda *leaves: np.stack(leaves), *transitions))
