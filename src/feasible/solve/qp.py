"""Projection on a polytope by the dual active-set method of Goldfarb and Idnani (1983), batched by `vmap`.

Start at the unconstrained answer x = z. While a row is violated, move the multiplier of the most violated one up from
zero until the row holds, letting go of held rows whose multipliers reach zero on the way. Every held set is linearly
independent, so the final one gives the exact Jacobian as well. Typically about as many steps as rows that bind.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.lax import stop_gradient
from jaxtyping import Array, Bool, Float, Int

from feasible.solve.chunks import searched
from feasible.solve.working_set import WorkingSet, hold_equalities, independence


class _Search(eqx.Module):
    working: WorkingSet
    multipliers: Float[Array, " m"]
    entering: Int[Array, ""]  # the row whose multiplier is being raised, -1 between rows
    finished: Bool[Array, ""]
    steps: Int[Array, ""]


def nearest_in_polytope(
    z: Float[Array, " n"],
    rows: Float[Array, "m n"],
    limits: Float[Array, " m"],
    equalities: int = 0,
) -> Float[Array, " n"]:
    """argmin ||x - z|| over {x : rows x <= limits, the first `equalities` rows with equality}; unit or zero rows.

    At most 4 (m + n) steps of O(m n); on exit the held rows hold to rounding. The derivative is that of the
    projection on the affine set of the held rows, exact in z, rows and limits wherever the held set is unique.
    """
    search = searched(lambda: _search(z, rows, limits, equalities), chunk=256)
    working, multipliers = search.working, search.multipliers
    pulled = z - multipliers @ rows
    start = stop_gradient(pulled)
    gaps = jnp.where(working.held, rows @ start - limits, 0.0)
    return start + working.null @ (pulled - start) - gaps @ working.inverse


def _search(z: Float[Array, " n"], rows: Float[Array, "m n"], limits: Float[Array, " m"], equalities: int) -> _Search:
    m, n = rows.shape
    eps = jnp.finfo(z.dtype).eps
    inequality = jnp.arange(m) >= equalities
    settled = 8 * eps * (jnp.max(jnp.abs(z)) + jnp.max(jnp.abs(limits)))

    working = hold_equalities(rows, equalities)
    gaps = jnp.where(working.held, rows @ z - limits, 0.0)
    first = _Search(
        working=working,
        multipliers=working.inverse @ (gaps @ working.inverse),
        entering=jnp.asarray(-1),
        finished=jnp.asarray(False),
        steps=jnp.asarray(0),
    )

    def unfinished(search: _Search) -> Bool[Array, ""]:
        return ~search.finished & (search.steps < 4 * (m + n))

    def step(search: _Search) -> _Search:
        working, multipliers = search.working, search.multipliers
        x = z - multipliers @ rows
        excess = jnp.where(inequality & ~working.held, rows @ x - limits, -jnp.inf)
        fresh = search.entering < 0
        entering = jnp.where(fresh, jnp.argmax(excess), search.entering)
        over = excess[entering]
        solved = fresh & (over <= settled)

        row = rows[entering]
        normal = working.null @ row
        square = jnp.vdot(normal, normal)
        independent = square > independence(rows)
        full = jnp.where(independent, jnp.maximum(over, 0.0) / jnp.where(independent, square, 1.0), jnp.inf)
        pull = working.inverse @ row
        # A row opposite to held ones has no part in the others but for rounding, and dividing by that goes anywhere.
        rounding = 8 * n * eps * jnp.maximum(jnp.max(jnp.abs(working.inverse)), 1.0)
        shrinking = working.held & inequality & (pull > rounding)
        times = jnp.where(shrinking, multipliers / jnp.where(shrinking, pull, 1.0), jnp.inf)
        leaving = jnp.argmin(times)
        partial = jnp.maximum(times[leaving], 0.0)
        stuck = jnp.isinf(full) & jnp.isinf(partial)  # the rows contradict each other

        moves = ~(solved | stuck)
        takes = moves & (full <= partial)
        lets_go = moves & ~takes
        length = jnp.where(moves, jnp.minimum(full, partial), 0.0)
        multipliers = multipliers - length * pull
        multipliers = multipliers.at[entering].add(length)
        multipliers = jnp.where(inequality, jnp.maximum(multipliers, 0.0), multipliers)
        multipliers = multipliers.at[leaving].multiply(jnp.where(lets_go, 0.0, 1.0))
        return _Search(
            working=working.drop(rows, leaving, lets_go).add(row, entering, takes),
            multipliers=multipliers,
            entering=jnp.where(lets_go, entering, -1),
            finished=solved | stuck,
            steps=search.steps + 1,
        )

    return jax.lax.while_loop(unfinished, step, first)
