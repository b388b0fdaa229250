"""cvxpylayers (PyTorch), with its default solver SCS and with Clarabel; one thread, double precision.

The forward pass runs without gradients, so that no derivative is prepared: the layer's faster way. It builds and
solves its points one after the other, at their solvers' default tolerances.
"""

# pyright: reportMissingImports=false
# The type checker also runs where the peers are not installed.

from collections.abc import Mapping, Sequence

import torch
from cvxpylayers.torch.cvxpylayer import CvxpyLayer

from benchmarks.peers import Run, Solver
from benchmarks.peers.cvxpy_model import parametrised
from benchmarks.problems import Points, Problem

torch.set_num_threads(1)


class CvxpyLayers:
    """A layer of one solver; `settings` are the layer's own, `of_a_call` those of a call with gradients."""

    def __init__(
        self,
        title: str,
        settings: Mapping[str, object],
        of_a_call: Mapping[str, object],
        unit: float = 1.0,
        device: str = "cpu",
    ):
        self.title = title
        self.unit = unit
        self.device = device
        self.settings = settings
        self.of_a_call = of_a_call

    def forward(self, problem: Problem, points: Points) -> Run:
        layer, inputs = self._layer(problem), self._tensors(points)

        def run() -> torch.Tensor:
            with torch.no_grad():
                return self._ready(layer(*inputs)[0])

        return run

    def backward(self, problem: Problem, points: Points) -> Run:
        layer, (z, *state) = self._layer(problem), self._tensors(points)

        def run() -> torch.Tensor:
            proposed = z.clone().requires_grad_(True)
            (answers,) = layer(proposed, *state, solver_args=dict(self.of_a_call))
            (gradient,) = torch.autograd.grad((answers**2).sum(), proposed)
            return self._ready(gradient)

        return run

    def _ready(self, answers: torch.Tensor) -> torch.Tensor:
        if self.device == "cuda":
            torch.cuda.synchronize()
        return answers

    def _layer(self, problem: Problem) -> CvxpyLayer:
        model, a, parameters = parametrised(problem, self.unit)
        return CvxpyLayer(model, parameters, [a], **self.settings).to(self.device)

    def _tensors(self, points: Points) -> Sequence[torch.Tensor]:
        return [torch.from_numpy(part).to(self.device) for part in (points.z, *points.state)]


def _diffcp(title: str, solve_method: str) -> CvxpyLayers:
    settings = {"solver_args": {"n_jobs_forward": 1, "solve_method": solve_method}}
    return CvxpyLayers(title, settings, {"n_jobs_backward": 1})


def solvers(dtype: str) -> list[Solver]:
    return [_diffcp("cvxpylayers, SCS (default)", "SCS"), _diffcp("cvxpylayers, Clarabel", "CLARABEL")]
