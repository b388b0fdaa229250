"""Linear maximisation on a polytope by a primal active-set method, and the Chebyshev centre, batched by `vmap`.

From a feasible point, climb along the gradient projected on the null space of the held rows until a row blocks, and
hold it; where the projected gradient vanishes, let go of the row with the most negative multiplier, or stop: a
simplex method that may start anywhere. Every iterate is feasible and none is worse than the one before.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.lax import stop_gradient
from jaxtyping import Array, Bool, Float, Int

from feasible.solve.tangent import with_tangent_of
from feasible.solve.working_set import WorkingSet, hold_equalities, independence


class _Climb(eqx.Module):
    x: Float[Array, " n"]
    working: WorkingSet
    finished: Bool[Array, ""]
    steps: Int[Array, ""]


def highest_in_polytope(
    g: Float[Array, " n"],
    start: Float[Array, " n"],
    rows: Float[Array, "m n"],
    limits: Float[Array, " m"],
    equalities: int = 0,
) -> Float[Array, " n"]:
    """argmax g . x over {x : rows x <= limits, the first `equalities` rows with equality}, from a feasible start.

    At most 10 (m + n) steps of O((m + n) n); for g = 0 the answer is `start`. Its derivative is the vertex's in the
    rows that it holds; in g it is zero.
    """
    live, (g, start, rows, limits) = (rows, limits), stop_gradient((g, start, rows, limits))
    m, n = rows.shape
    inequality = jnp.arange(m) >= equalities
    peak = jnp.max(jnp.abs(g))
    g = g / jnp.where(peak > 0, peak, 1.0)
    flat = 100 * jnp.finfo(g.dtype).eps  # slopes below this are rounding
    first = _Climb(start, hold_equalities(rows, equalities), jnp.asarray(False), jnp.asarray(0))

    def unfinished(climb: _Climb) -> Bool[Array, ""]:
        return ~climb.finished & (climb.steps < 10 * (m + n))

    def step(climb: _Climb) -> _Climb:
        working = climb.working
        uphill = working.null @ (working.null @ g)  # twice, or a slope that is rounding would lead off the held rows
        speed = rows @ uphill
        blocking = inequality & ~working.held & (speed > flat * jnp.max(jnp.abs(uphill)))
        room = jnp.maximum(limits - rows @ climb.x, 0.0)
        times = jnp.where(blocking, room / jnp.where(blocking, speed, 1.0), jnp.inf)
        blocker = jnp.argmin(times)
        # Where nothing blocks, the slope is rounding, too: of held rows that are nearly dependent.
        climbs = (jnp.max(jnp.abs(uphill)) > flat) & jnp.isfinite(times[blocker])

        multipliers = jnp.where(working.held & inequality, working.inverse @ g, jnp.inf)
        loser = jnp.argmin(multipliers)
        releases = ~climbs & (multipliers[loser] < -flat)

        length = jnp.where(climbs, times[blocker], 0.0)
        return _Climb(
            x=climb.x + length * uphill,
            working=working.drop(rows, loser, releases).add(rows[blocker], blocker, climbs),
            finished=~climbs & ~releases,
            steps=climb.steps + 1,
        )

    def missed(x: Float[Array, " n"]) -> Float[Array, ""]:
        over = rows @ x - limits
        return jnp.max(jnp.where(inequality, over, jnp.abs(over)))

    climb = jax.lax.while_loop(unfinished, step, first)
    x, working = climb.x, climb.working
    gaps = jnp.where(working.held, live[0] @ x - live[1], 0.0)
    vertex = x - gaps @ working.inverse
    # Where rows meet that nearly depend on each other is rounding, and may be far outside.
    outside = ~(missed(stop_gradient(vertex)) <= missed(x))
    return with_tangent_of(vertex, jnp.where(outside, x, vertex))


def chebyshev_centre(
    rows: Float[Array, "m n"], limits: Float[Array, " m"], equalities: int, guess: Float[Array, " n"]
) -> tuple[Float[Array, " n"], Float[Array, ""]]:
    """Centre and radius of a largest ball in the polytope (within its equality plane); a radius < 0 means empty.

    max r over (x, r) with row_i . x + |P row_i| r <= limit_i, P the projector on the equality plane. Any x in the
    plane with r = its smallest slack is feasible, so no first phase is needed.
    """
    plane = hold_equalities(rows, equalities)
    x = guess - jnp.where(plane.held, rows @ guess - limits, 0.0) @ plane.inverse
    widths, proper = _widths(rows, equalities)
    slack = jnp.where(widths > 0, (limits - rows @ x) / jnp.where(widths > 0, widths, 1.0), jnp.inf)
    lifted, lifted_limits = depth_rows(rows, limits, equalities)
    g = jnp.zeros(rows.shape[1] + 1, rows.dtype).at[-1].set(1.0)
    start = jnp.append(x, jnp.where(jnp.isfinite(jnp.min(slack)), jnp.min(slack), 0.0))
    best = highest_in_polytope(g, start, lifted, lifted_limits, equalities)
    fixed = jnp.where(~proper, limits - rows @ best[:-1], jnp.inf)
    fixed = jnp.where(jnp.arange(rows.shape[0]) < equalities, -jnp.abs(rows @ best[:-1] - limits), fixed)
    # What rounding leaves of an equality says nothing about the ball.
    rounding = 100 * jnp.finfo(rows.dtype).eps * jnp.max(jnp.abs(rows) @ jnp.abs(best[:-1]) + jnp.abs(limits))
    return best[:-1], jnp.minimum(best[-1], jnp.where(jnp.min(fixed) < -rounding, jnp.min(fixed), jnp.inf))


def depth_rows(
    rows: Float[Array, "m n"], limits: Float[Array, " m"], equalities: int
) -> tuple[Float[Array, "m n+1"], Float[Array, " m"]]:
    """Unit rows over (x, r) that say: a ball of radius r about x, within the equality plane, lies in the polytope."""
    widths, _ = _widths(rows, equalities)
    lifted = jnp.concatenate([rows, widths[:, None]], axis=1)
    norms = jnp.linalg.norm(lifted, axis=1)
    norms = jnp.where(norms > 0, norms, 1.0)
    return lifted / norms[:, None], limits / norms


def _widths(rows: Float[Array, "m n"], equalities: int) -> tuple[Float[Array, " m"], Bool[Array, " m"]]:
    """How fast each inequality's slack falls along its steepest direction within the equality plane; which can move."""
    lengths = jnp.linalg.norm(rows @ hold_equalities(rows, equalities).null, axis=1)
    proper = lengths**2 > independence(rows)
    return jnp.where((jnp.arange(rows.shape[0]) >= equalities) & proper, lengths, 0.0), proper
