"""A budget in a box, of which coordinates draw by their load: what such sets have in common."""

from abc import abstractmethod
from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from feasible.errors import EmptySetError
from feasible.sets.arguments import Numbers, floats, require, scalar, vectors
from feasible.sets.base import ActionSet, compiled, drawn, entries
from feasible.sets.box import Bound, box_exit, narrower
from feasible.sets.sampling import hit_and_run
from feasible.solve.breakpoints import convex_exit


class BudgetBox(ActionSet):
    """{a : load(a) <= budget, |a_i| <= bound_i} with a load that is a sum of convex, piecewise linear terms, one a
    coordinate, each with its kink at zero. Samples: hit-and-run."""

    weights: Float[Array, " n"]
    budget: Float[Array, ""]
    bound: Float[Array, " n"]

    residual_name: ClassVar[str]
    """Of the budget's residual."""

    def __init__(self, weights: Numbers, budget: Numbers, bound: Numbers):
        owner = type(self).__name__
        weights, budget, bound = floats(owner, weights=weights, budget=budget, bound=bound)
        self.weights, self.bound = vectors(owner, weights=weights, bound=bound)
        self.budget = scalar(owner, "budget", budget)
        require(owner, self.bound >= 0, "bound must not be negative in any entry", EmptySetError)
        require(owner, self.budget >= 0, "budget must not be negative", EmptySetError)

    @abstractmethod
    def loads(self, a: Float[Array, " n"]) -> Float[Array, " n"]:
        """What each coordinate of an action draws from the budget."""

    def load(self, a: Float[Array, " n"]) -> Float[Array, ""]:
        return jnp.sum(self.loads(a))

    @property
    def dim(self) -> int:
        return self.weights.shape[-1]

    @property
    def scale(self) -> Float[Array, ""]:
        return jnp.max(self.bound)

    @compiled
    def residuals(self, a: Float[Array, " n"]) -> Float[Array, " m"]:
        return jnp.concatenate([jnp.atleast_1d(self.load(a) - self.budget), jnp.abs(a) - self.bound])

    def residual_names(self) -> tuple[str, ...]:
        return (self.residual_name, *entries("|a| - bound", self.dim))

    def slopes(self) -> Float[Array, " m"]:
        return jnp.concatenate([jnp.atleast_1d(jnp.linalg.norm(self.weights)), jnp.ones_like(self.weights)])

    @compiled
    def exit_distance(self, origin: Float[Array, " n"], direction: Float[Array, " n"]) -> Float[Array, ""]:
        moving = direction != 0
        kinks = jnp.where(moving, -origin / jnp.where(moving, direction, 1.0), 0.0)
        budget_ends = convex_exit(
            lambda t: self.load(origin + t * direction),
            kinks,
            -self.loads(-direction),
            self.loads(direction),
            self.load(jnp.where(moving, 0.0, origin)),
            self.budget,
        )
        return jnp.minimum(budget_ends, box_exit(origin, direction, -self.bound, self.bound))

    @drawn
    def sample(self, key: PRNGKeyArray) -> Float[Array, " n"]:
        return hit_and_run(self, key)

    @compiled
    def reach(self) -> Float[Array, " n"]:
        """How far each coordinate alone can go where it draws on the budget."""
        weight = jnp.abs(self.weights)
        spent = weight * self.bound > self.budget
        return jnp.where(spent, self.budget / jnp.where(weight > 0, weight, 1.0), self.bound)

    def clipped(self, low: Bound, high: Bound) -> "BudgetBox | None":
        return narrower(self, low, high)
