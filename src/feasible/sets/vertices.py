"""Vertices of a small polytope whose numbers are known, computed once on the host."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

MAX_DIM = 10
MAX_ROWS = 64
MAX_VERTICES = 512


def enumerate_vertices(
    rows: Float[Array, "m n"],
    limits: Float[Array, " m"],
    equalities: int,
    inside: Float[Array, " n"],
    radius: Float[Array, ""],
) -> Float[Array, "v n"] | None:
    """All vertices of {x : rows x <= limits, first rows equal}, or None for one too large or without interior.

    The equalities are eliminated by an orthonormal basis of their null space; Qhull then intersects the half-spaces
    around the interior point in float64.
    """
    m, n = rows.shape
    scale = float(np.max(np.abs(np.asarray(limits))))
    if n > MAX_DIM or m > MAX_ROWS or float(radius) <= 1e-6 * scale:
        return None
    G, h, origin = (np.asarray(x, np.float64) for x in (rows, limits, inside))
    _, sizes, right = np.linalg.svd(G[:equalities]) if equalities else (None, np.zeros(0), np.eye(n))
    basis = right[int(np.sum(sizes > 1e-9)) :].T
    slack = h[equalities:] - G[equalities:] @ origin
    corners = _corners(G[equalities:] @ basis, slack)
    if corners is None or len(corners) > MAX_VERTICES:
        return None
    return jnp.asarray(origin + corners @ basis.T, rows.dtype)


def _corners(G: np.ndarray, h: np.ndarray) -> np.ndarray | None:
    """Vertices of {y : G y <= h} with 0 strictly inside."""
    from scipy.spatial import HalfspaceIntersection, QhullError  # 0.1 s to import, for known polytopes only

    dim = G.shape[1]
    if dim == 0:
        return np.zeros((1, 0))
    if dim == 1:
        speed = G[:, 0]
        up, down = speed > 1e-12, speed < -1e-12
        return np.array([[np.min(h[up] / speed[up])], [np.max(h[down] / speed[down])]])
    try:
        found = HalfspaceIntersection(np.column_stack([G, -h]), np.zeros(dim)).intersections
    except QhullError:
        return None
    found = found[np.all(np.isfinite(found), axis=1)]
    rounded = np.round(found / max(float(np.max(np.abs(found))), 1e-300), 9)
    return found[np.unique(rounded, axis=0, return_index=True)[1]]
