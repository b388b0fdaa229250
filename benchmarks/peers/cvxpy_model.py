"""A problem in cvxpy's words, shared by the peers that speak them and by the reference."""

from collections.abc import Sequence

import cvxpy as cp
import numpy as np

from benchmarks.problems import Floats, Points, Problem


def constraints(
    problem: Problem, a: cp.Variable, state: Sequence[Floats | cp.Parameter], unit: float = 1.0
) -> list[cp.Constraint]:
    """The set; its state is the weights and the sines, as far as the set has them.

    Bounds and cones on the variables themselves are written in a `unit`, which changes nothing but the numbers.
    """
    rows: list[cp.Constraint] = []
    if problem.low is not None and problem.high is not None:
        rows += [unit * a >= unit * problem.low, unit * a <= unit * problem.high]
    if problem.A is not None:
        rows.append(problem.A @ a <= problem.b)
    if problem.total is not None:
        rows.append(cp.Zero(cp.sum(a) - problem.total))
    if problem.factor is not None:
        rows.append(cp.norm(unit * problem.factor @ a) <= unit * (problem.radius or 0.0))
    if problem.budget is not None:
        rows.append(_load(problem, state[0], a) <= problem.budget)
    if problem.swings:
        rows.append(cp.norm(cp.multiply(state[1], a)) <= problem.radius)
    return rows


def _load(problem: Problem, weights: Floats | cp.Parameter, a: cp.Variable) -> cp.Expression:
    if problem.load == "signed":
        return weights @ a
    power = cp.multiply(weights, a)
    return cp.norm1(power) if problem.load == "absolute" else 0.5 * (cp.sum(power) + cp.norm1(power))


def parametrised(problem: Problem, unit: float = 1.0) -> tuple[cp.Problem, cp.Variable, list[cp.Parameter]]:
    """The problem once and for all, with z (and the weights and sines, where the set has them) as parameters."""
    a = cp.Variable(problem.dim)
    z, *state = [cp.Parameter(problem.dim) for _ in range(1 + problem.weighted + problem.swings)]
    model = cp.Problem(cp.Minimize(cp.sum_squares(a - z)), constraints(problem, a, state, unit))
    return model, a, [z, *state]


def built_per_point(problem: Problem, points: Points, **settings: float) -> Floats:
    """Project point by point, with a model of its own each: what peers' code does in every environment step."""
    answers = np.empty_like(points.z)
    for index, z in enumerate(points.z):
        a = cp.Variable(problem.dim)
        state = [part[index] for part in points.state]
        model = cp.Problem(cp.Minimize(cp.sum_squares(a - z)), constraints(problem, a, state))
        model.solve(solver=cp.CLARABEL, **settings)
        answers[index] = a.value
    return answers
