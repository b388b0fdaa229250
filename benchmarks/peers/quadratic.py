"""A problem as a quadratic program, for solvers that want matrices.

    min 1/2 v'P v - (z, 0).v   over   G v <= h,   A v = b,   ||factor v|| <= radius

A budget on |w a| becomes linear with one more variable a coordinate, s >= |a|, so that v = (a, s).
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from benchmarks.problems import Floats, Problem


@dataclass(frozen=True)
class Quadratic:
    """The matrices; where the problem is weighted, |weights| belong in the last row of G, from column `dim` on."""

    P: Float[np.ndarray, "v v"]
    G: Float[np.ndarray, "m v"]
    h: Float[np.ndarray, " m"]
    A: Float[np.ndarray, "p v"]
    b: Float[np.ndarray, " p"]

    @property
    def size(self) -> int:
        return len(self.P)


def quadratic(problem: Problem) -> Quadratic:
    n, eye = problem.dim, np.eye(problem.dim)
    G, h = np.zeros((0, n)), np.zeros(0)
    if problem.A is not None and problem.b is not None:
        G, h = problem.A, problem.b
    if problem.low is not None and problem.high is not None and not problem.weighted:
        G = np.concatenate([G, eye, -eye])
        h = np.concatenate([h, np.full(n, problem.high), np.full(n, -problem.low)])
    if problem.total is not None:
        return Quadratic(eye, G, h, np.ones((1, n)), np.array([problem.total]))
    if problem.budget is not None and problem.high is not None:
        G = np.block([[eye, -eye], [-eye, -eye], [0.0 * eye, eye], [np.zeros((1, n)), np.ones((1, n))]])
        h = np.concatenate([np.zeros(2 * n), np.full(n, problem.high), [problem.budget]])
        P = np.diag(np.repeat([1.0, 0.0], n))
        return Quadratic(P, G, h, np.zeros((0, 2 * n)), np.zeros(0))
    return Quadratic(eye, G, h, np.zeros((0, n)), np.zeros(0))


def with_weights(program: Quadratic, weights: Floats | None) -> Float[np.ndarray, "m v"]:
    """G in the state that the weights describe."""
    if weights is None:
        return program.G
    G = program.G.copy()
    G[-1, len(weights) :] = np.abs(weights)
    return G
