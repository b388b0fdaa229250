"""Random polytopes in unit rows, degenerate ones included, for the active-set methods."""

import numpy as np
from numpy.typing import NDArray

N, M = 4, 14


def polytopes(rng: np.random.Generator, count: int, equalities: int) -> tuple[NDArray, NDArray, NDArray]:
    """Rows, limits and a point inside each: 6 random rows, then the box |x_i| <= 2, so that all are bounded.

    Rows come twice, say nothing or are equalities that repeat others; many meet at the point inside, which is then
    a degenerate vertex. Numbers are those of float32.
    """
    inside = np.round(rng.uniform(-1, 1, (count, N)) * 8) / 8
    inside[::11, 0] = 2.0
    rows = np.round(rng.normal(size=(count, M, N)) * 8) / 8
    rows[:, 6:10], rows[:, 10:] = np.eye(N), -np.eye(N)
    slack = rng.uniform(0, 1, (count, M)) * (rng.random((count, 1)) < 0.7)
    rows[::3, 3], slack[::3, 3] = rows[::3, 2], slack[::3, 2]  # a row twice
    rows[::7, 4] = 0.0  # a row that says nothing
    rows[1::3, 5] = -rows[1::3, 2]  # and one that bounds the other way
    if equalities:
        rows[::4, 1] = -rows[::4, 0]
    norms = np.linalg.norm(rows, axis=2)
    rows = (rows / np.where(norms > 0, norms, 1.0)[..., None]).astype(np.float32).astype(np.float64)
    limits = np.einsum("kij,kj->ki", rows, inside)
    limits[:, equalities:6] += slack[:, equalities:6]
    limits[:, 6:] = 2.0
    return rows, limits, inside
