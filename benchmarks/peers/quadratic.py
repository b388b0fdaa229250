"""A problem as a quadratic program, for solvers that want matrices.

    min 1/2 v'P v - (z, 0).v   over   G v <= h,   A v = b,   ||factor v|| <= radius

A budget becomes linear with one more variable a coordinate, v = (a, s): s >= |a| and |w| . s <= budget where the load
is absolute, s >= w a, s >= 0 and 1 . s <= budget where it is positive. A signed load is a row as it stands.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from benchmarks.problems import Floats, Points, Problem


@dataclass(frozen=True)
class Quadratic:
    """The matrices; `varying` are the places (rows, columns) of G that `weights_in` fills in a state, 1 till then."""

    P: Float[np.ndarray, "v v"]
    G: Float[np.ndarray, "m v"]
    h: Float[np.ndarray, " m"]
    A: Float[np.ndarray, "p v"]
    b: Float[np.ndarray, " p"]
    varying: tuple[Int[np.ndarray, " k"], Int[np.ndarray, " k"]] = (np.zeros(0, int), np.zeros(0, int))

    @property
    def size(self) -> int:
        return len(self.P)


def quadratic(problem: Problem) -> Quadratic:
    n, eye = problem.dim, np.eye(problem.dim)
    G, h = np.zeros((0, n)), np.zeros(0)
    if problem.A is not None and problem.b is not None:
        G, h = problem.A, problem.b
    lifted = problem.weighted and problem.load != "signed"
    if problem.low is not None and problem.high is not None and not lifted:
        G = np.concatenate([G, eye, -eye])
        h = np.concatenate([h, np.full(n, problem.high), np.full(n, -problem.low)])
    if problem.total is not None:
        return Quadratic(eye, G, h, np.ones((1, n)), np.array([problem.total]))
    if problem.budget is not None:
        return _budgeted(problem, problem.budget, G, h)
    return Quadratic(eye, G, h, np.zeros((0, n)), np.zeros(0))


def _budgeted(problem: Problem, budget: float, G: Floats, h: Floats) -> Quadratic:
    """The budget's rows below the others, which are the box's where the load is signed."""
    n, eye, all_of_them = problem.dim, np.eye(problem.dim), np.arange(problem.dim)
    last = [np.zeros((1, n)), np.ones((1, n))]
    if problem.load == "signed":
        G, h = np.concatenate([G, np.ones((1, n))]), np.append(h, budget)
        return Quadratic(eye, G, h, np.zeros((0, n)), np.zeros(0), (np.full(n, 2 * n), all_of_them))
    none, P = 0.0 * eye, np.diag(np.repeat([1.0, 0.0], n))
    if problem.load == "absolute":
        G = np.block([[eye, -eye], [-eye, -eye], [none, eye], last])
        h = np.concatenate([np.zeros(2 * n), np.full(n, problem.high), [budget]])
        return Quadratic(P, G, h, np.zeros((0, 2 * n)), np.zeros(0), (np.full(n, 3 * n), n + all_of_them))
    G = np.block([[eye, -eye], [none, -eye], [eye, none], [-eye, none], last])
    h = np.concatenate([np.zeros(2 * n), np.full(n, problem.high), np.full(n, -(problem.low or 0.0)), [budget]])
    return Quadratic(P, G, h, np.zeros((0, 2 * n)), np.zeros(0), (all_of_them, all_of_them))


def weights_in(problem: Problem, weights: Floats) -> Floats:
    """What the varying places of G hold in the state that the weights describe, or in many states, one a row."""
    return np.abs(weights) if problem.load == "absolute" else weights


def in_states(problem: Problem, program: Quadratic, points: Points) -> Float[np.ndarray, "k m v"]:
    """G in the state of each point."""
    G = np.tile(program.G, (len(points), 1, 1))
    if points.weights is not None:
        G[:, program.varying[0], program.varying[1]] = weights_in(problem, points.weights)
    return G
