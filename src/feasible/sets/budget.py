"""A budget in a box, of which coordinates draw by their load: what such sets have in common."""

from abc import abstractmethod
from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from feasible.errors import EmptySetError
from feasible.sets.arguments import Numbers, floats, read, require, scalar, vectors
from feasible.sets.base import ActionSet, compiled, drawn, entries
from feasible.sets.box import Bound, box_exit, narrower
from feasible.sets.sampling import hit_and_run
from feasible.solve.breakpoints import OnBudget, nearest_on_budget_in_a_loop
from feasible.solve.convex_load import convex_chord, convex_exit
from feasible.solve.splitting import Projection


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
        require(owner, read(self.bound) >= 0, "bound must not be negative in any entry", EmptySetError)
        require(owner, read(self.budget) >= 0, "budget must not be negative", EmptySetError)

    @abstractmethod
    def loads(self, a: Float[Array, " n"]) -> Float[Array, " n"]:
        """What each coordinate of an action draws from the budget."""

    @abstractmethod
    def nearest(self, z: Float[Array, " n"], on_budget: OnBudget) -> Float[Array, " n"]:
        """The projection, by one of the layouts of its kernel."""

    @property
    def pieces(self) -> tuple[Projection, ...]:
        return (lambda z: self.nearest(z, nearest_on_budget_in_a_loop),)

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
        pieces = self._pieces(origin, direction)
        budget_ends = convex_exit(lambda t: self.load(origin + t * direction), *pieces, self.budget)
        return jnp.minimum(budget_ends, box_exit(origin, direction, -self.bound, self.bound))

    @drawn
    def sample(self, key: PRNGKeyArray) -> Float[Array, " n"]:
        return hit_and_run(self, key, self._chord)

    @compiled
    def reach(self) -> Float[Array, " n"]:
        """How far each coordinate alone can go where it draws on the budget."""
        weight = jnp.abs(self.weights)
        spent = weight * self.bound > self.budget
        return jnp.where(spent, self.budget / jnp.where(weight > 0, weight, 1.0), self.bound)

    def clipped(self, low: Bound, high: Bound) -> "BudgetBox | None":
        return narrower(self, low, high)

    def _pieces(self, origin: Float[Array, " n"], direction: Float[Array, " n"]) -> tuple[Array, Array, Array, Array]:
        """The load along a line: each coordinate's kink, its slopes before and after, and what does not change."""
        moving = direction != 0
        kinks = jnp.where(moving, -origin / jnp.where(moving, direction, 1.0), 0.0)
        return kinks, -self.loads(-direction), self.loads(direction), self.load(jnp.where(moving, 0.0, origin))

    def _chord(
        self, origin: Float[Array, " n"], direction: Float[Array, " n"]
    ) -> tuple[Float[Array, ""], Float[Array, ""]]:
        back, ahead = convex_chord(*self._pieces(origin, direction), self.budget)
        behind, before = (box_exit(origin, way, -self.bound, self.bound) for way in (-direction, direction))
        return jnp.minimum(back, behind), jnp.minimum(ahead, before)
