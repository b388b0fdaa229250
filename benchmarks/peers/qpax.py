"""qpax: a differentiable interior-point solver in JAX, vectorised and compiled like ours. Quadratic programs only."""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
# The type checker also runs where the peers are not installed.

import jax.numpy as jnp
import numpy as np
import qpax
from jaxtyping import Array, Float

from benchmarks.peers import Run, Solver
from benchmarks.peers.batched_jax import Projection, backward_run, forward_run
from benchmarks.peers.quadratic import quadratic
from benchmarks.problems import Points, Problem


class Qpax:
    title = "qpax"

    def __init__(self, dtype: str):
        self.dtype = np.dtype(dtype)

    def forward(self, problem: Problem, points: Points) -> Run | None:
        project = _projection(problem, self.dtype)
        return None if project is None else forward_run(project, points, self.dtype)

    def backward(self, problem: Problem, points: Points) -> Run | None:
        project = _projection(problem, self.dtype)
        return None if project is None else backward_run(project, points, self.dtype)


def _projection(problem: Problem, dtype: np.dtype) -> Projection | None:
    if problem.curved:
        return None
    program = quadratic(problem)
    P, G, h, A, b = (jnp.asarray(part, dtype) for part in (program.P, program.G, program.h, program.A, program.b))

    places = program.varying

    def project(z: Float[Array, " n"], *state: Float[Array, " n"]) -> Float[Array, " n"]:
        pull = jnp.zeros(program.size, dtype).at[: problem.dim].set(-z)
        rows = G
        if state:
            rows = G.at[places].set(jnp.abs(state[0]) if problem.load == "absolute" else state[0])
        return qpax.solve_qp_primal(P, pull, A, b, rows, h)[: problem.dim]

    return project


def solvers(dtype: str) -> list[Solver]:
    return [Qpax(dtype)]
