"""Away steps of Frank-Wolfe: a point kept as a mixture of points of the set, so that a bad one of them can be left.

    point = sum_k weights_k corners_k        a step t along `Move.towards` goes to weights + t (Move.weights - weights)

Towards a corner c the mixture's target is c alone, and t at most 1. Away from a corner a it is 2 weights - a, and t at
most weights_a / (1 - weights_a), where nothing of a is left. Points stay in the set either way. A corner that is found
again is kept twice, each with a weight of its own: an away step leaves one of them at a time.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

Point = Float[Array, " n"]
LEAST = 1e-6  # a smaller weight is what rounding leaves of a corner that is gone


class Move(NamedTuple):
    """A direction in which a mixture may go."""

    towards: Point
    longest: Float[Array, ""]
    weights: Float[Array, " k"]


class Mixture(NamedTuple):
    """A point as a convex combination of some of `corners`: those whose weight is not zero."""

    corners: Float[Array, "k n"]
    weights: Float[Array, " k"]

    @classmethod
    def of(cls, point: Point, room: int) -> "Mixture":
        """The point itself, with room for so many corners more."""
        corners = jnp.zeros((room + 1, point.shape[0]), point.dtype).at[0].set(point)
        return cls(corners, _only(0, room + 1, point.dtype))

    def adding(self, index: int, corner: Point, point: Point) -> tuple["Mixture", Move]:
        """With that corner known, of weight zero so far, and the move towards it."""
        known = Mixture(self.corners.at[index].set(corner), self.weights)
        one = jnp.ones((), corner.dtype)
        return known, Move(corner - point, one, _only(index, len(self.weights), corner.dtype))

    def away(self, gradient: Point, point: Point) -> Move:
        """The move away from the corner that is worst to first order."""
        worst = jnp.argmin(jnp.where(self.weights > 0, self.corners @ gradient, jnp.inf))
        held = self.weights[worst]
        # A mixture of the worst corner alone cannot leave it: the direction is zero, and so must the step be.
        longest = jnp.where(held < 1, held / jnp.where(held < 1, 1 - held, 1), 0)
        weights = 2 * self.weights - _only(worst, len(self.weights), self.weights.dtype)
        return Move(point - self.corners[worst], longest, weights)

    def moved(self, move: Move, step: Float[Array, ""]) -> "Mixture":
        weights = self.weights + step * (move.weights - self.weights)
        weights = jnp.where(weights > LEAST, weights, 0)
        return Mixture(self.corners, weights / jnp.sum(weights))


def better(gradient: Point, one: Move, other: Move) -> Move:
    """The move along which the gradient rises more."""
    other_rises = jnp.vdot(gradient, other.towards) > jnp.vdot(gradient, one.towards)
    return Move(*(jnp.where(other_rises, theirs, ours) for ours, theirs in zip(one, other, strict=True)))


def _only(index: int | Int[Array, ""], size: int, dtype: jnp.dtype) -> Float[Array, " k"]:
    return (jnp.arange(size) == index).astype(dtype)
