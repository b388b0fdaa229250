"""Projection and linear maximisation over a polytope cut by second-order cones, batched by `vmap`.

The problem is split between the polytope, over which a quadratic is minimised exactly by the dual active-set method,
and the product of the cones, whose projection is a closed form: copies of x and of its affine image are what Newton on
the splitting solves for. No cone is factorised and no head has to be constant.
"""

from collections.abc import Sequence

import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float

from feasible.solve.qp import nearest_in_polytope
from feasible.solve.splitting import newton_on_splitting


def minimise_over_cones(
    target: Float[Array, " n"],
    rows: Float[Array, "m n"],
    limits: Float[Array, " m"],
    equalities: int,
    map: Float[Array, "k n"],
    offset: Float[Array, " k"],
    sizes: Sequence[int],
    size: Float[Array, ""],
    *,
    curvature: float,
) -> Float[Array, " n"]:
    """argmin curvature/2 ||x||^2 - target . x over {x in the polytope : map x + offset in a product of cones}.

    The polytope is {rows x <= limits, the first `equalities` rows with equality}; the cones {(h, w) : ||w|| <= h} take
    `sizes` entries of the image each, one after the other; its rows are about as long as unit vectors. Curvature 1 and
    target z give the projection of z, curvature 0 and target g a linear maximiser. The answer lies in the polytope
    exactly and in the cones to the residual of the splitting. A round is a Jacobian of n + k columns, each of them one
    active-set solve, and dense solves of that order.
    """
    n = target.shape[0]
    eye, gram = jnp.eye(n, dtype=target.dtype), map.T @ map

    def consensus(copies: Array, pull: Array, bend: Array, penalty: Array) -> Float[Array, " n"]:
        """The quadratic is a distance in the coordinates of its Cholesky factor: a projection on a turned polytope."""
        linear = pull + penalty * (copies[:n] + (copies[n:] - offset) @ map)
        factor = jnp.linalg.cholesky((bend + penalty) * eye + penalty * gram)
        inverse = solve_triangular(factor, eye, lower=True)
        turned = rows @ inverse.T
        square = jnp.sum(turned**2, axis=1)
        norms = jnp.sqrt(jnp.where(square > 0, square, 1.0))
        return nearest_in_polytope(inverse @ linear, turned / norms[:, None], limits / norms, equalities) @ inverse

    def image(x: Float[Array, " n"]) -> Float[Array, " n+k"]:
        return jnp.concatenate([x, map @ x + offset])

    def nearest(copies: Float[Array, " n+k"]) -> Float[Array, " n+k"]:
        ends = [n + sum(sizes[: i + 1]) for i in range(len(sizes))]
        free, *blocks = jnp.split(copies, [n, *ends[:-1]])
        return jnp.concatenate([free, *(nearest_in_cone(block) for block in blocks)])

    return newton_on_splitting(consensus, image, nearest, target, size, curvature=curvature)


def nearest_in_cone(v: Float[Array, " k"]) -> Float[Array, " k"]:
    """argmin ||u - v|| over {(h, w) : ||w|| <= h}: v itself, the apex, or a point of the mantle; O(k)."""
    head, body = v[0], v[1:]
    square = jnp.vdot(body, body)
    length = jnp.where(square > 0, jnp.sqrt(jnp.where(square > 0, square, 1.0)), 0.0)
    inside, opposite = length <= head, length <= -head
    mantle = ~inside & ~opposite
    height = 0.5 * (length + head)
    share = height / jnp.where(mantle, length, 1.0)
    return jnp.concatenate(
        [
            jnp.atleast_1d(jnp.where(inside, head, jnp.where(opposite, 0.0, height))),
            jnp.where(inside, body, jnp.where(opposite, 0.0, share * body)),
        ]
    )
