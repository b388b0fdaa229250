"""RAYEN (PyTorch, single precision): along the ray from a point inside, not the projection. Fixed sets only.

What its column of errors says is how far this other map is from the projection. It takes the vector from its centre,
which is made before the clock starts, in coordinates of the set's affine hull.
"""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
# The type checker also runs where the peers are not installed.

import numpy as np
import torch
from rayen.constraint_module import ConstraintModule
from rayen.constraints import ConvexConstraints, ConvexQuadraticConstraint, LinearConstraint

from benchmarks.peers import Run, Solver
from benchmarks.peers.quadratic import quadratic
from benchmarks.problems import Points, Problem

torch.set_num_threads(1)


class Rayen:
    title = "RAYEN (not the projection)"

    def __init__(self, device: str):
        self.device = device

    def forward(self, problem: Problem, points: Points) -> Run | None:
        if problem.weighted:
            return None
        layer, outputs = self._ready(problem, points)

        def run() -> torch.Tensor:
            with torch.no_grad():
                return self._complete(layer(outputs)[..., 0])

        return run

    def backward(self, problem: Problem, points: Points) -> Run | None:
        if problem.weighted:
            return None
        layer, outputs = self._ready(problem, points)

        def run() -> torch.Tensor:
            v = outputs.clone().requires_grad_(True)
            (gradient,) = torch.autograd.grad((layer(v) ** 2).sum(), v)
            return self._complete(gradient)

        return run

    def _ready(self, problem: Problem, points: Points) -> tuple[ConstraintModule, torch.Tensor]:
        layer, outputs = _layer(problem, points)
        return layer.to(self.device), outputs.to(self.device)

    def _complete(self, answers: torch.Tensor) -> torch.Tensor:
        if self.device == "cuda":
            torch.cuda.synchronize()
        return answers


def _layer(problem: Problem, points: Points) -> tuple[ConstraintModule, torch.Tensor]:
    """The layer and what to give it for these points."""
    program = quadratic(problem)
    linear = None
    if len(program.h):
        equal = (program.A, program.b[:, None]) if len(program.b) else (None, None)
        linear = LinearConstraint(program.G, program.h[:, None], *equal)
    curved = []
    if problem.factor is not None and problem.radius is not None:
        P = 2.0 * problem.factor.T @ problem.factor
        curved = [ConvexQuadraticConstraint(P, np.zeros((problem.dim, 1)), np.array([[-(problem.radius**2)]]))]
    # Its search for hidden equalities, by SCS here, finds none where there are equalities already, and fails.
    constraints = ConvexConstraints(lc=linear, qcs=curved, do_preprocessing_linear=len(program.b) == 0)
    layer = ConstraintModule(constraints, create_map=False)
    proposed = torch.from_numpy(points.z[..., None]).float()
    return layer, layer.getzFromy(proposed) - layer.z0


def solvers(dtype: str) -> list[Solver]:
    return [Rayen("cuda" if torch.cuda.is_available() else "cpu")]
