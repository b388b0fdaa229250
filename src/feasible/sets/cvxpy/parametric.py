"""Sets as functions of parameters: affine rows and cones on the action, assembled into the set that answers fastest."""

from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import NDArray

from feasible.errors import EmptySetError
from feasible.sets.allocation import Allocation
from feasible.sets.arguments import Numbers, floats, known, require
from feasible.sets.ball import Ball
from feasible.sets.ball_box import BallBox
from feasible.sets.base import ActionSet
from feasible.sets.box import Box
from feasible.sets.cones import Cone, ConePolytope
from feasible.sets.cvxpy.bounds import Bounds, Evaluation
from feasible.sets.cvxpy.budgets import Budget
from feasible.sets.cvxpy.elimination import Block, constant
from feasible.sets.ellipsoid import EllipsoidBox
from feasible.sets.half_space import HalfSpaceBox
from feasible.sets.polytope import Polytope
from feasible.sets.positive_power import PositivePowerBox
from feasible.sets.weighted_l1 import WeightedL1Box
from feasible.sets.weighted_l1_ellipsoid import WeightedL1EllipsoidBox


@dataclass(frozen=True)
class Symbol:
    """A parameter: its name, its shape, and the sign that its values are known to have (0 for any)."""

    name: str
    shape: tuple[int, ...]
    sign: int

    @property
    def size(self) -> int:
        return int(np.prod(self.shape))


class ParametricSet:
    """A function from parameter values to the set with them: call it inside a constraint, or with numbers.

    The values come in the order of the parameters that it was made of and may be traced, so that a set can depend on an
    observation. One matrix product gives all rows; new values compile nothing. The set is one in closed form where the
    constraints say one: a `Box`, a `HalfSpaceBox` (one row), an `Allocation` (one sum), a `Ball` or `BallBox`, an
    `EllipsoidBox` (a sum of squares of single entries), a `WeightedL1Box` or `PositivePowerBox` (met with a box or
    polytope where there is more), a `WeightedL1EllipsoidBox`; otherwise a `Polytope` or a `ConePolytope`. Which of them
    is decided once, by the constraints and not by the values.
    """

    def __init__(self, dim: int, symbols: Sequence[Symbol], blocks: Sequence[Block], budget: Budget | None):
        self.dim, self.symbols, self._budget = dim, tuple(symbols), budget
        self._cones = [_Cone(block.rows) for block in blocks if block.kind == "cone"]
        linear = [block.rows[0] for block in blocks if block.kind == "linear"]
        equal = [row for block in blocks if block.kind == "equal" for row in block.rows]
        self._bounds = Bounds(dim, linear, equal, [cone.rows for cone in self._cones], self._signs())
        width = sum(symbol.size for symbol in symbols) + 1
        self._rows = np.reshape(self._bounds.rest, (-1, dim + 1, width))
        self._equal = np.reshape(equal, (-1, dim + 1, width))
        # Compiled as a whole, so that new values compile nothing; a fixed polytope is worth knowing its vertices.
        self._build = jax.jit(self._built, inline=True) if symbols else self._built

    def __call__(self, *values: Numbers) -> ActionSet:
        """The set with these values of the parameters; where they are known, one without any action is an error."""
        vector = self._vector(values)
        region = self._build(vector)
        if known(vector):
            inside = region.contains(region.centre())
            require("from_cvxpy", inside, "these values of the parameters leave no action", EmptySetError)
        return region

    def _built(self, vector: Float[Array, " p"]) -> ActionSet:
        numbers = self._evaluated(vector)
        rows, equal, cones = len(self._rows), len(self._equal), numbers["cones"]
        A, b, low, high = (numbers[name] for name in ("A", "b", "low", "high"))
        if not (rows or equal or cones):
            return self._with_budget(Box(low, high), numbers)
        if (rows, equal, len(cones)) == (1, 0, 0) and self._budget is None:
            return HalfSpaceBox(A[0], b[0], low, high)
        if (rows, equal, len(cones)) == (0, 1, 0) and self._budget is None and self._sums:
            return Allocation(numbers["b_eq"][0] / numbers["A_eq"][0, 0], low, high)
        if (rows, equal, len(cones)) == (0, 0, 1):
            curved = self._within_cone(numbers)
            if curved is not None:
                return curved
        polytope = Polytope(A, b, low, high, numbers["A_eq"], numbers["b_eq"])
        if cones:
            return ConePolytope(polytope, [Cone(*cone) for cone in cones])
        return self._with_budget(polytope, numbers)

    @property
    def combines(self) -> bool:
        """Whether its budget and its cone are one set in closed form."""
        alone = not (len(self._rows) or len(self._equal)) and len(self._cones) == 1
        symmetric = self._budget is not None and self._budget.both_sides and self._bounds.symmetric
        return alone and symmetric and self._cones[0].diagonal

    @property
    def _sums(self) -> bool:
        """Whether the equality is on the sum of all entries, for all parameters."""
        row = self._equal[0, :-1]
        return constant(row) and bool(row[0, -1] != 0) and np.array_equal(row, np.tile(row[:1], (self.dim, 1)))

    def _within_cone(self, numbers: dict[str, Array]) -> ActionSet | None:
        """Bounds and one cone, in closed form where they have one."""
        low, high, (F, f, _, d) = numbers["low"], numbers["high"], numbers["cones"][0]
        cone = self._cones[0]
        if cone.round and self._budget is None:
            square = jnp.sum(F[:, 0] ** 2)
            middle, radius = -(f @ F) / square, d / jnp.sqrt(square)
            return BallBox(middle, radius, low, high) if self._bounds.stated else Ball(middle, radius)
        if not (cone.diagonal and self._bounds.symmetric):
            return None
        diagonal, level = jnp.sum(F**2, axis=0), d * jnp.abs(d)  # a negative level leaves no point
        if self._budget is None:
            return EllipsoidBox(diagonal, level, high)
        return WeightedL1EllipsoidBox(numbers["weights"], numbers["budget"], diagonal, level, high)

    def __repr__(self) -> str:
        return f"ParametricSet(dim={self.dim}, parameters=({', '.join(symbol.name for symbol in self.symbols)}))"

    def _with_budget(self, region: Box | Polytope, numbers: dict[str, Array]) -> ActionSet:
        if self._budget is None:
            return region
        kind = WeightedL1Box if self._budget.both_sides else PositivePowerBox
        bound = jnp.maximum(jnp.abs(region.low), jnp.abs(region.high))
        budget = kind(numbers["weights"], numbers["budget"], bound)
        return budget if isinstance(region, Box) and self._bounds.symmetric else budget & region

    def _signs(self) -> NDArray[np.int8]:
        """The sign of every entry of the parameters, and the constant's."""
        parts = [np.full(symbol.size, symbol.sign, np.int8) for symbol in self.symbols]
        return np.concatenate([*parts, np.ones(1, np.int8)])

    def _vector(self, values: Sequence[Numbers]) -> Float[Array, " p"]:
        """The values in one vector, column by column as CVXPY counts them, with the constant 1 at the end."""
        names = ", ".join(symbol.name for symbol in self.symbols) or "none"
        if len(values) != len(self.symbols):
            raise ValueError(
                f"from_cvxpy: the set takes a value for each of its parameters ({names}), not {len(values)}."
            )
        given = {symbol.name: value for symbol, value in zip(self.symbols, values, strict=True)}
        arrays = floats("from_cvxpy", **given)
        for symbol, array in zip(self.symbols, arrays, strict=True):
            if array.shape != symbol.shape:
                raise ValueError(
                    f"from_cvxpy: {symbol.name} must have shape {symbol.shape}, but has shape {array.shape}; "
                    "batches go through jax.vmap."
                )
            if symbol.sign:
                side = "negative" if symbol.sign > 0 else "positive"
                require("from_cvxpy", symbol.sign * array >= 0, f"{symbol.name} must not be {side} in any entry")
        one = jnp.ones(1, arrays[0].dtype if arrays else jax.dtypes.canonicalize_dtype(np.float64))
        return jnp.concatenate([*(array.ravel(order="F") for array in arrays), one])

    def _evaluated(self, parameters: Float[Array, " p"]) -> dict[str, Array]:
        """All numbers of the set: rows g . a + h >= 0 become A a <= b with A = -g and b = h."""

        def at(affine: NDArray[np.float64]) -> Array:
            return jnp.asarray(affine, parameters.dtype) @ parameters

        low, high = self._bounds.evaluated(at)
        rows, equal = at(self._rows), at(self._equal)
        numbers = {"low": low, "high": high, "A": -rows[:, :-1], "b": rows[:, -1]}
        numbers |= {"A_eq": -equal[:, :-1], "b_eq": equal[:, -1]}
        if self._budget is not None:
            numbers |= {"weights": at(self._budget.weights), "budget": at(self._budget.budget)}
        return numbers | {"cones": [cone.evaluated(at) for cone in self._cones]}  # pyright: ignore[reportReturnType]


class _Cone:
    """||F a + f|| <= c . a + d, with all of F, f, c and d affine in the parameters.

    Where the head is c = 0, rows of F that are zero go to the other side: ||(r, w)|| <= d is ||w|| <= sqrt(d^2 - r^2).
    A level that is tiny beside 1 survives: what CVXPY writes as ||(1 - level, 2 a)|| <= 1 + level becomes
    ||2 a|| <= sqrt(2 level * 2), with sum and difference taken before any value is rounded. Where d < |r|, there is no
    point, and the radius is negative.
    """

    def __init__(self, rows: NDArray[np.float64]):
        self.rows = rows
        self._level = not np.any(rows[0, :-1])
        still = ~np.any(rows[1:, :-1], axis=(1, 2)) if self._level else np.zeros(len(rows) - 1, bool)
        self._body, self._still = rows[1:][~still], rows[1:][still]

    @property
    def round(self) -> bool:
        """Whether it is a ball for all parameters: constant rows that are orthogonal and alike, as many as actions."""
        F = self._body[:, :-1]
        if not self._level or not constant(F) or F.shape[0] != F.shape[1]:
            return False
        gram = F[..., -1].T @ F[..., -1]
        return bool(np.allclose(gram, gram[0, 0] * np.eye(len(gram)), rtol=0, atol=1e-12 * gram[0, 0]))

    @property
    def diagonal(self) -> bool:
        """Whether it limits sum_i q_i a_i^2 for all parameters: rows of one action each, around zero."""
        one_each = np.all(np.sum(np.any(self._body[:, :-1], axis=2), axis=1) == 1)
        return self._level and bool(one_each) and not np.any(self._body[:, -1])

    def evaluated(self, at: Evaluation) -> tuple[Array, Array, Array, Array]:
        body, head = at(self._body), at(self.rows[0])
        d = head[-1]
        if len(self._still):
            first = self._still[0, -1]
            square = at(self.rows[0, -1] - first) * at(self.rows[0, -1] + first)
            square = square - jnp.sum(at(self._still[1:, -1]) ** 2)
            some = square != 0
            root = jnp.sqrt(jnp.where(some, jnp.abs(square), 1.0))
            d = jnp.where(some, jnp.where(d < 0, -1.0, jnp.sign(square)) * root, 0.0)
        return body[:, :-1], body[:, -1], head[:-1], d
