"""Searches of a batch: each as alone, whatever the batch, and constants to derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Int

from feasible.solve.chunks import CHUNK, searched


def collatz(start: int) -> int:
    steps = 0
    while start != 1:
        start, steps = (start // 2 if start % 2 == 0 else 3 * start + 1), steps + 1
    return steps


def counted(start: Int[Array, ""]) -> Int[Array, ""]:
    def follow(state: tuple[Array, Array]) -> tuple[Array, Array]:
        value, steps = state
        return jnp.where(value % 2 == 0, value // 2, 3 * value + 1), steps + 1

    return searched(lambda: jax.lax.while_loop(lambda s: s[0] != 1, follow, (start, jnp.zeros_like(start)))[1])


@pytest.mark.parametrize("size", [1, CHUNK, 2 * CHUNK + 5])
def test_a_batch_of_searches_is_each_of_them(size: int) -> None:
    starts = np.arange(1, size + 1)
    found = jax.jit(jax.vmap(counted))(jnp.asarray(starts))
    assert found.tolist() == [collatz(int(start)) for start in starts]


def test_batches_of_batches_keep_their_places() -> None:
    starts = np.arange(1, 121).reshape(3, 40)
    found = jax.jit(jax.vmap(jax.vmap(counted)))(jnp.asarray(starts))
    assert found.tolist() == [[collatz(int(start)) for start in row] for row in starts]


def test_the_answer_of_a_search_is_a_constant() -> None:
    def root_and_square(y: Array) -> Array:
        root = searched(lambda: jax.lax.fori_loop(0, 30, lambda _, x: 0.5 * (x + y / x), jnp.ones_like(y)))
        return root * y

    values = jnp.arange(1.0, CHUNK + 9.0)
    slopes = jax.jit(jax.vmap(jax.grad(root_and_square)))(values)
    np.testing.assert_allclose(slopes, np.sqrt(values), rtol=1e-6)
