"""The box around a set that rows and cones describe: stated bounds, and bounds that follow for all parameters."""

from collections.abc import Callable, Sequence

import jax.numpy as jnp
import numpy as np
from jax.lax import stop_gradient
from jaxtyping import Array, Float
from numpy.typing import NDArray

from feasible.sets.cvxpy.elimination import NotRepresentableError, constant, sign

Row = NDArray[np.float64]
# Evaluates affine functions of the parameters.
Evaluation = Callable[[NDArray[np.float64]], Array]
# A bound's place: the action, and 1 for its upper or -1 for its lower bound.
Place = tuple[int, int]
Values = dict[Place, Float[Array, ""]]
# Derived bounds exclude nothing, so they are put a tenth of the width off: one that touches the set would add rows to
# its corners.
LOOSENED = 0.1


class Bounds:
    """low <= a <= high from rows g . a + h >= 0 that name one action, and, where there is none, from the others.

    A row bounds an action by the bounds of the others in it, an equality on both sides; a cone with a constant head and
    constant rows of full rank bounds all actions in it. Which row bounds which action is decided once, so its
    coefficients must have signs that hold for all parameters.
    """

    def __init__(
        self,
        dim: int,
        linear: Sequence[Row],
        equal: Sequence[Row],
        cones: Sequence[NDArray[np.float64]],
        signs: NDArray[np.int8],
    ):
        self.dim = dim
        self.stated: dict[Place, list[Row]] = {}
        self.rest = [row for row in linear if not self._state(row)]
        self._derived: dict[Place, Callable[[Evaluation, Values], Array]] = {}
        for rows in cones:
            self._derive_from_cone(rows)
        coupling = [*self.rest, *equal, *(-row for row in equal)]
        while any(self._derive_from_row(row, entry, signs) for row in coupling for entry in range(dim)):
            pass
        for entry in range(dim):
            for side, word, relation in ((1, "upper", "<="), (-1, "lower", ">=")):
                if not self._known((entry, side)):
                    raise NotRepresentableError(
                        f"entry {entry} of the variable has no {word} bound that holds for all parameters; "
                        f"state one, as variable[{entry}] {relation} a number"
                    )

    @property
    def symmetric(self) -> bool:
        """Whether every bound is stated, once a side, as -high <= a <= high."""
        return not self._derived and all(
            len(self.stated[i, 1]) == len(self.stated[i, -1]) == 1
            and np.array_equal(self.stated[i, 1][0], -self.stated[i, -1][0])
            for i in range(self.dim)
        )

    def evaluated(self, at: Evaluation) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
        """low and high."""
        values = {
            (entry, side): side * jnp.min(side * at(np.stack(rows))) for (entry, side), rows in self.stated.items()
        }
        for place, derive in self._derived.items():
            values[place] = stop_gradient(derive(at, values))
        low, high = (jnp.stack([values[entry, side] for entry in range(self.dim)]) for side in (-1, 1))
        room = stop_gradient(LOOSENED * (high - low))
        below, above = (np.array([(i, side) in self._derived for i in range(self.dim)]) for side in (-1, 1))
        return jnp.where(below, low - room, low), jnp.where(above, high + room, high)

    def _known(self, place: Place) -> bool:
        return place in self.stated or place in self._derived

    def _state(self, row: Row) -> bool:
        """Keep the row as a bound if it is one: g a_i + h >= 0 is a_i >= -h/g for g > 0 and a_i <= -h/g for g < 0."""
        entries = np.flatnonzero(np.any(row[:-1], axis=1))
        if len(entries) != 1 or not constant(row[entries[0]]):
            return False
        coefficient = row[entries[0], -1]
        self.stated.setdefault((int(entries[0]), 1 if coefficient < 0 else -1), []).append(-row[-1] / coefficient)
        return True

    def _derive_from_row(self, row: Row, entry: int, signs: NDArray[np.int8]) -> bool:
        """A bound of an action without one, from the bounds of the others in the row; whether there is one."""
        coefficient = row[entry]
        if not constant(coefficient) or not np.any(coefficient):
            return False
        place = entry, 1 if coefficient[-1] < 0 else -1
        others = [(j, sign(row[j], signs)) for j in range(self.dim) if j != entry and np.any(row[j])]
        if self._known(place) or any(way == 2 or not self._known((j, way)) for j, way in others):
            return False

        def derive(at: Evaluation, values: Values) -> Array:
            reach = at(row[-1])
            for j, way in others:
                reach = reach + at(row[j]) * values[j, way]
            return -reach / float(coefficient[-1])

        self._derived[place] = derive
        return True

    def _derive_from_cone(self, rows: NDArray[np.float64]) -> None:
        """||F a + f|| <= d gives |a + F^+ f|_i <= ||row i of F^+|| d for the actions in it, if F has full rank."""
        F = rows[1:, :-1]
        entries = np.flatnonzero(np.any(F, axis=(0, 2))).tolist()
        if np.any(rows[0, :-1]) or not constant(F) or not entries:
            return
        matrix = F[:, entries, -1]
        if np.linalg.matrix_rank(matrix) < len(entries):
            return
        for entry, solution in zip(entries, np.linalg.pinv(matrix), strict=True):
            middle = -solution @ rows[1:, -1]
            for side in (-1, 1):
                if not self._known((entry, side)):
                    furthest = middle + side * float(np.linalg.norm(solution)) * rows[0, -1]
                    self._derived[entry, side] = lambda at, values, furthest=furthest: at(furthest)
