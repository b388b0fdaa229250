"""jaxopt (no longer maintained): its projections on a ball, a section of a box and a polyhedron (by its OSQP)."""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
# The type checker also runs where the peers are not installed.

import jax.numpy as jnp
import jaxopt.projection
import numpy as np
from jaxtyping import Array, Float

from benchmarks.peers import Run, Solver
from benchmarks.peers.batched_jax import Projection, backward_run, forward_run
from benchmarks.peers.quadratic import quadratic
from benchmarks.problems import Points, Problem


class Jaxopt:
    title = "jaxopt"

    def __init__(self, dtype: str):
        self.dtype = np.dtype(dtype)

    def forward(self, problem: Problem, points: Points) -> Run | None:
        project = _projection(problem, self.dtype)
        return None if project is None else forward_run(project, points, self.dtype)

    def backward(self, problem: Problem, points: Points) -> Run | None:
        project = _projection(problem, self.dtype)
        return None if project is None else backward_run(project, points, self.dtype)


def _projection(problem: Problem, dtype: np.dtype) -> Projection | None:
    if problem.weighted and problem.load != "signed":
        return None  # its L1 ball has neither weights nor a box
    if problem.factor is not None:
        radius = dtype.type(problem.radius)
        return lambda z: jaxopt.projection.projection_l2_ball(z, radius)
    if problem.total is not None:
        n = problem.dim
        low, high, ones = (jnp.full(n, value, dtype) for value in (problem.low or 0.0, problem.high or 0.0, 1.0))
        section = (low, high, ones, jnp.asarray(problem.total, dtype))
        return lambda z: jaxopt.projection.projection_box_section(z, section)
    program = quadratic(problem)
    G, h = jnp.asarray(program.G, dtype), jnp.asarray(program.h, dtype)
    solver = jaxopt.OSQP(matvec_Q=lambda _, vector: vector, check_primal_dual_infeasability=False)

    def project(z: Float[Array, " n"], *state: Float[Array, " n"]) -> Float[Array, " n"]:
        rows = G.at[program.varying].set(state[0]) if state else G
        solution = solver.run(params_obj=(None, -z), params_ineq=(rows, h)).params
        return solution.primal

    return project


def solvers(dtype: str) -> list[Solver]:
    return [Jaxopt(dtype)]
