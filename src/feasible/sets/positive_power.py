"""The positive-power budget in a box: only coordinates that do positive work draw on the budget."""

import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from feasible.sets.arguments import Numbers
from feasible.sets.base import ActionSet, compiled, drawn, entries
from feasible.sets.box import box_exit
from feasible.sets.sampling import gaussian, hit_and_run
from feasible.sets.weighted_l1 import budget_fields, budget_slopes
from feasible.solve.breakpoints import convex_exit, fill_by_worth, nearest_on_budget


class PositivePowerBox(ActionSet):
    """{a : sum_i max(w_i a_i, 0) <= budget, |a_i| <= bound_i}.

    With the sign of w_i taken off, b_i = sign(w_i) a_i, the budget reads sum_i |w_i| max(b_i, 0). Coordinates with
    b_i <= 0 in the input are free of charge, so the projection clips them and solves the quadratic knapsack of
    `WeightedL1Box` for the others; linear maximisation sends unrewarded coordinates to -bound and fills the others
    as a fractional knapsack. Costs and degenerate input as there. Samples: hit-and-run. The diameter is the upper
    bound that the bounding box gives.
    """

    weights: Float[Array, " n"]
    budget: Float[Array, ""]
    bound: Float[Array, " n"]

    def __init__(self, weights: Numbers, budget: Numbers, bound: Numbers):
        self.weights, self.budget, self.bound = budget_fields("PositivePowerBox", weights, budget, bound)

    @property
    def dim(self) -> int:
        return self.weights.shape[-1]

    @property
    def scale(self) -> Float[Array, ""]:
        return jnp.max(self.bound)

    @compiled
    def residuals(self, a: Float[Array, " n"]) -> Float[Array, " m"]:
        return jnp.concatenate([jnp.atleast_1d(self._load(a) - self.budget), jnp.abs(a) - self.bound])

    def residual_names(self) -> tuple[str, ...]:
        return ("sum max(w a, 0) - budget", *entries("|a| - bound", self.dim))

    def slopes(self) -> Float[Array, " m"]:
        return budget_slopes(self.weights)

    @compiled
    def project(self, z: Float[Array, " n"]) -> Float[Array, " n"]:
        b = self._orientation() * z
        working = b > 0
        weight = jnp.where(working, jnp.abs(self.weights), 0.0)
        lowest = jnp.where(working, 0.0, -self.bound)
        b = nearest_on_budget(b, weight, lowest, self.bound, self.budget, equality=False)
        return self._orientation() * b

    @compiled
    def maximise_linear(self, g: Float[Array, " n"]) -> Float[Array, " n"]:
        worth = self._orientation() * g
        earning = fill_by_worth(
            jnp.maximum(worth, 0.0), jnp.abs(self.weights), jnp.where(worth > 0, self.bound, 0.0), self.budget
        )
        return self._orientation() * jnp.where(worth < 0, -self.bound, earning)

    @compiled
    def exit_distance(self, origin: Float[Array, " n"], direction: Float[Array, " n"]) -> Float[Array, ""]:
        moving = direction != 0
        kinks = jnp.where(moving, -origin / jnp.where(moving, direction, 1.0), 0.0)
        budget_ends = convex_exit(lambda t: self._load(origin + t * direction), kinks, self.budget)
        return jnp.minimum(budget_ends, box_exit(origin, direction, -self.bound, self.bound))

    @compiled
    def centre(self) -> Float[Array, " n"]:
        # Half-way into the side that costs nothing: inside the budget by all of it, also when it is zero.
        return jnp.where(self.weights == 0, 0.0, -0.5 * self._orientation() * self.bound)

    def direction(self, key: PRNGKeyArray) -> Float[Array, " n"]:
        return gaussian(key, self.bound)

    @drawn
    def sample(self, key: PRNGKeyArray) -> Float[Array, " n"]:
        return hit_and_run(self, key)

    @compiled
    def diameter(self) -> Float[Array, ""]:
        weight = jnp.abs(self.weights)
        reach = jnp.where(
            weight * self.bound > self.budget, self.budget / jnp.where(weight > 0, weight, 1.0), self.bound
        )
        return jnp.linalg.norm(self.bound + reach)

    def execute(self, z: Numbers) -> Float[Array, " n"]:
        return self.project(z)

    def _orientation(self) -> Float[Array, " n"]:
        return jnp.where(self.weights < 0, -1.0, 1.0).astype(self.weights.dtype)

    def _load(self, a: Float[Array, " n"]) -> Float[Array, ""]:
        return jnp.sum(jnp.maximum(self.weights * a, 0.0))
