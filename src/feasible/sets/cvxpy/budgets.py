"""Budgets sum_i |w_i a_i| <= b and sum_i max(w_i a_i, 0) <= b, recognised in their canonical rows.

Written out without auxiliary variables they take 2^n rows; as they are, a projection is O(n^2) at most.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from feasible.sets.cvxpy.elimination import Block, NotRepresentableError, constant, product, sign


@dataclass(frozen=True, eq=False)
class Budget:
    """The weights and the budget as affine functions of the parameters; |.| where both sides count, else max(., 0)."""

    weights: NDArray[np.float64]
    budget: NDArray[np.float64]
    both_sides: bool


def find_budget(blocks: Sequence[Block], actions: int, signs: NDArray[np.int8]) -> Budget | None:
    """The budget that the blocks of one constraint say, if they say nothing else.

    Every auxiliary variable t must be in one row on their sum, in which no action is, and be the larger of w a_i and
    -w a_i, or of w a_i and 0, for an action i of its own.
    """
    auxiliary = range(actions, blocks[0].rows.shape[1] - 1)
    rows = [block.rows[0] for block in blocks]
    totals = [row for row in rows if all(sign(row[c], signs) == -1 for c in auxiliary)]
    if not auxiliary or len(totals) != 1 or any(block.kind != "linear" for block in blocks):
        return None
    (total,) = totals
    if np.any(total[:actions]) or len(rows) != 1 + 2 * len(auxiliary):
        return None
    weights = np.zeros((actions, rows[0].shape[-1]))
    sides = set()
    for column in auxiliary:
        above = [row for row in rows if row is not total and np.any(row[column])]
        found = _larger_of(above, column, actions)
        if found is None or np.any(weights[found[0]]):
            return None
        entry, weight, both_sides = found
        try:
            weights[entry] = product(-total[column], weight)
        except NotRepresentableError:
            return None
        sides.add(both_sides)
    return Budget(weights, total[-1], sides.pop()) if len(sides) == 1 else None


def _larger_of(
    rows: Sequence[NDArray[np.float64]], column: int, actions: int
) -> tuple[int, NDArray[np.float64], bool] | None:
    """(i, w, both sides) where the rows say t >= w a_i and t >= -w a_i, or t >= w a_i and t >= 0."""
    if len(rows) != 2 or not all(constant(row[column]) and row[column, -1] > 0 for row in rows):
        return None
    over = [-row / row[column, -1] for row in rows]  # t >= over . (a, 1)
    if any(np.any(np.delete(row, [*range(actions), column], axis=0)) for row in over):
        return None
    first, second = over[0][:actions], over[1][:actions]
    moving = np.flatnonzero(np.any((first != 0) | (second != 0), axis=1))
    if len(moving) != 1:
        return None
    (entry,) = moving.tolist()
    one, other = first[entry], second[entry]
    if np.array_equal(one, -other):
        return entry, one, True
    if not np.any(one) or not np.any(other):
        return entry, one + other, False
    return None
