"""Arithmetic that keeps its rounding errors: differences, and the small eigenvalues beside large ones."""

import jax
import jax.numpy as jnp
from jax.lax import bitcast_convert_type
from jaxtyping import Array, Float


def exact_difference(x: Float[Array, "..."], y: Float[Array, "..."]) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
    """The rounded difference x - y and its rounding error, which add up to x - y exactly (Knuth's two-sum)."""
    difference = x - y
    shift = difference - x
    return difference, (x - (difference - shift)) - (y + shift)


def exact_product(A: Float[Array, "m k"], B: Float[Array, "k n"]) -> tuple[Float[Array, "m n"], Float[Array, "m n"]]:
    """A B as a sum of two matrices, as in twice the precision (Ogita, Rump and Oishi, 2005); O(m k n)."""
    left, right = _halves(A), _halves(B)

    def take(total: tuple[Array, Array], k: Array) -> tuple[tuple[Array, Array], None]:
        high, low = total
        for a in left:
            for b in right:
                high, error = exact_difference(high, -jnp.outer(a[:, k], b[k]))  # products of halves are exact
                low = low + error
        return (high, low), None

    nothing = jnp.zeros((A.shape[0], B.shape[1]), A.dtype)
    total, _ = jax.lax.scan(take, (nothing, nothing), jnp.arange(A.shape[1]))
    return total


def exact_spectrum(Q: Float[Array, "n n"]) -> tuple[Float[Array, " n"], Float[Array, "n n"]]:
    """Eigenvalues, rising, and eigenvectors of a symmetric Q; small ones are not lost beside the largest.

    An eigendecomposition errs by roundings of the largest eigenvalue. In the basis V that it gives, V'Q V is taken in
    twice the precision. There the small eigenvalues are a block of their own, which couples to the rest by roundings
    only, i.e. changes nothing to second order: its own decomposition turns their vectors to where they belong.
    """
    _, V = jnp.linalg.eigh(Q)
    within = _congruence(Q, V)
    sizes = jnp.abs(jnp.diagonal(within))
    small = sizes <= 1e-3 * jnp.max(sizes)
    both = small[:, None] & small[None, :]
    # Above the block, so that it comes first and is not mixed with what is not turned.
    above = jnp.diag(jnp.where(small, 0.0, 2.0 * jnp.sum(jnp.where(small, sizes, 0.0)) + jnp.max(sizes) * 1e-6))
    _, turn = jnp.linalg.eigh(jnp.where(both, within, 0.0) + above)
    V = exact_product(V, jnp.where(both, turn, jnp.eye(len(Q), dtype=Q.dtype)))[0]
    return jnp.diagonal(_congruence(Q, V)) / jnp.sum(V**2, axis=0), V


def _congruence(Q: Float[Array, "n n"], V: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """V'Q V, as accurate as numbers of its size can be."""
    high, low = exact_product(Q, V)
    product, rest = exact_product(V.T, high)
    return product + (rest + V.T @ low)


def _halves(x: Float[Array, "..."]) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
    """x as a sum of two numbers with half of its digits each."""
    info = jnp.finfo(x.dtype)
    whole = jnp.uint32 if info.bits == 32 else jnp.uint64
    kept = ~whole((1 << (info.nmant + 2) // 2) - 1)
    leading = bitcast_convert_type(bitcast_convert_type(x, whole) & kept, x.dtype)
    return leading, x - leading
