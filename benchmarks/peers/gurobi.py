"""Gurobi, where it is installed: one model a point, as published code of the field has it. No derivatives."""

# pyright: reportMissingImports=false
# The type checker also runs where the peers are not installed.

import gurobipy as gp
import numpy as np

from benchmarks.peers import Run, Solver
from benchmarks.problems import Floats, Points, Problem


class GurobiLoop:
    title = "Gurobi, per point"

    def __init__(self) -> None:
        self.environment = gp.Env(params={"OutputFlag": 0, "Threads": 1})

    def forward(self, problem: Problem, points: Points) -> Run:
        given = list(zip(points.z, *points.state, strict=True))
        return lambda: np.stack([self._solve(problem, z, *state) for z, *state in given])

    def backward(self, problem: Problem, points: Points) -> None:
        return None

    def _solve(self, problem: Problem, z: Floats, *state: Floats) -> Floats:
        n = problem.dim
        with gp.Model(env=self.environment) as model:
            low = -gp.GRB.INFINITY if problem.low is None else problem.low
            high = gp.GRB.INFINITY if problem.high is None else problem.high
            a = model.addMVar(n, lb=low, ub=high)
            if problem.A is not None:
                model.addConstr(problem.A @ a <= problem.b)
            if problem.total is not None:
                model.addConstr(a.sum() == problem.total)
            if problem.factor is not None and problem.radius is not None:
                model.addConstr(a @ (problem.factor.T @ problem.factor) @ a <= problem.radius**2)
            if state:
                self._limit(model, problem, a, *state)
            model.setObjective((a - z) @ (a - z))
            model.optimize()
            return a.X

    def _limit(
        self, model: gp.Model, problem: Problem, a: gp.MVar, weights: Floats, sines: Floats | None = None
    ) -> None:
        if problem.load == "signed":
            model.addConstr(weights @ a <= problem.budget)
            return
        power = model.addMVar(problem.dim)
        model.addConstr(power >= weights * a)
        if problem.load == "absolute":
            model.addConstr(power >= -weights * a)
        model.addConstr(power.sum() <= problem.budget)
        if sines is not None:
            model.addConstr(a @ np.diag(sines**2) @ a <= (problem.radius or 0.0) ** 2)


def solvers(dtype: str) -> list[Solver]:
    return [GurobiLoop()]
