"""The two passes of any projection written in JAX: vectorised, compiled, timed until the answer is there."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from benchmarks.peers import Run
from benchmarks.problems import Points

Projection = Callable[[Float[Array, " n"], Float[Array, " n"] | None], Float[Array, " n"]]


def forward_run(project: Projection, points: Points, dtype: np.dtype) -> Run:
    run = jax.jit(jax.vmap(project))
    z, weights = _on_device(points, dtype)
    return lambda: run(z, weights).block_until_ready()


def backward_run(project: Projection, points: Points, dtype: np.dtype) -> Run:
    def loss(z: Float[Array, "k n"], weights: Float[Array, "k n"] | None) -> Float[Array, ""]:
        return jnp.sum(jax.vmap(project)(z, weights) ** 2)

    run = jax.jit(jax.grad(loss))
    z, weights = _on_device(points, dtype)
    return lambda: run(z, weights).block_until_ready()


def _on_device(points: Points, dtype: np.dtype) -> tuple[Array, Array | None]:
    weights = None if points.weights is None else jnp.asarray(points.weights, dtype)
    return jnp.asarray(points.z, dtype), weights
