"""The two passes of any projection written in JAX: vectorised, compiled, timed until the answer is there."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from benchmarks.peers import Run
from benchmarks.problems import Points

# From a point and what its state has: weights and sines, as far as the set depends on them.
Projection = Callable[..., Float[Array, " n"]]


def forward_run(project: Projection, points: Points, dtype: np.dtype) -> Run:
    run = jax.jit(jax.vmap(project))
    given = _on_device(points, dtype)
    return lambda: run(*given).block_until_ready()


def backward_run(project: Projection, points: Points, dtype: np.dtype) -> Run:
    def loss(z: Float[Array, "k n"], *state: Float[Array, "k n"]) -> Float[Array, ""]:
        return jnp.sum(jax.vmap(project)(z, *state) ** 2)

    run = jax.jit(jax.grad(loss))
    given = _on_device(points, dtype)
    return lambda: run(*given).block_until_ready()


def _on_device(points: Points, dtype: np.dtype) -> list[Array]:
    return [jnp.asarray(part, dtype) for part in (points.z, *points.state)]
