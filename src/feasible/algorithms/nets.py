"""Networks of the paper: an actor and a critic of two hidden layers, the action entering the critic at the second.

Functions of one observation; a batch is `jax.vmap`. Weights and biases start uniform in +-1/sqrt(inputs); those of a
`Perceptron` start orthogonal.
"""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Literal, TypeAlias, TypeVar

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


def uniform_layers(sizes: Sequence[tuple[int, int]], keys: PRNGKeyArray) -> tuple[Dense, ...]:
    """Layers of so many inputs and outputs, one for each key."""
    return _layers(_uniform(_blocks([(i, o, i) for i, o in sizes]), _pairs(keys)))


Block: TypeAlias = tuple[tuple[int, ...], int]
"""A shape, and the number of inputs of its layer."""


def _blocks(layers: Sequence[tuple[int, int, int]]) -> list[Block]:
    return [block for i, o, inputs in layers for block in (((i, o), inputs), ((o,), inputs))]


def _pairs(keys: PRNGKeyArray) -> PRNGKeyArray:
    return jax.vmap(jax.random.split)(keys).reshape(-1)


def _layers(drawn: Sequence[Array]) -> tuple[Dense, ...]:
    return tuple(map(Dense, drawn[::2], drawn[1::2]))


def _uniform(blocks: Sequence[Block], keys: PRNGKeyArray) -> list[Array]:
    """Blocks uniform in +-1/sqrt(inputs), one for each key.

    All are drawn as long as the longest and cut: XLA takes seconds to compile a draw for each. The numbers are the
    same, since an entry depends on its key and its place alone.
    """
    reaches = jnp.asarray([1.0 / inputs**0.5 for _, inputs in blocks], jnp.float32)
    sizes = [math.prod(shape) for shape, _ in blocks]

    def draw(key: PRNGKeyArray, reach: Float[Array, ""]) -> Float[Array, " size"]:
        return jax.random.uniform(key, (max(sizes),), jnp.float32, -reach, reach)

    drawn = jax.vmap(draw)(keys, reaches)
    return [row[:size].reshape(shape) for row, size, (shape, _) in zip(drawn, sizes, blocks, strict=True)]


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
        self.layers = uniform_layers(list(pairwise(sizes)), jax.random.split(key, len(sizes) - 1))
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
        fed = [i + actions if layer == joined else i for layer, i in enumerate(sizes[:-1])]
        blocks = _blocks(list(zip(sizes[:-1], sizes[1:], fed, strict=True)))
        blocks.append(((actions, sizes[joined + 1]), fed[joined]))
        *drawn, self.action_weight = _uniform(blocks, jnp.concatenate([_pairs(keys[:-1]), keys[-1:]]))
        self.layers = _layers(drawn)
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
    return Dense(weight, jnp.zeros(outputs, jnp.float32))


Net = TypeVar("Net")


def blend(target: Net, online: Net, ratio: float) -> Net:
    """(1 - ratio) target + ratio online: the soft update of a target network."""
    return jax.tree.map(lambda t, o: t + ratio * (o - t), target, online)
