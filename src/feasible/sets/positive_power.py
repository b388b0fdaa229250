"""The positive-power budget in a box: only coordinates that do positive work draw on the budget."""

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from feasible.sets.arguments import Numbers
from feasible.sets.base import compiled
from feasible.sets.budget import BudgetBox
from feasible.sets.sampling import gaussian
from feasible.solve.breakpoints import OnBudget, fill_by_worth, nearest_on_budget


class PositivePowerBox(BudgetBox):
    """{a : sum_i max(w_i a_i, 0) <= budget, |a_i| <= bound_i}.

    With the sign of w_i taken off, b_i = sign(w_i) a_i, the budget reads sum_i |w_i| max(b_i, 0). Coordinates with
    b_i <= 0 in the input are free of charge, so the projection clips them and solves the quadratic knapsack of
    `WeightedL1Box` for the others; linear maximisation sends unrewarded coordinates to -bound and fills the others
    as a fractional knapsack. Costs and degenerate input as there. Samples: hit-and-run. The diameter is the upper
    bound that the bounding box gives.
    """

    residual_name: ClassVar[str] = "sum max(w a, 0) - budget"

    # Without one of its own, type checkers take the fields for its arguments.
    def __init__(self, weights: Numbers, budget: Numbers, bound: Numbers):
        super().__init__(weights, budget, bound)

    def loads(self, a: Float[Array, " n"]) -> Float[Array, " n"]:
        return jnp.maximum(self.weights * a, 0.0)

    @compiled
    def project(self, z: Float[Array, " n"]) -> Float[Array, " n"]:
        return self.nearest(z, nearest_on_budget)

    def nearest(self, z: Float[Array, " n"], on_budget: OnBudget) -> Float[Array, " n"]:
        b = self._orientation() * z
        working = b > 0
        weight = jnp.where(working, jnp.abs(self.weights), 0.0)
        lowest = jnp.where(working, 0.0, -self.bound)
        b = on_budget(b, weight, lowest, self.bound, self.budget, equality=False)
        return self._orientation() * b

    @compiled
    def maximise_linear(self, g: Float[Array, " n"]) -> Float[Array, " n"]:
        worth = self._orientation() * g
        earning = fill_by_worth(
            jnp.maximum(worth, 0.0), jnp.abs(self.weights), jnp.where(worth > 0, self.bound, 0.0), self.budget
        )
        return self._orientation() * jnp.where(worth < 0, -self.bound, earning)

    @compiled
    def centre(self) -> Float[Array, " n"]:
        # Half-way into the side that costs nothing: inside the budget by all of it, also when it is zero.
        return jnp.where(self.weights == 0, 0.0, -0.5 * self._orientation() * self.bound)

    def direction(self, key: PRNGKeyArray) -> Float[Array, " n"]:
        return gaussian(key, self.bound)

    @compiled
    def diameter(self) -> Float[Array, ""]:
        return jnp.linalg.norm(self.bound + self.reach())

    def _orientation(self) -> Float[Array, " n"]:
        return jnp.where(self.weights < 0, -1.0, 1.0).astype(self.weights.dtype)
