"""The weighted L1 budget in a box: HalfCheetah's power limit sum_i |v_i w_i| <= 20."""

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from feasible.sets.arguments import Numbers
from feasible.sets.base import compiled
from feasible.sets.budget import BudgetBox
from feasible.sets.sampling import gaussian
from feasible.solve.breakpoints import OnBudget, fill_by_worth, nearest_on_budget


class WeightedL1Box(BudgetBox):
    """{a : sum_i |w_i a_i| <= budget, |a_i| <= bound_i}.

    The set is symmetric in every coordinate, so signs are taken off and put back. Projection: a quadratic knapsack
    whose one-dimensional dual is solved exactly by breakpoints. Linear maximisation: a fractional knapsack. Both O(n^2)
    operations in one kernel for few coordinates and O(n log n) for many. A zero weight leaves its coordinate to the
    box, budget 0 pins the weighted coordinates to zero, a budget that never binds leaves the box. Samples: hit-and-run.
    The diameter is the upper bound 2 sqrt(max sum_i bound_i |a_i|), exact where the fractional knapsack fills whole
    coordinates.
    """

    residual_name: ClassVar[str] = "sum |w a| - budget"

    # Without one of its own, type checkers take the fields for its arguments.
    def __init__(self, weights: Numbers, budget: Numbers, bound: Numbers):
        super().__init__(weights, budget, bound)

    def loads(self, a: Float[Array, " n"]) -> Float[Array, " n"]:
        return jnp.abs(self.weights * a)

    @compiled
    def project(self, z: Float[Array, " n"]) -> Float[Array, " n"]:
        return self.nearest(z, nearest_on_budget)

    def nearest(self, z: Float[Array, " n"], on_budget: OnBudget) -> Float[Array, " n"]:
        side = jnp.where(z < 0, -1.0, 1.0).astype(self.dtype)  # never 0: the derivative at z = 0 stays right
        weight = jnp.abs(self.weights)
        size = on_budget(side * z, weight, jnp.zeros_like(weight), self.bound, self.budget, equality=False)
        return side * size

    @compiled
    def maximise_linear(self, g: Float[Array, " n"]) -> Float[Array, " n"]:
        size = fill_by_worth(jnp.abs(g), jnp.abs(self.weights), jnp.where(g == 0, 0.0, self.bound), self.budget)
        return jnp.sign(g) * size

    @compiled
    def centre(self) -> Float[Array, " n"]:
        return jnp.zeros_like(self.bound)

    def direction(self, key: PRNGKeyArray) -> Float[Array, " n"]:
        return gaussian(key, self.reach())

    @compiled
    def diameter(self) -> Float[Array, ""]:
        reach = self.reach()
        return 2.0 * jnp.sqrt(jnp.vdot(reach, fill_by_worth(reach, jnp.abs(self.weights), reach, self.budget)))
