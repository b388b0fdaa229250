"""Answers to trust: cvxpy with Clarabel at tolerance 1e-12, in float64.

On a curved boundary Clarabel stops at about 1e-5 whatever its tolerance; there SLSQP goes on from its answer.
"""

import warnings

import numpy as np
from scipy.optimize import minimize

from benchmarks.peers.cvxpy_model import built_per_point
from benchmarks.peers.quadratic import Quadratic, in_states, quadratic
from benchmarks.problems import Floats, Points, Problem


def reference(problem: Problem, points: Points) -> Floats:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Solution may be inaccurate")
        answers = built_per_point(problem, points, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
    if not problem.curved:
        return answers
    program = quadratic(problem)
    rows = in_states(problem, program, points)
    factors = [problem.factor] * len(points) if points.sines is None else map(np.diag, points.sines)
    return np.stack(
        [
            _polished(problem, program, start, z, G, factor)
            for start, z, G, factor in zip(answers, points.z, rows, factors, strict=True)
            if factor is not None
        ]
    )


def _polished(problem: Problem, program: Quadratic, start: Floats, z: Floats, G: Floats, factor: Floats) -> Floats:
    """SLSQP on the same problem, over (a, |a|) where the budget needs both."""
    assert problem.radius is not None
    n, level, h, rest = problem.dim, problem.radius**2, program.h, program.size - problem.dim
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
