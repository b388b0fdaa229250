"""feasible itself: the set is built from the state inside the compiled function, the batch is `jax.vmap`."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from benchmarks.peers import Run
from benchmarks.peers.batched_jax import backward_run, forward_run
from benchmarks.problems import Points, Problem
from feasible.sets import ActionSet, Allocation, Ball, EllipsoidBox, Polytope, WeightedL1Box


class Feasible:
    title = "feasible"

    def __init__(self, dtype: str):
        self.dtype = np.dtype(dtype)

    def forward(self, problem: Problem, points: Points) -> Run:
        return forward_run(_projection(problem, self.dtype), points, self.dtype)

    def backward(self, problem: Problem, points: Points) -> Run:
        return backward_run(_projection(problem, self.dtype), points, self.dtype)


def _projection(problem: Problem, dtype: np.dtype):
    if problem.weighted:

        def project(z: Float[Array, " n"], weights: Float[Array, " n"] | None) -> Float[Array, " n"]:
            return action_set(problem, weights, dtype).project(z)

    else:
        fixed = action_set(problem, None, dtype)

        def project(z: Float[Array, " n"], weights: Float[Array, " n"] | None) -> Float[Array, " n"]:
            return fixed.project(z)

    return project


def action_set(problem: Problem, weights: Float[Array, " n"] | None, dtype: np.dtype) -> ActionSet:
    """The problem as a feasible set, in the state that the weights describe."""
    number = dtype.type
    n = problem.dim
    if problem.A is not None and problem.b is not None:
        return Polytope(problem.A.astype(dtype), problem.b.astype(dtype), number(problem.low), number(problem.high))
    if problem.total is not None:
        return Allocation(number(problem.total), np.full(n, problem.low, dtype), np.full(n, problem.high, dtype))
    if problem.budget is None:
        return Ball(np.zeros(n, dtype), number(problem.radius))
    power = WeightedL1Box(jnp.asarray(weights, dtype), problem.budget, number(problem.high))
    if problem.factor is None or problem.radius is None:
        return power
    Q = (problem.factor.T @ problem.factor).astype(dtype)
    return power & EllipsoidBox(Q, number(problem.radius**2), number(problem.high))
