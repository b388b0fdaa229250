"""cvxpy with Clarabel, one model a point: how constrained environments are usually written. No derivatives."""

from benchmarks.peers import Run, Solver
from benchmarks.peers.cvxpy_model import built_per_point
from benchmarks.problems import Points, Problem


class CvxpyLoop:
    title = "cvxpy + Clarabel, per point"

    def forward(self, problem: Problem, points: Points) -> Run:
        return lambda: built_per_point(problem, points)

    def backward(self, problem: Problem, points: Points) -> None:
        return None


def solvers(dtype: str) -> list[Solver]:
    return [CvxpyLoop()]
