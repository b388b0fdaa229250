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
from benchmarks.peers.quadratic import quadratic, with_weights
from benchmarks.problems import Floats, Points, Problem


class ReusedCvxpy:
    title = "cvxpy + Clarabel, reused"

    def forward(self, problem: Problem, points: Points) -> Run:
        model, a, (z, *state) = parametrised(problem)

        def run() -> Floats:
            answers = np.empty_like(points.z)
            for index, proposed in enumerate(points.z):
                z.value = proposed
                for weights in state:
                    weights.value = None if points.weights is None else points.weights[index]
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
        if problem.factor is not None and problem.radius is not None:
            lifted = np.zeros((n + 1, program.size))
            lifted[1:, :n] = -problem.factor
            blocks.append(lifted)
            limits.append(np.concatenate([[problem.radius], np.zeros(n)]))
            cones.append(clarabel.SecondOrderConeT(n + 1))
        rows = sparse.csc_matrix(np.concatenate(blocks))
        budget_row = len(program.b) + len(program.h) - 1
        slots = _slots(rows, budget_row, n, n) if problem.weighted else None
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
                if slots is not None and points.weights is not None:
                    solver.update(q=pull, A=(slots, np.abs(points.weights[index])))
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
        if problem.factor is not None:
            return None
        n, program = problem.dim, quadratic(problem)
        G = with_weights(program, None if points.weights is None else points.weights[0])
        rows = sparse.csc_matrix(np.concatenate([program.A, G]))
        lower = np.concatenate([program.b, np.full(len(program.h), -np.inf)])
        slots = _slots(rows, len(lower) - 1, n, n) if problem.weighted else None
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
                if slots is not None and points.weights is not None:
                    solver.update(q=pull, Ax=np.abs(points.weights[index]), Ax_idx=slots)
                else:
                    solver.update(q=pull)
                answers[index] = solver.solve().x[:n]
            return answers

        return run

    def backward(self, problem: Problem, points: Points) -> None:
        return None


def _slots(rows: sparse.csc_matrix, row: int, first: int, count: int) -> np.ndarray:
    """Where the entries (row, first), ..., (row, first + count - 1) lie among the stored values."""
    starts = rows.indptr
    return np.array(
        [
            starts[column] + list(rows.indices[starts[column] : starts[column + 1]]).index(row)
            for column in range(first, first + count)
        ]
    )


def solvers(dtype: str) -> list[Solver]:
    return [ReusedCvxpy(), ReusedClarabel(), ReusedOsqp()]
