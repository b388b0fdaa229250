"""The linearly independent rows that an active-set method holds with equality, updated row by row.

For the held rows N (each a row of G) two things are kept: the pseudo-inverse, as one vector q_i a row with
q_i . g_j = [i = j] in the span of the held rows (zero for rows not held), and the orthogonal projector P on their
null space. Taking a row in or out is a rank-one change of both: O(rows * n), no factorisation.
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int


class WorkingSet(eqx.Module):
    held: Bool[Array, " m"]
    inverse: Float[Array, "m n"]
    null: Float[Array, "n n"]

    @staticmethod
    def empty(rows: Float[Array, "m n"]) -> "WorkingSet":
        m, n = rows.shape
        return WorkingSet(jnp.zeros(m, bool), jnp.zeros_like(rows), jnp.eye(n, dtype=rows.dtype))

    def add(self, row: Float[Array, " n"], index: Int[Array, ""], wanted: Bool[Array, ""]) -> "WorkingSet":
        """Take in a row that is independent of the held ones, where `wanted`.

        It is projected twice: of a row that nearly depends on the held ones little is left after once, and what
        rounding adds to it in their span would stay in both matrices, divided by that little.
        """
        normal = self.null @ (self.null @ row)
        square = jnp.vdot(normal, normal)
        wanted = wanted & (square > 0)
        dual = jnp.where(wanted, normal / jnp.where(wanted, square, 1.0), 0.0)
        chosen = jnp.arange(self.held.shape[0]) == index
        inverse = self.inverse - jnp.outer(self.inverse @ row, dual)
        return WorkingSet(
            self.held | (chosen & wanted),
            jnp.where((chosen & wanted)[:, None], dual, inverse),
            self.null - jnp.outer(normal, dual),
        )

    def drop(self, rows: Float[Array, "m n"], index: Int[Array, ""], wanted: Bool[Array, ""]) -> "WorkingSet":
        """Let go of a held row, where `wanted`.

        The direction that is free again is put right by the rows that stay and by the null space: its rounding grows
        with the pseudo-inverse, and would lead off the held rows from then on.
        """
        leaving = self.inverse[index]
        square = jnp.vdot(leaving, leaving)
        wanted = wanted & (square > 0)
        heading = jnp.where(wanted, leaving / jnp.where(wanted, square, 1.0), 0.0)
        chosen = jnp.arange(self.held.shape[0]) == index
        inverse = self.inverse - jnp.outer(self.inverse @ leaving, heading)
        inverse = jnp.where((chosen & wanted)[:, None], 0.0, inverse)
        held = self.held & ~(chosen & wanted)
        free = leaving / jnp.where(wanted, jnp.sqrt(square), 1.0)
        free = free - jnp.where(held, rows @ free, 0.0) @ inverse
        free = free - self.null @ free
        length = jnp.vdot(free, free)
        freed = jnp.where(wanted & (length > 0), free / jnp.where(length > 0, length, 1.0), 0.0)
        return WorkingSet(held, inverse, self.null + jnp.outer(free, freed))


def hold_equalities(rows: Float[Array, "m n"], equalities: int) -> WorkingSet:
    """A working set with the first rows, which are equalities; rows that repeat others are left out."""
    working = WorkingSet.empty(rows)
    floor = independence(rows)
    for index in range(equalities):
        normal = working.null @ rows[index]
        working = working.add(rows[index], jnp.asarray(index), jnp.vdot(normal, normal) > floor)
    return working


def independence(rows: Float[Array, "m n"]) -> float:
    """Squared sine below which a unit row counts as a combination of the held ones, by the dtype's precision."""
    return 1e-6 if jnp.finfo(rows.dtype).bits <= 32 else 1e-14
