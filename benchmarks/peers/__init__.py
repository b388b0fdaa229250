"""The solvers that are compared: ours and those a user would otherwise pick, one file a peer.

A peer is imported only when the table needs it; one that is not installed is named under the table with the reason.
"""

import importlib
from collections.abc import Callable, Sequence
from typing import Protocol

from benchmarks.problems import Points, Problem


class Rows(Protocol):
    """Answers or gradients, one a row: an array of NumPy, JAX or PyTorch."""

    def __len__(self) -> int: ...


# One complete pass over the points it was prepared for.
Run = Callable[[], Rows]


class Solver(Protocol):
    """A way to project a batch. Preparation (models, factorisations, compilation) is never timed."""

    @property
    def title(self) -> str: ...

    def forward(self, problem: Problem, points: Points) -> Run | None:
        """The projections of the points; None where the solver does not have the set."""

    def backward(self, problem: Problem, points: Points) -> Run | None:
        """The gradient in z of sum ||project(z)||^2, forward pass included; None without derivatives."""


EVERY = ("cvxpylayers", "moreau", "cvxpy_loop", "reused", "qpax", "jaxopt", "pinet", "rayen", "qpth", "gurobi")
# Those that compute on an accelerator as they stand.
ON_DEVICE = ("moreau", "qpax", "jaxopt", "pinet", "rayen")


def available(dtype: str, names: Sequence[str] = EVERY) -> tuple[list[Solver], list[str]]:
    """Every peer that works here, and for each other one a sentence that says why it is left out."""
    solvers: list[Solver] = []
    missing: list[str] = []
    for name in names:
        try:
            solvers += importlib.import_module(f"benchmarks.peers.{name}").solvers(dtype)
        except (ImportError, OSError) as cause:  # a shared library that is not there is an OSError
            missing.append(f"{name} is left out: {cause}.")
    return solvers, missing
