"""Networks of the paper: an actor and a critic of two hidden layers, the action entering the critic at the second.

Functions of one observation; a batch is `jax.vmap`. Weights and biases start uniform in +-1/sqrt(inputs); those of a
`Perceptron` start orthogonal.
"""

from collections.abc import Callable, Sequence
from typing import Literal, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

Hidden = Literal["relu", "leaky_relu", "tanh"]
Output = Literal["tanh", "relu", "leaky_relu", "linear"]


def leaky_relu(x: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """max(x, x/5)."""
    return jax.nn.leaky_relu(x, 0.2)


HIDDEN: dict[Hidden, Callable[[Array], Array]] = {"relu": jax.nn.relu, "leaky_relu": leaky_relu, "tanh": jnp.tanh}


def activated(output: Output, x: Float[Array, " n"], low: Float[Array, " n"], high: Float[Array, " n"]) -> Array:
    """What an actor puts out, of what its last layer does: see `Actor`."""
    if output == "tanh":
        return 0.5 * (high + low) + 0.5 * (high - low) * jnp.tanh(x)
    return x if output == "linear" else HIDDEN[output](x)


class Dense(eqx.Module):
    """x -> x W + b."""

    weight: Float[Array, "i o"]
    bias: Float[Array, " o"]

    def __init__(self, inputs: int, outputs: int, key: PRNGKeyArray, *, fan_in: int | None = None):
        reach = 1.0 / (fan_in or inputs) ** 0.5
        first, second = jax.random.split(key)
        self.weight = jax.random.uniform(first, (inputs, outputs), jnp.float32, -reach, reach)
        self.bias = jax.random.uniform(second, (outputs,), jnp.float32, -reach, reach)

    def __call__(self, x: Float[Array, " i"]) -> Float[Array, " o"]:
        return x @ self.weight + self.bias


class Actor(eqx.Module):
    """pi(s): hidden layers, then an output activation in the units of the action box.

    "tanh" spans the box [low, high]; the others are the action itself, "relu" and "leaky_relu" not bounded above,
    "linear" on no side.
    """

    layers: tuple[Dense, ...]
    hidden: Hidden = eqx.field(static=True)
    output: Output = eqx.field(static=True)

    def __init__(
        self, inputs: int, outputs: int, units: Sequence[int], hidden: Hidden, output: Output, key: PRNGKeyArray
    ):
        sizes = [inputs, *units, outputs]
        keys = jax.random.split(key, len(sizes) - 1)
        self.layers = tuple(Dense(i, o, k) for i, o, k in zip(sizes[:-1], sizes[1:], keys, strict=True))
        self.hidden, self.output = hidden, output

    def __call__(
        self, obs: Float[Array, " o"], low: Float[Array, " n"], high: Float[Array, " n"]
    ) -> Float[Array, " n"]:
        x = obs
        for layer in self.layers[:-1]:
            x = HIDDEN[self.hidden](layer(x))
        return activated(self.output, self.layers[-1](x), low, high)


class Critic(eqx.Module):
    """Q(s, a) = f_k(... f_2(f_1(s), a)): the action joins at the second layer, or at the layer `joined`.

    A network of one hidden layer takes both at once. The weights of that layer are kept as two blocks, so that
    nothing is concatenated and the gradient by the action touches the small block only.
    """

    layers: tuple[Dense, ...]
    action_weight: Float[Array, "n o"]
    hidden: Hidden = eqx.field(static=True)
    joined: int = eqx.field(static=True)

    def __init__(
        self, inputs: int, actions: int, units: Sequence[int], hidden: Hidden, key: PRNGKeyArray, joined: int = 1
    ):
        sizes = [inputs, *units, 1]
        joined = min(joined, len(units) - 1)
        *keys, action_key = jax.random.split(key, len(sizes))
        self.layers = tuple(
            Dense(i, o, k, fan_in=i + actions if layer == joined else None)
            for layer, (i, o, k) in enumerate(zip(sizes[:-1], sizes[1:], keys, strict=True))
        )
        reach = 1.0 / (sizes[joined] + actions) ** 0.5
        self.action_weight = jax.random.uniform(action_key, (actions, sizes[joined + 1]), jnp.float32, -reach, reach)
        self.hidden, self.joined = hidden, joined

    def __call__(self, obs: Float[Array, " o"], action: Float[Array, " n"]) -> Float[Array, ""]:
        x = obs
        for index, layer in enumerate(self.layers[:-1]):
            before = layer(x)
            x = HIDDEN[self.hidden](before + action @ self.action_weight if index == self.joined else before)
        return self.layers[-1](x)[0]

    def values(self, obs: Float[Array, " o"], action: Float[Array, " n"]) -> Float[Array, " k"]:
        """Of each of its networks."""
        return self(obs, action)[None]


class Twin(Critic):
    """Two critics of the same shape; as a function it is the first."""

    second: Critic

    def __init__(
        self, inputs: int, actions: int, units: Sequence[int], hidden: Hidden, key: PRNGKeyArray, joined: int = 1
    ):
        first_key, second_key = jax.random.split(key)
        super().__init__(inputs, actions, units, hidden, first_key, joined)
        self.second = Critic(inputs, actions, units, hidden, second_key, joined)

    def values(self, obs: Float[Array, " o"], action: Float[Array, " n"]) -> Float[Array, " k"]:
        return jnp.stack([self(obs, action), self.second(obs, action)])


class Perceptron(eqx.Module):
    """x -> f_k(... f_1(x)): hidden layers, then a linear one whose weights start `last` times an orthogonal matrix."""

    layers: tuple[Dense, ...]
    hidden: Hidden = eqx.field(static=True)

    def __init__(
        self, inputs: int, outputs: int, units: Sequence[int], hidden: Hidden, key: PRNGKeyArray, *, last: float = 1.0
    ):
        sizes = [inputs, *units, outputs]
        keys = jax.random.split(key, len(sizes) - 1)
        scales = [*(1.0 for _ in units), last]
        self.layers = tuple(
            _orthogonal(i, o, scale, k) for i, o, scale, k in zip(sizes[:-1], sizes[1:], scales, keys, strict=True)
        )
        self.hidden = hidden

    def __call__(self, x: Float[Array, " i"]) -> Float[Array, " o"]:
        for layer in self.layers[:-1]:
            x = HIDDEN[self.hidden](layer(x))
        return self.layers[-1](x)


def _orthogonal(inputs: int, outputs: int, scale: float, key: PRNGKeyArray) -> Dense:
    weight = jax.nn.initializers.orthogonal(scale)(key, (inputs, outputs), jnp.float32)
    bias = jnp.zeros(outputs, jnp.float32)
    return eqx.tree_at(lambda d: (d.weight, d.bias), Dense(inputs, outputs, key), (weight, bias))


Net = TypeVar("Net")


def blend(target: Net, online: Net, ratio: float) -> Net:
    """(1 - ratio) target + ratio online: the soft update of a target network."""
    return jax.tree.map(lambda t, o: t + ratio * (o - t), target, online)
