"""Dense linear systems of a few unknowns, many at once: elimination whose steps are batched by `vmap`."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

# Unknowns up to which elimination in one loop costs less than a call of LAPACK for every system.
FEW = 24


def solve_dense(matrix: Float[Array, "m m"], right: Float[Array, " m"]) -> Float[Array, " m"]:
    """The x of matrix x = right; not finite, or without meaning, for a singular matrix.

    Few unknowns: Gauss and Jordan's elimination with partial pivoting, a rank-one change of the whole matrix a step.
    """
    m = len(right)
    if m > FEW:
        return jnp.linalg.solve(matrix, right)
    row = jnp.arange(m)

    def eliminate(k: int, table: Float[Array, "m m+1"]) -> Float[Array, "m m+1"]:
        column = jax.lax.dynamic_index_in_dim(table, k, 1, keepdims=False)
        pivot = jnp.argmax(jnp.where(row >= k, jnp.abs(column), -1.0))
        chosen = table[pivot]
        scaled = chosen / column[pivot]
        table = jnp.where((row == pivot)[:, None], table[k][None, :], table)
        rest = jnp.where(row == k, 0.0, jnp.where(row == pivot, column[k], column))
        return jnp.where((row == k)[:, None], scaled[None, :], table - rest[:, None] * scaled[None, :])

    return jax.lax.fori_loop(0, m, eliminate, jnp.concatenate([matrix, right[:, None]], axis=1))[:, -1]
