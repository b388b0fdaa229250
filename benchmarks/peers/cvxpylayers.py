"""cvxpylayers (PyTorch), with its default solver SCS and with Clarabel; one thread, double precision.

The forward pass runs without gradients, so that no derivative is prepared: the layer's faster way. It builds and
solves its points one after the other, at their solvers' default tolerances.
"""

# pyright: reportMissingImports=false
# The type checker also runs where the peers are not installed.

from collections.abc import Sequence

import torch
from cvxpylayers.torch.cvxpylayer import CvxpyLayer

from benchmarks.peers import Run, Solver
from benchmarks.peers.cvxpy_model import parametrised
from benchmarks.problems import Points, Problem

torch.set_num_threads(1)


class CvxpyLayers:
    def __init__(self, title: str, solve_method: str):
        self.title = title
        self.solve_method = solve_method

    def forward(self, problem: Problem, points: Points) -> Run:
        layer, inputs = self._layer(problem), _tensors(points)

        def run() -> torch.Tensor:
            with torch.no_grad():
                return layer(*inputs)[0]

        return run

    def backward(self, problem: Problem, points: Points) -> Run:
        layer, (z, *state) = self._layer(problem), _tensors(points)

        def run() -> torch.Tensor:
            proposed = z.clone().requires_grad_(True)
            (answers,) = layer(proposed, *state, solver_args={"n_jobs_backward": 1})
            (gradient,) = torch.autograd.grad((answers**2).sum(), proposed)
            return gradient

        return run

    def _layer(self, problem: Problem) -> CvxpyLayer:
        model, a, parameters = parametrised(problem)
        settings = {"n_jobs_forward": 1, "solve_method": self.solve_method}
        return CvxpyLayer(model, parameters, [a], solver_args=settings)


def _tensors(points: Points) -> Sequence[torch.Tensor]:
    given = (points.z,) if points.weights is None else (points.z, points.weights)
    return [torch.from_numpy(values) for values in given]


def solvers(dtype: str) -> list[Solver]:
    return [
        CvxpyLayers("cvxpylayers, SCS (default)", "SCS"),
        CvxpyLayers("cvxpylayers, Clarabel", "CLARABEL"),
    ]
