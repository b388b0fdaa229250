"""The peers' way with a set: a solver called for every sample, here behind the same interface as a set of ours."""

# Clarabel's compiled module declares its names to no type checker.
# pyright: reportAttributeAccessIssue=false

import clarabel
import jax
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linprog

from feasible.sets import WeightedL1Box
from feasible.sets.arguments import Numbers
from feasible.sets.base import ActionSet


class SolverSet(ActionSet):
    """A `WeightedL1Box` whose projection and linear maximisation are solved numerically, sample by sample."""

    exact: WeightedL1Box

    @property
    def dim(self) -> int:
        return self.exact.dim

    @property
    def scale(self) -> Float[Array, ""]:
        return self.exact.scale

    def residuals(self, a: Numbers) -> Float[Array, " m"]:
        return self.exact.residuals(a)

    def residual_names(self) -> tuple[str, ...]:
        return self.exact.residual_names()

    def slopes(self) -> Float[Array, " m"]:
        return self.exact.slopes()

    def project(self, z: Numbers) -> Float[Array, " n"]:
        return self._call(_nearest, z)

    def maximise_linear(self, g: Numbers) -> Float[Array, " n"]:
        return self._call(_best, g)

    def execute(self, z: Numbers) -> Float[Array, " n"]:
        return self.exact.project(self.project(z))

    def exit_distance(self, origin: Numbers, direction: Numbers) -> Float[Array, ""]:
        return self.exact.exit_distance(origin, direction)

    def centre(self) -> Float[Array, " n"]:
        return self.exact.centre()

    def sample(self, key: PRNGKeyArray) -> Float[Array, " n"]:
        return self.exact.sample(key)

    def direction(self, key: PRNGKeyArray) -> Float[Array, " n"]:
        return self.exact.direction(key)

    def diameter(self) -> Float[Array, ""]:
        return self.exact.diameter()

    def _call(self, solve, point: Numbers) -> Float[Array, " n"]:
        vector = self.point(point)
        answer = jax.ShapeDtypeStruct(vector.shape, vector.dtype)
        weights, budget, bound = self.exact.weights, self.exact.budget, self.exact.bound
        return jax.pure_callback(solve, answer, vector, weights, budget, bound, vmap_method="sequential")


def _rows(weights: NDArray, budget: NDArray, bound: NDArray) -> tuple[NDArray, NDArray]:
    """Over (a, t): |w_i a_i| <= t_i, sum t <= budget, |a_i| <= bound_i, as G x <= h."""
    n = len(weights)
    eye, none, diagonal = np.eye(n), np.zeros((n, n)), np.diag(np.asarray(weights, float))
    total = np.concatenate([np.zeros(n), np.ones(n)])[None]
    blocks = [[diagonal, -eye], [-diagonal, -eye], [eye, none], [-eye, none]]
    G = np.vstack([np.hstack(block) for block in blocks] + [total])
    limits = np.broadcast_to(np.asarray(bound, float), (n,))
    return G, np.concatenate([np.zeros(2 * n), limits, limits, [float(budget)]])


def _nearest(z: NDArray, weights: NDArray, budget: NDArray, bound: NDArray) -> NDArray:
    n = len(z)
    G, h = _rows(weights, budget, bound)
    P = sparse.csc_matrix(np.diag(np.concatenate([np.ones(n), np.zeros(n)])))
    q = np.concatenate([-np.asarray(z, float), np.zeros(n)])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    solver = clarabel.DefaultSolver(P, q, sparse.csc_matrix(G), h, [clarabel.NonnegativeConeT(len(h))], settings)
    return np.asarray(solver.solve().x[:n], z.dtype)


def _best(g: NDArray, weights: NDArray, budget: NDArray, bound: NDArray) -> NDArray:
    n = len(g)
    G, h = _rows(weights, budget, bound)
    cost = np.concatenate([-np.asarray(g, float), np.zeros(n)])
    free = [(None, None)] * (2 * n)
    return np.asarray(linprog(cost, A_ub=G, b_ub=h, bounds=free, method="highs").x[:n], g.dtype)
