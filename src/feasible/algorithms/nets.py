"""Networks of the paper: an actor and a critic of two hidden layers, the action entering the critic at the second.

Functions of one observation; a batch is `jax.vmap`. Weights and biases start uniform in +-1/sqrt(inputs); those of a
`Perceptron` start orthogonal.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
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

    def __call__(self, x: Float[Array, " i"]) -> Float[Array, " o"]:
        return x @ self.weight + self.bias


Draw = tuple[PRNGKeyArray, tuple[int, ...], float]
"""A key, a shape and a reach: numbers uniform in +-reach."""


def uniform(draws: Sequence[Draw]) -> list[Float[Array, "..."]]:
    """Draw `jax.random.uniform(key, shape, jnp.float32, -reach, reach)` of each, all small ones in one call.

    So are all large ones. A call takes XLA as long to compile as a layer. What a key draws does not depend on how much
    is drawn: all draw as many numbers as the largest of their kind, and leave what they do not need.
    """
    sizes = [math.prod(shape) for _, shape, _ in draws]
    small = [size <= max(sizes) // 16 for size in sizes]
    found: list[Array] = [jnp.zeros(0)] * len(draws)
    for kind in {*small}:
        places = [place for place, own in enumerate(small) if own == kind]
        largest = max(sizes[place] for place in places)
        keys = jnp.stack([draws[place][0] for place in places])
        rows = jax.vmap(lambda key, largest=largest: jax.random.uniform(key, (largest,), jnp.float32))(keys)
        for row, place in enumerate(places):
            _, shape, reach = draws[place]
            found[place] = jnp.maximum(-reach, rows[row, : sizes[place]] * (2.0 * reach) - reach).reshape(shape)
    return found


def draws_of(sizes: Sequence[int], keys: PRNGKeyArray, joining: Mapping[int, int] | None = None) -> list[Draw]:
    """Return the draws of each layer's weights and bias; `joining` says how many more inputs a layer has."""
    pairs, draws = jax.vmap(jax.random.split)(keys), []
    for layer, (inputs, outputs) in enumerate(pairwise(sizes)):
        reach = 1.0 / (inputs + (joining or {}).get(layer, 0)) ** 0.5
        draws += [(pairs[layer, 0], (inputs, outputs), reach), (pairs[layer, 1], (outputs,), reach)]
    return draws


def layers_of(numbers: Sequence[Float[Array, "..."]]) -> tuple[Dense, ...]:
    """Return the layers of weights and biases that come in turn."""
    return tuple(Dense(weight, bias) for weight, bias in zip(numbers[::2], numbers[1::2], strict=True))


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
        self.layers = layers_of(uniform(draws_of(sizes, jax.random.split(key, len(sizes) - 1))))
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
        keys = jax.random.split(key, len(sizes))
        action: Draw = keys[-1], (actions, sizes[joined + 1]), 1.0 / (sizes[joined] + actions) ** 0.5
        *numbers, self.action_weight = uniform([*draws_of(sizes, keys[:-1], {joined: actions}), action])
        self.layers = layers_of(numbers)
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
        first, self.second = two(lambda k: Critic(inputs, actions, units, hidden, k, joined), jax.random.split(key))
        self.layers, self.action_weight = first.layers, first.action_weight
        self.hidden, self.joined = first.hidden, first.joined

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
    return Dense(weight, jnp.zeros(outputs, jnp.float32))


Net = TypeVar("Net")


def two(make: Callable[[PRNGKeyArray], Net], keys: PRNGKeyArray) -> tuple[Net, Net]:
    """Make two networks of one shape in one go."""
    both = eqx.filter_vmap(make)(keys)
    first, second = (jax.tree.map(lambda leaf, place=place: leaf[place], both) for place in range(2))
    return first, second


def blend(target: Net, online: Net, ratio: float) -> Net:
    """(1 - ratio) target + ratio online: the soft update of a target network."""
    return jax.tree.map(lambda t, o: t + ratio * (o - t), target, online)
