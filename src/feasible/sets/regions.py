"""Critical regions of the projection on a small polytope whose numbers are known, found once on the host."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float
from numpy.typing import NDArray

from feasible.solve.regions import Regions
from feasible.solve.working_set import WorkingSet

MOST = 2**18
"""Conditions to look at, over all regions: a megabyte for each point, in float32."""
STEEPEST = 1e2
"""Of a set's pseudo-inverse: in thinner wedges rounding decides, and a search is more exact."""


def enumerate_regions(
    rows: Float[Array, "m n"], limits: Float[Array, " m"], equalities: int, vertices: NDArray[np.float64]
) -> Regions | None:
    """One region for each set of independent rows with a common vertex, or none at all; equalities are in every set.

    None for a polytope of many regions, of thin wedges, or with equalities that depend on each other.
    """
    m, n = rows.shape
    G, h = np.asarray(rows, np.float64), np.asarray(limits, np.float64)
    tight = np.abs(vertices @ G.T - h) <= 1e-7 * np.max(np.abs(h), initial=1e-300)
    facets = [row for row in range(equalities, m) if _spans(vertices[tight[:, row]], n - 1 - equalities)]
    conditions = max(len(facets), 1)
    sets = _independent(G, equalities, facets, tight, MOST // conditions)
    if sets is None:
        return None
    held = np.zeros((len(sets), m), bool)
    for region, members in enumerate(sets):
        held[region, list(members)] = True
    normals = np.where(held[:, :, None], G, 0.0)
    inverse = np.swapaxes(np.linalg.pinv(normals, rcond=1e-9), 1, 2)
    if np.max(np.linalg.norm(inverse, axis=2), initial=0.0) > STEEPEST:
        return None
    null = np.eye(n) - np.swapaxes(normals, 1, 2) @ inverse
    origin = (np.where(held, h, 0.0)[:, None, :] @ inverse)[:, 0, :]
    own = held[:, facets]
    # x = null z + origin, and z - x = multipliers rows, so that multipliers = inverse (z - x) = inverse (z - origin).
    slopes = np.where(own[:, :, None], -inverse[:, facets], G[facets] @ null)
    levels = np.where(own, np.einsum("rfn,rn->rf", inverse[:, facets], origin), origin @ G[facets].T - h[facets])
    if not facets:  # a single point
        slopes, levels = np.zeros((len(sets), 1, n)), np.zeros((len(sets), 1))
    inverse, null, slopes, levels = (jnp.asarray(part, rows.dtype) for part in (inverse, null, slopes, levels))
    return Regions(WorkingSet(jnp.asarray(held), inverse, null), slopes, levels)


def _independent(
    G: NDArray[np.float64], equalities: int, facets: list[int], tight: Bool[np.ndarray, "v m"], most: int
) -> list[tuple[int, ...]] | None:
    """All sets of independent rows that hold the equalities and share a vertex, smaller ones first; None if more."""
    points = {row: sum(1 << int(vertex) for vertex in np.flatnonzero(tight[:, row])) for row in facets}
    fresh = [(tuple(range(equalities)), (1 << len(tight)) - 1)]
    if not _all_independent(G, [fresh[0][0]])[0]:
        return None
    known = [fresh[0][0]]
    while fresh:
        grown = [
            ((*members, row), shared & points[row])
            for members, shared in fresh
            for row in facets
            if row > max(members, default=-1) and shared & points[row]
        ]
        if len(known) + len(grown) > 2 * most:  # at most about half of them depend on each other
            return None
        kept = _all_independent(G, [members for members, _ in grown])
        fresh = [one for one, keep in zip(grown, kept, strict=True) if keep]
        known += [members for members, _ in fresh]
    return known if len(known) <= most else None


def _all_independent(G: NDArray[np.float64], sets: list[tuple[int, ...]]) -> Bool[np.ndarray, " s"]:
    """Of sets of as many rows each, which are independent."""
    if not sets or not sets[0]:
        return np.ones(len(sets), bool)
    if len(sets[0]) > G.shape[1]:
        return np.zeros(len(sets), bool)
    return np.linalg.svd(G[np.array(sets)], compute_uv=False)[:, -1] > 1e-7


def _spans(points: NDArray[np.float64], dim: int) -> bool:
    """Whether points lie in no plane of fewer dimensions."""
    if len(points) <= max(dim, 0):
        return False
    ways = points[1:] - points[0]
    return dim <= 0 or np.linalg.matrix_rank(ways, tol=1e-7 * np.max(np.abs(ways), initial=1e-300)) >= dim
