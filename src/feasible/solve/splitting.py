"""Projection and linear maximisation on an intersection, given the projections on its parts.

Douglas-Rachford splitting turns the problem into a fixed point of a firmly non-expansive map T that uses one projection
a part. Where every projection is piecewise smooth, so is T, and a regularised Newton step on v - T(v) = 0 converges
fast once the active pieces are right. Each round tries a few steps and keeps the one that leaves the smallest residual;
the plain splitting step, whose residual never grows, is among them: slow at worst, exact to rounding as a rule. Until a
piece ends the residual may be the same whichever way one goes: of steps that leave it alike the longest is kept.

Steps are tried in groups, the likeliest first, until one lowers the residual enough; a pass of the loop is one group.
Every step is tried with its Jacobian, which costs little beside the projections, so that the parts are evaluated in one
place of the program only: compilation takes as long as the parts do.
"""

from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.lax import stop_gradient
from jaxtyping import Array, Bool, Float, Int

from feasible.solve.alike import each
from feasible.solve.chunks import searched
from feasible.solve.elimination import solve_dense
from feasible.solve.tangent import with_tangent_of

Projection = Callable[[Float[Array, " n"]], Float[Array, " n"]]

ROUNDS = 300
# Penalties tried one after the other, PATIENCE rounds each, and after each of them one as large as the multipliers are
# by then: what stalls under one seldom stalls under another, and all of these where a multiplier is far from 1.
PENALTIES = (1.0, 0.2, 3.0, 0.05)
PATIENCE = 15
# What is tried, group by group: multiples of the plain splitting step, of a Newton step with much regularisation and of
# one with little. Newton overshoots where a piece ends on the way, by orders of magnitude where the multiplier of the
# next piece is that much smaller than the others; where the plain step repeats itself, the end may be far away.
PLAIN, WARY, BOLD = 0, 1, 2
GROUPS = (
    ((PLAIN, 1.0), (PLAIN, 1.9), (WARY, 1.0), (BOLD, 0.5), (BOLD, 1.0)),
    ((PLAIN, 30.0), *((BOLD, 0.5**k) for k in range(2, 6))),
    ((PLAIN, 500.0), *((BOLD, 0.5**k) for k in range(6, 10))),
    tuple((BOLD, 0.5**k) for k in range(10, 15)),
    tuple((BOLD, 0.5**k) for k in range(15, 20)),
)
# Share of the residual to which a group must bring it down for no further one to be tried.
ENOUGH = 0.9
# Share by which squared residuals may differ and still count as alike.
ALIKE = 1e-4


class _Point(eqx.Module):
    """Copies, what the splitting moves them by, the x that it moves them for, and the Jacobians of both.

    All in one array: what is chosen among points is chosen by one operation.
    """

    numbers: Float[Array, " f"]
    m: int = eqx.field(static=True)

    @staticmethod
    def of(copies: Array, miss: Array, x: Array, miss_slope: Array, x_slope: Array) -> "_Point":
        slopes = jnp.concatenate([miss_slope.ravel(), x_slope.ravel()])
        return _Point(jnp.concatenate([copies, miss, slopes, x]), len(copies))

    @property
    def copies(self) -> Float[Array, " m"]:
        return self.numbers[: self.m]

    @property
    def miss(self) -> Float[Array, " m"]:
        return self.numbers[self.m : 2 * self.m]

    @property
    def miss_slope(self) -> Float[Array, "m m"]:
        return self.numbers[2 * self.m : (2 + self.m) * self.m].reshape(self.m, self.m)

    @property
    def x_slope(self) -> Float[Array, "n m"]:
        n = self._n
        return self.numbers[(2 + self.m) * self.m : -n].reshape(n, self.m)

    @property
    def x(self) -> Float[Array, " n"]:
        return self.numbers[-self._n :]

    @property
    def _n(self) -> int:
        return (len(self.numbers) - (2 + self.m) * self.m) // (self.m + 1)

    def at(self, copies: Float[Array, " m"]) -> "_Point":
        """The same but for the copies."""
        return _Point(jnp.concatenate([copies, self.numbers[self.m :]]), self.m)


class _Search(eqx.Module):
    start: _Point  # of the round
    best: _Point  # of the groups that the round has tried
    group: Int[Array, ""]
    penalty: Float[Array, ""]
    unseen: Bool[Array, ""]  # of the start only the copies are known
    finished: Bool[Array, ""]
    rounds: Int[Array, ""]


# (copies, pull, bend, penalty) -> the x of a first set that minimises
# bend/2 ||x||^2 - pull . x + penalty/2 ||image(x) - copies||^2.
Consensus = Callable[[Array, Array, Array, Array], Float[Array, " n"]]


def minimise_over_intersection(
    parts: Sequence[Projection],
    target: Float[Array, " n"],
    size: Float[Array, ""],
    *,
    curvature: float,
) -> Float[Array, " n"]:
    """argmin curvature/2 ||x||^2 - target . x over the intersection of the parts, whose points are about `size` long.

    curvature 1 and target z give the projection of z; curvature 0 and target g a linear maximiser. The answer lies in
    the first part exactly, in the others to the residual. A pass is five Jacobians of k n columns and dense solves of
    that order, for k + 1 parts. Parts that are pytrees of one structure are evaluated as one, batched.
    """
    first, *rest = parts
    k, n = len(rest), target.shape[0]

    def consensus(copies: Array, pull: Array, bend: Array, penalty: Array) -> Float[Array, " n"]:
        return first((pull + penalty * jnp.sum(copies.reshape(k, n), axis=0)) / (bend + k * penalty))

    def nearest(copies: Array) -> Float[Array, " kn"]:
        return each(lambda part, copy: part(copy), rest, copies.reshape(k, n)).reshape(k * n)

    return newton_on_splitting(consensus, lambda x: jnp.tile(x, k), nearest, target, size, curvature=curvature)


def newton_on_splitting(
    consensus: Consensus,
    image: Callable[[Float[Array, " n"]], Float[Array, " m"]],
    nearest: Callable[[Float[Array, " m"]], Float[Array, " m"]],
    target: Float[Array, " n"],
    size: Float[Array, ""],
    *,
    curvature: float,
) -> Float[Array, " n"]:
    """argmin curvature/2 ||x||^2 - target . x over the x of a first set whose affine image lies in a second one.

    The first set is known by `consensus`, the second by its projection `nearest`; image(x) is about as long as x. The
    residual ends at a few roundings of size, as a rule after 3 to 20 rounds, 300 at most. First derivatives in the
    target and in all that the functions close over are those of the implicit function theorem: one solve with the
    Jacobian at the fixed point.
    """
    peak = jnp.max(jnp.abs(stop_gradient(target)))
    length = peak * jnp.linalg.norm(stop_gradient(target) / jnp.where(peak > 0, peak, 1.0))  # squares may overflow
    # Unit steepness at the size of the set, whatever the target's: then one penalty suits all targets.
    stretch = jnp.maximum(length / size, 1.0) if curvature else jnp.where(length > 0, length, 1.0) / size
    bend, pull = curvature / stretch, target / stretch

    def residual(copies: Array, penalty: Array) -> tuple[Float[Array, " m"], Float[Array, " n"]]:
        """What the splitting moves the copies by, and the x that it moves them for."""
        x = consensus(copies, pull, bend, penalty)
        seen = image(x)
        return nearest(2.0 * seen - copies) - seen, x

    start = jnp.zeros(jax.eval_shape(image, target).shape, target.dtype)
    found = searched(lambda: _search(residual, image, start, size))
    end, penalty = found.start, found.penalty

    miss, x = residual(end.copies, penalty)
    eye = jnp.eye(len(start), dtype=target.dtype)
    change = jnp.linalg.solve(end.miss_slope - 64 * jnp.finfo(target.dtype).eps * eye, miss)
    return with_tangent_of(x - end.x_slope @ change, end.x)


def _search(
    residual: Callable[[Array, Array], tuple[Float[Array, " m"], Float[Array, " n"]]],
    image: Callable[[Float[Array, " n"]], Float[Array, " m"]],
    copies: Float[Array, " m"],
    size: Float[Array, ""],
) -> _Search:
    """The copies at which the residual is as small as it gets, from a first guess."""
    dtype, eps = copies.dtype, jnp.finfo(copies.dtype).eps
    eye = jnp.eye(len(copies), dtype=dtype)
    kinds = jnp.asarray([[kind for kind, _ in group] for group in GROUPS])
    shares = jnp.asarray([[share for _, share in group] for group in GROUPS], dtype)

    def evaluate(copies: Float[Array, " m"], penalty: Float[Array, ""]) -> _Point:
        (miss, x), slope = jax.linearize(lambda v: residual(v, penalty), copies)
        return _Point.of(copies, miss, x, *jax.vmap(slope, out_axes=1)(eye))

    def unfinished(search: _Search) -> Bool[Array, ""]:
        return search.unseen | (~search.finished & (search.rounds < ROUNDS))

    def advance(search: _Search) -> _Search:
        start, unseen, group = search.start, search.unseen, search.group
        level = jnp.max(jnp.abs(start.miss)) / size
        floors = jnp.stack([jnp.clip(level, 64 * eps, 0.1), jnp.clip(1e-3 * level, 64 * eps, 1e-3)])
        newton = jax.vmap(lambda floor: solve_dense(floor * eye - start.miss_slope, start.miss))(floors)
        directions = jnp.concatenate([start.miss[None, :], newton])
        steps = shares[group][:, None] * directions[kinds[group]]
        steps = jnp.where(unseen, 0.0, steps)
        points = jax.vmap(lambda step: evaluate(start.copies + step, search.penalty))(steps)
        misses = points.numbers[:, start.m : 2 * start.m]
        tried = _Point(points.numbers[_longest_of_the_best(steps, misses)], start.m)
        best = _select(unseen | (group == 0) | _better(tried, search.best, start), tried, search.best)

        # Newton squares the residual or is stopped by rounding: close to rounding, a round that does not even do what
        # is enough is the end. So is one from a start that is not finite.
        before, after = jnp.sum(start.miss**2), jnp.sum(best.miss**2)
        enough = after <= ENOUGH**2 * before
        stalled = ~unseen & ~enough & ((level <= 64 * eps) | ~jnp.isfinite(before))
        over = unseen | enough | stalled | (group == len(GROUPS) - 1)
        finished = over & (stalled | (jnp.max(jnp.abs(best.miss)) <= 4 * eps * size))
        ended = _select(over & ~(stalled & (after > before)), best, start)

        rounds = jnp.where(over & ~unseen, search.rounds + 1, search.rounds)
        seen = image(ended.x)
        penalty = _next_penalty(search.penalty, rounds, jnp.max(jnp.abs(ended.copies - seen)) / size)
        penalty = jnp.where(over & ~unseen & ~finished & jnp.isfinite(penalty), penalty, search.penalty)
        # The multipliers stay what they are.
        rescaled = seen + (ended.copies - seen) * (search.penalty / penalty)
        changed = penalty != search.penalty
        return _Search(
            start=ended.at(jnp.where(changed, rescaled, ended.copies)),
            best=best,
            group=jnp.where(over, 0, group + 1),
            penalty=penalty,
            unseen=changed,
            finished=finished,
            rounds=rounds,
        )

    m, n = len(copies), jax.eval_shape(residual, copies, size)[1].shape[0]
    unknown = _Point(jnp.zeros((2 + m) * m + (m + 1) * n, dtype), m).at(copies)
    begun = _Search(
        start=unknown,
        best=unknown,
        group=jnp.asarray(0),
        penalty=jnp.asarray(PENALTIES[0], dtype),
        unseen=jnp.asarray(True),
        finished=jnp.asarray(False),
        rounds=jnp.asarray(0),
    )
    return jax.lax.while_loop(unfinished, advance, begun)


def _next_penalty(penalty: Float[Array, ""], rounds: Int[Array, ""], reach: Float[Array, ""]) -> Float[Array, ""]:
    """The penalty of the round: one of the usual ones, or what balances multipliers that reach so far under this."""
    phase, age = rounds // PATIENCE, rounds % PATIENCE
    usual = jnp.asarray(PENALTIES, penalty.dtype)[(phase // 2) % len(PENALTIES)]
    balanced = jnp.clip(penalty * reach, jnp.finfo(penalty.dtype).eps ** 0.5, 1e3)
    return jnp.where(phase % 2 == 0, usual, jnp.where(age == 0, balanced, penalty))


def _longest_of_the_best(steps: Float[Array, "s m"], misses: Float[Array, "s m"]) -> Int[Array, ""]:
    """Which is the longest of the steps that leave the smallest residual; the first where none leaves a finite one."""
    lengths, reaches = jnp.sum(misses**2, axis=1), jnp.sum(steps**2, axis=1)
    usable = jnp.isfinite(lengths) & jnp.isfinite(reaches)
    best = jnp.min(jnp.where(usable, lengths, jnp.inf))
    alike = usable & (lengths <= (1.0 + ALIKE) * best)
    return jnp.argmax(jnp.where(alike, reaches, -1.0))


def _better(one: _Point, other: _Point, start: _Point) -> Bool[Array, ""]:
    """Whether `one` leaves a smaller residual than `other`, or one alike after a longer step."""
    new, old = jnp.sum(one.miss**2), jnp.sum(other.miss**2)
    longer = jnp.sum((one.copies - start.copies) ** 2) > jnp.sum((other.copies - start.copies) ** 2)
    return ((1.0 + ALIKE) * new < old) | ((new <= (1.0 + ALIKE) * old) & longer)


def _select(which: Bool[Array, ""], one: _Point, other: _Point) -> _Point:
    return _Point(jnp.where(which, one.numbers, other.numbers), one.m)
