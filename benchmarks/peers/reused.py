"""Loops over one solver object that is kept and given new numbers: the best a user of these solvers can do.

A parametrised cvxpy model, Clarabel itself and OSQP itself, at their default tolerances. No derivatives.
"""

# pyright: reportAttributeAccessIssue=false
# Clarabel is a compiled module without type stubs.

import clarabel
import cvxpy as cp
import numpy as np
import osqp
from scipy import sparse

from benchmarks.peers import Run, Solver
from benchmarks.peers.cvxpy_model import parametrised
from benchmarks.peers.quadratic import quadratic, weights_in
from benchmarks.problems import Floats, Points, Problem


class ReusedCvxpy:
    title = "cvxpy + Clarabel, reused"

    def forward(self, problem: Problem, points: Points) -> Run:
        model, a, (z, *state) = parametrised(problem)

        def run() -> Floats:
            answers = np.empty_like(points.z)
            for index, proposed in enumerate(points.z):
                z.value = proposed
                for parameter, values in zip(state, points.state, strict=True):
                    parameter.value = values[index]
                model.solve(solver=cp.CLARABEL)
                answers[index] = a.value
            return answers

        return run

    def backward(self, problem: Problem, points: Points) -> None:
        return None


class ReusedClarabel:
    title = "Clarabel, reused"

    def forward(self, problem: Problem, points: Points) -> Run:
        n, program = problem.dim, quadratic(problem)
        blocks, limits = [program.A, program.G], [program.b, program.h]
        cones = [clarabel.ZeroConeT(len(program.b)), clarabel.NonnegativeConeT(len(program.h))]
        above = len(program.b) + len(program.h)
        if problem.radius is not None:
            lifted = np.zeros((n + 1, program.size))
            lifted[1:, :n] = -np.eye(n) if problem.factor is None else -problem.factor
            blocks.append(lifted)
            limits.append(np.concatenate([[problem.radius], np.zeros(n)]))
            cones.append(clarabel.SecondOrderConeT(n + 1))
        rows = sparse.csc_matrix(np.concatenate(blocks))
        at, columns = len(program.b) + program.varying[0], program.varying[1]
        if problem.swings:
            at, columns = np.append(at, above + 1 + np.arange(n)), np.append(columns, np.arange(n))
        slots = _slots(rows, at, columns)
        values = _values(problem, points)
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.presolve_enable = False  # a solver that presolves takes no new numbers
        solver = clarabel.DefaultSolver(
            sparse.csc_matrix(program.P), np.zeros(program.size), rows, np.concatenate(limits), cones, settings
        )

        def run() -> Floats:
            answers, pull = np.empty_like(points.z), np.zeros(program.size)
            for index, proposed in enumerate(points.z):
                pull[:n] = -proposed
                if problem.weighted:
                    solver.update(q=pull, A=(slots, values[index]))
                else:
                    solver.update(q=pull)
                answers[index] = solver.solve().x[:n]
            return answers

        return run

    def backward(self, problem: Problem, points: Points) -> None:
        return None


class ReusedOsqp:
    title = "OSQP, reused"

    def forward(self, problem: Problem, points: Points) -> Run | None:
        if problem.curved:
            return None
        n, program = problem.dim, quadratic(problem)
        rows = sparse.csc_matrix(np.concatenate([program.A, program.G]))
        lower = np.concatenate([program.b, np.full(len(program.h), -np.inf)])
        slots = _slots(rows, len(program.b) + program.varying[0], program.varying[1])
        values = _values(problem, points)
        solver = osqp.OSQP()
        solver.setup(
            sparse.csc_matrix(program.P),
            np.zeros(program.size),
            rows,
            lower,
            np.concatenate([program.b, program.h]),
            verbose=False,
        )

        def run() -> Floats:
            answers, pull = np.empty_like(points.z), np.zeros(program.size)
            for index, proposed in enumerate(points.z):
                pull[:n] = -proposed
                if problem.weighted:
                    solver.update(q=pull, Ax=values[index], Ax_idx=slots)
                else:
                    solver.update(q=pull)
                answers[index] = solver.solve().x[:n]
            return answers

        return run

    def backward(self, problem: Problem, points: Points) -> None:
        return None


def _values(problem: Problem, points: Points) -> Floats:
    """What the varying places of the rows hold in the state of each point."""
    if points.weights is None:
        return np.zeros((len(points), 0))
    weights = weights_in(problem, points.weights)
    return weights if points.sines is None else np.concatenate([weights, -points.sines], axis=1)


def _slots(rows: sparse.csc_matrix, at: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Where the entries (at, columns) lie among the stored values."""
    starts = rows.indptr
    return np.array(
        [
            starts[column] + list(rows.indices[starts[column] : starts[column + 1]]).index(row)
            for row, column in zip(at, columns, strict=True)
        ],
        dtype=np.int64,
    )


def solvers(dtype: str) -> list[Solver]:
    return [ReusedCvxpy(), ReusedClarabel(), ReusedOsqp()]
