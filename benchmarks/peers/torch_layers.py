"""Layers of PyTorch: ours, and those that only such layers are compared with. A peer is imported where it is made."""

# pyright: reportMissingImports=false
# The type checker also runs where the peers are not installed.

from collections.abc import Callable

import numpy as np
import torch
from jaxtyping import Array

import feasible.torch as ft
from benchmarks.peers import Run
from benchmarks.problems import Points, Problem
from feasible import sets
from feasible.torch.crossing import crossed

Layer = Callable[[torch.Tensor], torch.Tensor]


def power(weights: Array) -> sets.ActionSet:
    return sets.WeightedL1Box(weights, 20.0, 1.0)


def nothing(region: sets.ActionSet, z: Array) -> Array:
    """A set function that computes next to nothing: what is left is the crossing."""
    del region
    return z + z


def of_the_state(who: str, z: torch.Tensor, weights: torch.Tensor) -> Layer:
    if who == "nothing":
        return lambda z: crossed(who, nothing, power, weights, z)[0]
    return lambda z: getattr(ft, who)(power, z, weights)


def of_one_set(who: str, z: torch.Tensor, weights: torch.Tensor) -> Layer:
    region = sets.WeightedL1Box(weights[0].cpu().numpy(), 20.0, 1.0)
    return lambda z: getattr(ft, who)(region, z)


def moreau(who: str, z: torch.Tensor, weights: torch.Tensor) -> Layer:
    """cvxpylayers with the solver Moreau, which solves a batch as one."""
    import moreau as _  # noqa: F401
    from cvxpylayers.torch import CvxpyLayer

    from benchmarks.peers.cvxpy_model import parametrised
    from benchmarks.problems import halfcheetah

    model, a, parameters = parametrised(halfcheetah())
    layer = CvxpyLayer(model, parameters, [a], solver="MOREAU")
    return lambda z: layer(z, weights)[0]


def rayen(who: str, z: torch.Tensor, weights: torch.Tensor) -> Layer:
    """RAYEN on the fixed set: |w a|_1 <= 20 as the rows of all signs, and the box; z is the step from its centre."""
    from rayen.constraint_module import ConstraintModule
    from rayen.constraints import ConvexConstraints, LinearConstraint

    w, n = weights[0].double().cpu().numpy(), weights.shape[1]
    signs = np.array(np.meshgrid(*[[-1.0, 1.0]] * n)).reshape(n, -1).T
    rows, bounds = np.concatenate([signs * w, np.eye(n), -np.eye(n)]), np.r_[np.full(2**n, 20.0), np.ones(2 * n)]
    constraints = ConvexConstraints(
        lc=LinearConstraint(rows, bounds[:, None], None, None), y0=np.zeros((n, 1)), do_preprocessing_linear=False
    )
    module = ConstraintModule(constraints, input_dim=n, create_map=False).to(z.device, z.dtype)
    return lambda z: module(z[:, :, None])[:, :, 0]


class TorchLayer:
    """A layer with both passes, from tensors to tensors, until the device is idle again."""

    def __init__(
        self, title: str, make: Callable[[str, torch.Tensor, torch.Tensor], Layer], who: str, dtype: str, device: str
    ):
        self.title, self.make, self.who, self.dtype, self.device = title, make, who, dtype, device

    def forward(self, problem: Problem, points: Points) -> Run:
        z, layer = self._prepared(points)

        def run() -> torch.Tensor:
            with torch.no_grad():
                return self._complete(layer(z))

        return run

    def backward(self, problem: Problem, points: Points) -> Run:
        z, layer = self._prepared(points)

        def run() -> torch.Tensor:
            proposed = z.clone().requires_grad_(True)
            (gradient,) = torch.autograd.grad((layer(proposed) ** 2).sum(), proposed)
            return self._complete(gradient)

        return run

    def _prepared(self, points: Points) -> tuple[torch.Tensor, Layer]:
        dtype = getattr(torch, self.dtype)
        z, weights = (torch.from_numpy(rows).to(self.device, dtype) for rows in (points.z, points.weights))
        return z, self.make(self.who, z, weights)

    def _complete(self, answer: torch.Tensor) -> torch.Tensor:
        if self.device == "cuda":
            torch.cuda.synchronize()
        return answer
