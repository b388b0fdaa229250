"""The weighted L1 budget in a box: HalfCheetah's power limit sum_i |v_i w_i| <= 20."""

import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from feasible.errors import EmptySetError
from feasible.sets.arguments import Numbers, floats, require, scalar, vectors
from feasible.sets.base import ActionSet, compiled, drawn, entries
from feasible.sets.box import box_exit
from feasible.sets.sampling import gaussian, hit_and_run
from feasible.solve.breakpoints import convex_exit, fill_by_worth, nearest_on_budget


class WeightedL1Box(ActionSet):
    """{a : sum_i |w_i a_i| <= budget, |a_i| <= bound_i}.

    The set is symmetric in every coordinate, so signs are taken off and put back. Projection: a quadratic knapsack
    whose one-dimensional dual is solved exactly by breakpoints. Linear maximisation: a fractional knapsack. Both O(n^2)
    operations in one kernel for few coordinates and O(n log n) for many. A zero weight leaves its coordinate to the
    box, budget 0 pins the weighted coordinates to zero, a budget that never binds leaves the box. Samples: hit-and-run.
    The diameter is the upper bound 2 sqrt(max sum_i bound_i |a_i|), exact where the fractional knapsack fills whole
    coordinates.
    """

    weights: Float[Array, " n"]
    budget: Float[Array, ""]
    bound: Float[Array, " n"]

    def __init__(self, weights: Numbers, budget: Numbers, bound: Numbers):
        self.weights, self.budget, self.bound = budget_fields("WeightedL1Box", weights, budget, bound)

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
        return ("sum |w a| - budget", *entries("|a| - bound", self.dim))

    def slopes(self) -> Float[Array, " m"]:
        return budget_slopes(self.weights)

    @compiled
    def project(self, z: Float[Array, " n"]) -> Float[Array, " n"]:
        side = jnp.where(z < 0, -1.0, 1.0).astype(self.dtype)  # never 0: the derivative at z = 0 stays right
        weight = jnp.abs(self.weights)
        size = nearest_on_budget(side * z, weight, jnp.zeros_like(weight), self.bound, self.budget, equality=False)
        return side * size

    @compiled
    def maximise_linear(self, g: Float[Array, " n"]) -> Float[Array, " n"]:
        size = fill_by_worth(jnp.abs(g), jnp.abs(self.weights), jnp.where(g == 0, 0.0, self.bound), self.budget)
        return jnp.sign(g) * size

    @compiled
    def exit_distance(self, origin: Float[Array, " n"], direction: Float[Array, " n"]) -> Float[Array, ""]:
        moving = direction != 0
        kinks = jnp.where(moving, -origin / jnp.where(moving, direction, 1.0), 0.0)
        budget_ends = convex_exit(lambda t: self._load(origin + t * direction), kinks, self.budget)
        return jnp.minimum(budget_ends, box_exit(origin, direction, -self.bound, self.bound))

    @compiled
    def centre(self) -> Float[Array, " n"]:
        return jnp.zeros_like(self.bound)

    @compiled
    def _widths(self) -> Float[Array, " n"]:
        weight = jnp.abs(self.weights)
        return jnp.where(
            weight * self.bound > self.budget, self.budget / jnp.where(weight > 0, weight, 1.0), self.bound
        )

    def direction(self, key: PRNGKeyArray) -> Float[Array, " n"]:
        return gaussian(key, self._widths())

    @drawn
    def sample(self, key: PRNGKeyArray) -> Float[Array, " n"]:
        return hit_and_run(self, key)

    @compiled
    def diameter(self) -> Float[Array, ""]:
        widths = self._widths()
        return 2.0 * jnp.sqrt(jnp.vdot(widths, fill_by_worth(widths, jnp.abs(self.weights), widths, self.budget)))

    def execute(self, z: Numbers) -> Float[Array, " n"]:
        return self.project(z)

    def _load(self, a: Float[Array, " n"]) -> Float[Array, ""]:
        return jnp.sum(jnp.abs(self.weights * a))


def budget_fields(owner: str, weights: Numbers, budget: Numbers, bound: Numbers) -> list[Array]:
    """Weights, budget and bound of a budget-in-a-box set, checked and of equal length."""
    weights, budget, bound = floats(owner, weights=weights, budget=budget, bound=bound)
    weights, bound = vectors(owner, weights=weights, bound=bound)
    budget = scalar(owner, "budget", budget)
    require(owner, bound >= 0, "bound must not be negative in any entry", EmptySetError)
    require(owner, budget >= 0, "budget must not be negative", EmptySetError)
    return [weights, budget, bound]


def budget_slopes(weights: Float[Array, " n"]) -> Float[Array, " m"]:
    ones = jnp.ones_like(weights)
    return jnp.concatenate([jnp.atleast_1d(jnp.linalg.norm(weights)), ones])
