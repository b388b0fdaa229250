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
        states = [None] * len(points) if points.weights is None else points.weights
        pairs = list(zip(points.z, states, strict=True))
        return lambda: np.stack([self._solve(problem, z, weights) for z, weights in pairs])

    def backward(self, problem: Problem, points: Points) -> None:
        return None

    def _solve(self, problem: Problem, z: Floats, weights: Floats | None) -> Floats:
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
            if weights is not None:
                size = model.addMVar(n)
                model.addConstr(size >= a)
                model.addConstr(size >= -a)
                model.addConstr(np.abs(weights) @ size <= problem.budget)
            model.setObjective((a - z) @ (a - z))
            model.optimize()
            return a.X


def solvers(dtype: str) -> list[Solver]:
    return [GurobiLoop()]
