"""feasible itself: the set is built from the state inside the compiled function, the batch is `jax.vmap`."""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from benchmarks.peers import Run
from benchmarks.peers.batched_jax import Projection, backward_run, forward_run
from benchmarks.problems import Points, Problem
from feasible.sets import (
    ActionSet,
    Allocation,
    Ball,
    EllipsoidBox,
    HalfSpaceBox,
    Polytope,
    PositivePowerBox,
    WeightedL1Box,
    WeightedL1EllipsoidBox,
)


class Feasible:
    title = "feasible"

    def __init__(self, dtype: str):
        self.dtype = np.dtype(dtype)

    def forward(self, problem: Problem, points: Points) -> Run:
        return forward_run(_projection(problem, self.dtype), points, self.dtype)

    def backward(self, problem: Problem, points: Points) -> Run:
        return backward_run(_projection(problem, self.dtype), points, self.dtype)


def _projection(problem: Problem, dtype: np.dtype) -> Projection:
    if problem.weighted:
        return lambda z, *state: action_set(problem, state, dtype).project(z)
    fixed = action_set(problem, (), dtype)
    return lambda z: fixed.project(z)


def action_set(problem: Problem, state: Sequence[Float[Array, " n"]], dtype: np.dtype) -> ActionSet:
    """The problem as a feasible set, in the state of these weights and sines."""
    number = dtype.type
    n = problem.dim
    if problem.A is not None and problem.b is not None:
        return Polytope(problem.A.astype(dtype), problem.b.astype(dtype), number(problem.low), number(problem.high))
    if problem.total is not None:
        return Allocation(number(problem.total), np.full(n, problem.low, dtype), np.full(n, problem.high, dtype))
    if problem.budget is None:
        return Ball(np.zeros(n, dtype), number(problem.radius))
    return _budgeted(problem, state, dtype)


def _budgeted(problem: Problem, state: Sequence[Float[Array, " n"]], dtype: np.dtype) -> ActionSet:
    number, weights = dtype.type, jnp.asarray(state[0], dtype)
    budget, bound = number(problem.budget), number(problem.high)
    if problem.load == "signed":
        return HalfSpaceBox(weights, budget, jnp.full_like(weights, number(problem.low)), jnp.full_like(weights, bound))
    if problem.load == "positive":
        return PositivePowerBox(weights, budget, bound)
    if problem.radius is None:
        return WeightedL1Box(weights, budget, bound)
    level = number(problem.radius**2)
    if problem.factor is None:
        return WeightedL1EllipsoidBox(weights, budget, jnp.square(state[1]), level, bound)
    Q = (problem.factor.T @ problem.factor).astype(dtype)
    return WeightedL1Box(weights, budget, bound) & EllipsoidBox(Q, level, bound)
