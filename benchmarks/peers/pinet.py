"""Pi-net: Douglas-Rachford splitting in JAX with an implicit derivative, a batch at a time, at its own settings.

The forward pass asks every 10 rounds whether the largest violation of the batch is below 1e-3, and stops after 100.
The pass with gradient makes 100 rounds and 5 for the derivative. Rows that depend on the state are a matrix each, whose
pseudoinverse is made before the clock starts. A budget on loads is a row for every choice of signs: 2^n of them. Cones
that depend on the state it does not have, nor rows that do beside a cone.
"""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
# The type checker also runs where the peers are not installed.

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pinet
from jaxtyping import Array, Float

from benchmarks.peers import Run, Solver
from benchmarks.problems import Points, Problem

ROUNDS = 100


class Pinet:
    title = "Pi-net"

    def __init__(self, dtype: str):
        self.dtype = np.dtype(dtype)

    def forward(self, problem: Problem, points: Points) -> Run | None:
        if problem.weighted and problem.curved:
            return None
        layer, cones = _layer(problem, points, self.dtype)
        project, given = layer.call_and_check(), pinet.ProjectionInstance(x=self._column(points), nl=cones)
        return lambda: project(given)[0].x[..., 0].block_until_ready()

    def backward(self, problem: Problem, points: Points) -> Run | None:
        if problem.weighted and problem.curved:
            return None
        layer, cones = _layer(problem, points, self.dtype)

        def loss(x: Float[Array, "k n 1"]) -> Float[Array, ""]:
            return jnp.sum(layer.call(y_raw=pinet.ProjectionInstance(x=x, nl=cones), n_iter=ROUNDS)[0].x ** 2)

        run, x = jax.jit(jax.grad(loss)), self._column(points)
        return lambda: run(x)[..., 0].block_until_ready()

    def _column(self, points: Points) -> Float[Array, "k n 1"]:
        return jnp.asarray(points.z[..., None], self.dtype)


def _layer(
    problem: Problem, points: Points, dtype: np.dtype
) -> tuple[pinet.Project, list[pinet.NonLinearSpecification] | None]:
    """The layer, and the cones that every call names again."""
    n, cones = problem.dim, None

    def column(value: float | np.ndarray | None, size: int) -> Float[Array, "1 size 1"]:
        return jnp.broadcast_to(jnp.asarray(value, dtype), (size,))[None, :, None]

    parts = {}
    if problem.low is not None:
        box = pinet.BoxConstraintSpecification(lb=column(problem.low, n), ub=column(problem.high, n))
        parts["box_constraint"] = pinet.BoxConstraint(box)
    if problem.total is not None:
        parts["eq_constraint"] = pinet.EqualityConstraint(jnp.ones((1, 1, n), dtype), column(problem.total, 1))
    if problem.A is not None or problem.weighted:
        rows = _rows(problem, points)
        most = problem.b if problem.A is not None else problem.budget
        parts["ineq_constraint"] = pinet.AffineInequalityConstraint(
            jnp.asarray(rows, dtype), column(-np.inf, rows.shape[1]), column(most, rows.shape[1])
        )
    if problem.factor is not None:
        # Its `L2NormType` fails in 0.2.0 with a sum of dimensions; a cone with f = 0 is the same.
        cone = pinet.NonLinearSpecification(
            nl_type=pinet.SOCType,
            a_mat=jnp.asarray(problem.factor[None], dtype),
            a=jnp.zeros((1, n, 1), dtype),
            f=jnp.zeros((1, 1, n), dtype),
            b=column(problem.radius, 1),
        )
        cones = [cone]
        parts["nl_constraints"] = [pinet.NonLinearConstraint(cone)]
    return pinet.Project(**parts), cones


def _rows(problem: Problem, points: Points) -> np.ndarray:
    """C of C a <= b, one for all points or one each."""
    if points.weights is None:
        assert problem.A is not None
        return problem.A[None]
    if problem.load == "signed":
        return points.weights[:, None, :]
    choices = np.array(list(product((1.0, -1.0 if problem.load == "absolute" else 0.0), repeat=problem.dim)))
    return choices * points.weights[:, None, :]


def solvers(dtype: str) -> list[Solver]:
    return [Pinet(dtype)]
