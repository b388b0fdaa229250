"""A weighted L1 budget and a diagonal ellipsoid in one box: power and heat limits on the same joints."""

import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from feasible.errors import EmptySetError
from feasible.sets.arguments import Numbers, floats, read, require, scalar, vectors
from feasible.sets.base import ActionSet, compiled, drawn, entries
from feasible.sets.box import Bound, narrower
from feasible.sets.ellipsoid import EllipsoidBox, heat_in_units
from feasible.sets.sampling import gaussian, hit_and_run
from feasible.sets.weighted_l1 import WeightedL1Box
from feasible.solve.two_budgets import Budgets, highest_in_budgets, nearest_in_budgets


class WeightedL1EllipsoidBox(ActionSet):
    """{a : sum_i |w_i a_i| <= budget, sum_i q_i a_i^2 <= level, |a_i| <= bound_i} for q >= 0: what `WeightedL1Box &
    EllipsoidBox` is where the ellipsoid's Q is given as the vector of its diagonal.

    Signs are taken off and put back. For multipliers l, m >= 0 the projection is
    a_i = clip(soft(z_i, l |w_i|) / (1 + m q_i), -bound_i, bound_i); l is exact by breakpoints for every m, and m is a
    root of one variable (`feasible.solve.two_budgets`): as a rule 3 to 8 rounds of O(n^2) operations, O(n log n) each
    for many coordinates, to rounding. Linear maximisation likewise; where a multiplier or a q_i is zero, coordinates
    are filled in part as in a fractional knapsack. Zero weights, zero q, budget 0 and level 0 are ordinary input.

    The centre, 0, is a Chebyshev centre. Samples: hit-and-run. The diameter is the upper bound of the two parts'.
    """

    weights: Float[Array, " n"]
    budget: Float[Array, ""]
    Q: Float[Array, " n"]
    level: Float[Array, ""]
    bound: Float[Array, " n"]

    def __init__(self, weights: Numbers, budget: Numbers, Q: Numbers, level: Numbers, bound: Numbers):
        owner = "WeightedL1EllipsoidBox"
        weights, budget, diagonal, level, bound = floats(
            owner, weights=weights, budget=budget, Q=Q, level=level, bound=bound
        )
        self.weights, self.Q, self.bound = vectors(owner, weights=weights, Q=diagonal, bound=bound)
        self.budget, self.level = scalar(owner, "budget", budget), scalar(owner, "level", level)
        require(owner, read(self.Q) >= 0, "Q must not be negative in any entry of its diagonal")
        require(owner, read(self.bound) >= 0, "bound must not be negative in any entry", EmptySetError)
        require(owner, read(self.budget) >= 0, "budget must not be negative", EmptySetError)
        require(owner, read(self.level) >= 0, "level must not be negative", EmptySetError)

    @property
    def dim(self) -> int:
        return self.weights.shape[-1]

    @property
    def scale(self) -> Float[Array, ""]:
        return jnp.max(self.bound)

    @property
    def power(self) -> WeightedL1Box:
        """The weighted L1 budget in the box."""
        return WeightedL1Box(self.weights, self.budget, self.bound)

    @property
    def heat(self) -> EllipsoidBox:
        """The ellipsoid in the box."""
        return EllipsoidBox(self.Q, self.level, self.bound)

    @compiled
    def residuals(self, a: Float[Array, " n"]) -> Float[Array, " m"]:
        spent = jnp.atleast_1d(jnp.sum(jnp.abs(self.weights * a)) - self.budget)
        return jnp.concatenate([spent, self.heat.residuals(a)])

    def residual_names(self) -> tuple[str, ...]:
        return (WeightedL1Box.residual_name, "a'Q a - level", *entries("|a| - bound", self.dim))

    def slopes(self) -> Float[Array, " m"]:
        return jnp.concatenate([jnp.atleast_1d(jnp.linalg.norm(self.weights)), self.heat.slopes()])

    def in_action_units(self, residuals: Float[Array, " m"]) -> Float[Array, " m"]:
        return jnp.concatenate([super().in_action_units(residuals)[:1], self.heat.in_action_units(residuals[1:])])

    @compiled
    def project(self, z: Float[Array, " n"]) -> Float[Array, " n"]:
        side = jnp.where(z < 0, -1.0, 1.0).astype(self.dtype)  # never 0: the derivative at z = 0 stays right
        return side * nearest_in_budgets(self._budgets(side * z))

    @compiled
    def maximise_linear(self, g: Float[Array, " n"]) -> Float[Array, " n"]:
        side = jnp.where(g < 0, -1.0, 1.0).astype(self.dtype)
        return side * highest_in_budgets(self._budgets(side * g))

    @compiled
    def exit_distance(self, origin: Float[Array, " n"], direction: Float[Array, " n"]) -> Float[Array, ""]:
        return jnp.minimum(self.power.exit_distance(origin, direction), self.heat.exit_distance(origin, direction))

    @compiled
    def centre(self) -> Float[Array, " n"]:
        return jnp.zeros_like(self.bound)

    def direction(self, key: PRNGKeyArray) -> Float[Array, " n"]:
        return gaussian(key, jnp.minimum(self.power.reach(), self.heat.half_widths()))

    @drawn
    def sample(self, key: PRNGKeyArray) -> Float[Array, " n"]:
        return hit_and_run(self, key)

    @compiled
    def diameter(self) -> Float[Array, ""]:
        return jnp.minimum(self.power.diameter(), self.heat.diameter())

    def clipped(self, low: Bound, high: Bound) -> "WeightedL1EllipsoidBox | None":
        return narrower(self, low, high)

    def _budgets(self, worth: Float[Array, " n"]) -> Budgets:
        heat, most = heat_in_units(self.Q, self.level, self.bound)
        return Budgets(worth, jnp.abs(self.weights), heat, most, self.budget)
