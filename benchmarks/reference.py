"""Answers to trust: cvxpy with Clarabel at tolerance 1e-12, in float64.

On a curved boundary Clarabel stops at about 1e-5 whatever its tolerance; there SLSQP goes on from its answer.
"""

import warnings

import numpy as np
from scipy.optimize import minimize

from benchmarks.peers.cvxpy_model import built_per_point
from benchmarks.peers.quadratic import quadratic, with_weights
from benchmarks.problems import Floats, Points, Problem


def reference(problem: Problem, points: Points) -> Floats:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Solution may be inaccurate")
        answers = built_per_point(problem, points, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
    if problem.factor is None:
        return answers
    states = [None] * len(points) if points.weights is None else points.weights
    return np.stack(
        [_polished(problem, start, z, weights) for start, z, weights in zip(answers, points.z, states, strict=True)]
    )


def _polished(problem: Problem, start: Floats, z: Floats, weights: Floats | None) -> Floats:
    """SLSQP on the same problem, over (a, |a|) where the budget needs both."""
    assert problem.factor is not None
    assert problem.radius is not None
    n, factor, level = problem.dim, problem.factor, problem.radius**2
    program = quadratic(problem)
    G, h, rest = with_weights(program, weights), program.h, program.size - n
    curve = {
        "type": "ineq",
        "fun": lambda v: level - np.sum((factor @ v[:n]) ** 2),
        "jac": lambda v: np.concatenate([-2.0 * factor.T @ (factor @ v[:n]), np.zeros(rest)]),
    }
    rows = {"type": "ineq", "fun": lambda v: h - G @ v, "jac": lambda v: -G}
    found = minimize(
        lambda v: 0.5 * np.sum((v[:n] - z) ** 2),
        np.concatenate([start, np.abs(start)[:rest]]),
        jac=lambda v: np.concatenate([v[:n] - z, np.zeros(rest)]),
        method="SLSQP",
        constraints=[curve, rows] if len(h) else [curve],
        options={"ftol": 1e-15, "maxiter": 200},
    )
    return found.x[:n]
