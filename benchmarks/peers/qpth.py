"""qpth (OptNet's batched interior-point layer in PyTorch), where it is installed. Quadratic programs only."""

# pyright: reportMissingImports=false
# The type checker also runs where the peers are not installed.

import numpy as np
import torch
from qpth.qp import QPFunction

from benchmarks.peers import Run, Solver
from benchmarks.peers.quadratic import in_states, quadratic
from benchmarks.problems import Points, Problem

torch.set_num_threads(1)
# The layer asks for a positive definite P; the extra variables of a budget have none of their own.
RIDGE = 1e-6


class Qpth:
    def __init__(self, device: str = "cpu"):
        self.device = device
        self.title = "qpth" + (" (CUDA)" if device == "cuda" else "")

    def forward(self, problem: Problem, points: Points) -> Run | None:
        if problem.curved:
            return None
        project, z = _projection(problem, points, self.device), torch.from_numpy(points.z).to(self.device)

        def run() -> torch.Tensor:
            with torch.no_grad():
                return self._complete(project(z))

        return run

    def backward(self, problem: Problem, points: Points) -> Run | None:
        if problem.curved:
            return None
        project, z = _projection(problem, points, self.device), torch.from_numpy(points.z).to(self.device)

        def run() -> torch.Tensor:
            proposed = z.clone().requires_grad_(True)
            (gradient,) = torch.autograd.grad((project(proposed) ** 2).sum(), proposed)
            return self._complete(gradient)

        return run

    def _complete(self, answer: torch.Tensor) -> torch.Tensor:
        if self.device == "cuda":
            torch.cuda.synchronize()
        return answer


def _projection(problem: Problem, points: Points, device: str):
    program = quadratic(problem)
    P = np.diag(np.where(np.diag(program.P) > 0, 1.0, RIDGE))
    parts = P, in_states(problem, program, points), program.h, program.A, program.b
    P, G, h, A, b = (torch.from_numpy(part).to(device) for part in parts)
    if len(program.b) == 0:
        A = b = torch.empty(0, dtype=torch.float64, device=device)
    layer = QPFunction(verbose=-1, check_Q_spd=False)

    def project(z: torch.Tensor) -> torch.Tensor:
        pull = torch.nn.functional.pad(-z, (0, program.size - problem.dim))
        return layer(P, pull, G, h, A, b)[:, : problem.dim]

    return project


def solvers(dtype: str) -> list[Solver]:
    return [Qpth()]
