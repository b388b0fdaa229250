"""A problem in cvxpy's words, shared by the peers that speak them and by the reference."""

import cvxpy as cp
import numpy as np

from benchmarks.problems import Floats, Points, Problem


def constraints(problem: Problem, a: cp.Variable, weights: Floats | cp.Parameter | None) -> list[cp.Constraint]:
    rows: list[cp.Constraint] = []
    if problem.low is not None:
        rows += [a >= problem.low, a <= problem.high]
    if problem.A is not None:
        rows.append(problem.A @ a <= problem.b)
    if problem.total is not None:
        rows.append(cp.Zero(cp.sum(a) - problem.total))
    if problem.factor is not None:
        rows.append(cp.norm(problem.factor @ a) <= problem.radius)
    if problem.budget is not None:
        rows.append(cp.norm1(cp.multiply(weights, a)) <= problem.budget)
    return rows


def parametrised(problem: Problem) -> tuple[cp.Problem, cp.Variable, list[cp.Parameter]]:
    """The problem once and for all, with z (and the weights, where the set has them) as parameters."""
    a, z = cp.Variable(problem.dim), cp.Parameter(problem.dim)
    weights = cp.Parameter(problem.dim) if problem.weighted else None
    objective = cp.Minimize(cp.sum_squares(a - z))
    model = cp.Problem(objective, constraints(problem, a, weights))
    return model, a, [z] if weights is None else [z, weights]


def built_per_point(problem: Problem, points: Points, **settings: float) -> Floats:
    """Project point by point, with a model of its own each: what peers' code does in every environment step."""
    answers = np.empty_like(points.z)
    for index, z in enumerate(points.z):
        a = cp.Variable(problem.dim)
        weights = None if points.weights is None else points.weights[index]
        model = cp.Problem(cp.Minimize(cp.sum_squares(a - z)), constraints(problem, a, weights))
        model.solve(solver=cp.CLARABEL, **settings)
        answers[index] = a.value
    return answers
