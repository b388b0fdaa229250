"""Slow, trusted solvers that share no code with the library: cvxpy with Clarabel, HiGHS and SLSQP through scipy."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import cvxpy as cp
import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linprog, minimize

Values = Mapping[str, NDArray]
TIGHT = {"tol_gap_abs": 1e-12, "tol_gap_rel": 1e-12, "tol_feas": 1e-12}


@dataclass(eq=False)
class Description:
    """One set in the words of the reference solvers.

    `constraints(x, parameters)` says it to cvxpy; `rows(values)` gives linear rows (G, h, E, e) over (a, lift) for
    HiGHS and SLSQP, where the lift holds helper variables; `curves(values)` gives the (Q, centre, level) of curved
    constraints (a - centre)'Q (a - centre) <= level.
    """

    dim: int
    shapes: Mapping[str, tuple[int, ...]]
    constraints: Callable[[cp.Variable, Mapping[str, cp.Parameter]], list]
    rows: Callable[[Values], tuple[NDArray, NDArray, NDArray, NDArray]]
    curves: Callable[[Values], Sequence[tuple[NDArray, NDArray, float]]] = lambda values: ()
    roots: Callable[[Values], Values] = lambda values: values
    nonneg: Sequence[str] = field(default=())


class Reference:
    def __init__(self, description: Description):
        self.description = description
        self.x = cp.Variable(description.dim)
        self.target = cp.Parameter(description.dim)
        self.parameters = {
            name: cp.Parameter(shape, nonneg=name in description.nonneg) for name, shape in description.shapes.items()
        }
        constraints = description.constraints(self.x, self.parameters)
        self._nearest = cp.Problem(cp.Minimize(cp.sum_squares(self.x - self.target)), constraints)
        self._highest = cp.Problem(cp.Maximize(self.target @ self.x), constraints)

    def project(self, z: NDArray, values: Values) -> NDArray:
        """argmin ||a - z||: Clarabel, then SLSQP from there where constraints are curved (Clarabel alone: 1e-5)."""
        answer = self._solve(self._nearest, z, values)
        return self._polish(answer, z, values) if self.description.curves(values) else answer

    def supports(self, g: NDArray, values: Sequence[Values]) -> list[float]:
        """max <g, a> of each: HiGHS on linear sets, as one program of separate blocks; Clarabel on curved ones."""
        if self.description.curves(values[0]):
            return [float(one @ self._solve(self._highest, one, known)) for one, known in zip(g, values, strict=True)]
        rows = [self.description.rows(known) for known in values]
        G, E = (sparse.block_diag([row[place] for row in rows], format="csr") for place in (0, 2))
        h, e = (np.concatenate([row[place] for row in rows]) for place in (1, 3))
        cost = [np.pad(-one, (0, row[0].shape[1] - len(one))) for one, row in zip(g, rows, strict=True)]
        options = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
        equal = (E, e) if len(e) else (None, None)
        found = linprog(np.concatenate(cost), G, h, *equal, (None, None), options=options)
        assert found.status == 0, found.message
        points = np.reshape(found.x, (len(rows), -1))[:, : self.description.dim]
        return [float(one @ point) for one, point in zip(g, points, strict=True)]

    def _solve(self, problem: cp.Problem, target: NDArray, values: Values) -> NDArray:
        self.target.value = target
        for name, value in self.description.roots(values).items():
            self.parameters[name].value = value
        with warnings.catch_warnings():
            # Clarabel says so where it stops short of 1e-12; the tests judge the answer, not the message.
            warnings.filterwarnings("ignore", message="Solution may be inaccurate")
            problem.solve(solver=cp.CLARABEL, warm_start=False, **TIGHT)
        assert self.x.value is not None, problem.status
        return self.x.value

    def _polish(self, answer: NDArray, z: NDArray, values: Values) -> NDArray:
        G, h, E, e = self.description.rows(values)
        n, scale = len(z), max(1.0, float(np.linalg.norm(z)))
        lift = np.zeros(G.shape[1] - n)
        limits = [{"type": "ineq", "fun": lambda x: h - G @ x, "jac": lambda x: -G}]
        if len(E):
            limits.append({"type": "eq", "fun": lambda x: E @ x - e, "jac": lambda x: E})
        for Q, centre, level in self.description.curves(values):
            limits.append(_curve(Q, centre, level, len(lift)))
        found = minimize(
            lambda x: 0.5 * np.sum((x[:n] - z) ** 2) / scale,
            np.concatenate([answer, lift]),
            jac=lambda x: np.concatenate([(x[:n] - z) / scale, np.zeros(len(lift))]),
            constraints=limits,
            method="SLSQP",
            options={"ftol": 1e-17, "maxiter": 300},
        )
        return found.x[:n]


def _curve(Q: NDArray, centre: NDArray, level: float, lift: int) -> dict[str, object]:
    n = len(centre)

    def room(x: NDArray) -> NDArray:
        return level - (x[:n] - centre) @ Q @ (x[:n] - centre)

    def slope(x: NDArray) -> NDArray:
        return np.concatenate([-2 * Q @ (x[:n] - centre), np.zeros(lift)])

    return {"type": "ineq", "fun": room, "jac": slope}
