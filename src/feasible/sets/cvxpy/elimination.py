"""Conic constraints whose rows are affine in parameters, and the exact elimination of their auxiliary variables.

A constraint is {(x, y) : rows (x, y, 1) in a cone}, where every entry of the rows is an affine function of parameters.
A modelling language adds variables y for parts of an expression (t >= ||x||, t >= |x|); the set of actions is the
projection {x : some y exists}. It is again one of linear rows and second-order cones where each y can be eliminated by

- an equality with a constant coefficient: substitution;
- Fourier-Motzkin elimination: where raising y keeps some constraints satisfied (its lower bounds: linear, or cones that
  hold y's column) and lowering it the others (its upper bounds, linear), every pair of both is combined;
- sums of squares: t_i >= ||w_i||^2 under one row on the sum of the t_i are one rotated cone on all w_i together.

All of it is done once, on the affine functions themselves in float64, so that nothing is left to do for new values.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

MAX_ROWS = 512
Kind = Literal["equal", "linear", "cone"]
# Affine functions of the parameters: one coefficient a parameter, then the constant.
Affine = NDArray[np.float64]


class NotRepresentableError(ValueError):
    """A constraint is none of linear rows and second-order cones on the action alone."""


@dataclass(frozen=True, eq=False)
class Block:
    """rows (x, y, 1) = 0, >= 0, or in the second-order cone; rows[i, j] is an affine function of the parameters."""

    kind: Kind
    rows: NDArray[np.float64]

    def touches(self, column: int) -> bool:
        return bool(np.any(self.rows[:, column]))


def constant(affine: Affine) -> bool:
    """Whether no parameter has a part in it."""
    return not np.any(affine[..., :-1])


def product(scalar: Affine, rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """The product of affine functions, where it is affine: one of the factors must be constant."""
    if constant(scalar):
        return scalar[-1] * rows
    if constant(rows):
        return rows[..., -1:] * scalar
    raise NotRepresentableError("parameters are multiplied with each other once its auxiliary variables are eliminated")


def sign(affine: Affine, signs: NDArray[np.int8]) -> int:
    """1, -1 or 0 for an affine function that is >= 0, <= 0 or zero for all parameters; 2 where that is not known.

    `signs` are those of the parameters (0 for unknown), the constant's last, which is 1.
    """
    ways = set(np.sign(affine[affine != 0] * signs[affine != 0]).astype(int).tolist())
    if not ways:
        return 0
    return ways.pop() if len(ways) == 1 and 0 not in ways else 2


def eliminate(blocks: Sequence[Block], actions: int, signs: NDArray[np.int8]) -> list[Block]:
    """The blocks without their auxiliary variables, which are the columns between the actions' and the last."""
    auxiliary = _auxiliary(blocks, actions)
    blocks = _sums_of_squares(blocks, auxiliary)
    while auxiliary:
        cheapest, column = min((_cost(blocks, column, signs), column) for column in auxiliary)
        if not np.isfinite(cheapest):
            raise NotRepresentableError(
                "an auxiliary variable of it cannot be eliminated exactly (as of nested norms, or a sum of norms)"
            )
        blocks = _without(blocks, column, signs)
        if sum(len(block.rows) for block in blocks) > MAX_ROWS:
            raise NotRepresentableError(
                f"it takes more than {MAX_ROWS} rows once its auxiliary variables are eliminated"
            )
        auxiliary.remove(column)
    return _trimmed(blocks, actions)


def substitute(blocks: Sequence[Block], actions: int) -> list[Block]:
    """The blocks without those auxiliary variables that an equality defines."""
    for column in _auxiliary(blocks, actions):
        definition = _definition(blocks, column)
        if definition is not None:
            blocks = _substituted(blocks, column, *definition)
    return _trimmed(blocks, actions)


def _auxiliary(blocks: Sequence[Block], actions: int) -> list[int]:
    return list(range(actions, blocks[0].rows.shape[1] - 1)) if blocks else []


def _trimmed(blocks: Sequence[Block], actions: int) -> list[Block]:
    """The blocks without columns of auxiliary variables that are in none of them."""
    unused = [column for column in _auxiliary(blocks, actions) if not any(block.touches(column) for block in blocks)]
    return [Block(block.kind, np.delete(block.rows, unused, axis=1)) for block in blocks]


def _cost(blocks: Sequence[Block], column: int, signs: NDArray[np.int8]) -> float:
    """Blocks that eliminating the variable makes of those that it touches; infinite where it cannot be."""
    if _definition(blocks, column) is not None:
        return 0.0
    lower, upper = _bounds(blocks, column, signs)
    others = sum(block.touches(column) for block in blocks) - len(lower) - len(upper)
    if others:
        return np.inf
    if not lower or not upper:
        return 0.0 if all(_always_met(block, column) for block in (*lower, *upper)) else np.inf
    for side in (lower, upper):
        # The multipliers are the coefficients of one side: linear rows, and none that may vanish with the other's.
        if all(block.kind == "linear" for block in side) and any(
            all(constant(row) for block in one for row in block.rows[:, column]) for one in (lower, upper)
        ):
            return float(len(lower) * len(upper) - len(lower) - len(upper))
    return np.inf


def _without(blocks: Sequence[Block], column: int, signs: NDArray[np.int8]) -> list[Block]:
    definition = _definition(blocks, column)
    if definition is not None:
        return _substituted(blocks, column, *definition)
    lower, upper = _bounds(blocks, column, signs)
    untouched = [block for block in blocks if not block.touches(column)]
    if not lower or not upper:
        return untouched
    linear, other = (upper, lower) if all(block.kind == "linear" for block in upper) else (lower, upper)
    return untouched + [_combined(one, two, column) for one in linear for two in other]


def _definition(blocks: Sequence[Block], column: int) -> tuple[Block, int] | None:
    """An equality that defines the variable, with a constant coefficient, and which row it is."""
    for block in blocks:
        if block.kind == "equal":
            for row, coefficients in enumerate(block.rows[:, column]):
                if constant(coefficients) and coefficients[-1] != 0:
                    return block, row
    return None


def _substituted(blocks: Sequence[Block], column: int, definition: Block, row: int) -> list[Block]:
    """The blocks with the variable replaced by what the row of the definition says it is."""
    equality = definition.rows[row]
    remaining = Block("equal", np.delete(definition.rows, row, axis=0))
    kept = [block for block in blocks if block is not definition] + ([remaining] if len(remaining.rows) else [])
    return [
        Block(
            block.kind,
            np.stack([line - product(line[column] / equality[column, -1], equality) for line in block.rows]),
        )
        for block in kept
    ]


def _bounds(blocks: Sequence[Block], column: int, signs: NDArray[np.int8]) -> tuple[list[Block], list[Block]]:
    """The inequalities that raising the variable, and those that lowering it, keeps satisfied."""
    lower: list[Block] = []
    upper: list[Block] = []
    for block in blocks:
        if not block.touches(column):
            continue
        way = sign(block.rows[0, column], signs) if block.kind == "linear" else _way_of_cone(block, column)
        if way in (1, -1):
            (lower if way == 1 else upper).append(block)
    return lower, upper


def _way_of_cone(block: Block, column: int) -> int:
    """1 or -1 where the variable's column, or its opposite, is itself in the cone: 2 for neither, or not known."""
    if block.kind != "cone" or not constant(block.rows[:, column]):
        return 2
    head, *body = block.rows[:, column, -1].tolist()
    if np.linalg.norm(body) <= abs(head) * (1 + 1e-12):
        return 1 if head > 0 else -1
    return 2


def _always_met(block: Block, column: int) -> bool:
    """Whether the variable, free to go as far as needed, meets the block for every action."""
    if not constant(block.rows[:, column]):
        return False
    head, *body = block.rows[:, column, -1].tolist()
    return bool(np.linalg.norm(body) < abs(head) * (1 - 1e-12))


def _combined(linear: Block, other: Block, column: int) -> Block:
    """|u| other + (column of other) linear, in which the variable is gone: u is its coefficient in the linear row."""
    row = linear.rows[0]
    coefficient = row[column]
    scale = -coefficient if _leading(coefficient) < 0 else coefficient
    way = 1.0 if _leading(coefficient) < 0 else -1.0
    rows = product(scale, other.rows) + np.stack([way * product(entry, row) for entry in other.rows[:, column]])
    rows[:, column] = 0.0
    return Block(other.kind, rows)


def _leading(affine: Affine) -> float:
    return float(affine[np.flatnonzero(affine)[0]])


@dataclass(frozen=True, eq=False)
class _Square:
    """weight (t + shift) >= ||body||^2, from a cone (p + a t, q - a t, body) with constants p and q."""

    block: Block
    column: int
    weight: float
    shift: float
    body: NDArray[np.float64]


def _sums_of_squares(blocks: Sequence[Block], auxiliary: Sequence[int]) -> list[Block]:
    """Rows on a sum of squares, each with a variable of its own, as one rotated cone."""
    result = list(blocks)
    squares = {
        square.column: square
        for block in blocks
        for square in [_square(block, blocks, auxiliary)]
        if square is not None
    }
    for row in blocks:
        if row.kind != "linear":
            continue
        columns = [c for c in squares if row.touches(c)]
        coefficients = row.rows[0, columns]
        if len(columns) < 2 or not constant(coefficients) or np.any(coefficients[:, -1] >= 0):
            continue
        rest, bodies = row.rows[0].copy(), []
        for column, coefficient in zip(columns, -coefficients[:, -1], strict=True):
            square = squares[column]
            rest[column] = 0.0
            rest[-1, -1] += coefficient * square.shift
            bodies.append(2.0 * np.sqrt(coefficient / square.weight) * square.body)
        one = np.zeros_like(rest)
        one[-1, -1] = 1.0
        gone = [row, *(squares[column].block for column in columns)]
        result = [block for block in result if all(block is not other for other in gone)]
        result.append(Block("cone", np.concatenate([[one + rest], [one - rest], *bodies])))
    return result


def _square(block: Block, blocks: Sequence[Block], auxiliary: Sequence[int]) -> _Square | None:
    """The block as t >= ||body||^2 for a variable t that only it and one linear row know."""
    own = [c for c in auxiliary if block.touches(c)]
    if block.kind != "cone" or len(own) != 1:
        return None
    (column,) = own
    others = [other for other in blocks if other is not block and other.touches(column)]
    touched = np.flatnonzero(np.any(block.rows[:, column] != 0, axis=1))
    pair = block.rows[touched]
    rest = np.delete(pair, column, axis=1)
    if len(others) != 1 or touched.tolist()[:1] != [0] or len(touched) != 2:
        return None
    if np.any(rest[:, :-1]) or not constant(rest) or not constant(pair[:, column]):
        return None
    (a, b), (p, q) = pair[:, column, -1], pair[:, -1, -1]
    if abs(abs(a) - abs(b)) > 1e-12 * abs(a) or a <= 0:
        return None
    q = -q if b > 0 else q  # the second row's sign is free: q - a t
    if p + q <= 0:
        return None
    return _Square(block, column, 2.0 * a * (p + q), (p - q) / (2.0 * a), np.delete(block.rows, touched, axis=0))
