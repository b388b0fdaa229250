"""Projection and linear maximisation on an intersection, given the projections on its parts.

Douglas-Rachford splitting turns the problem into a fixed point of a firmly non-expansive map T that uses one projection
a part. Where every projection is piecewise smooth, so is T, and a regularised Newton step on v - T(v) = 0 converges
fast once the active pieces are right. Each round tries a few steps and keeps the one that leaves the smallest residual;
the plain splitting step, whose residual never grows, is among them: slow at worst, exact to rounding as a rule. Until a
piece ends the residual may be the same whichever way one goes: of steps that leave it alike the longest is kept.
"""

from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.lax import stop_gradient
from jaxtyping import Array, Bool, Float, Int

Projection = Callable[[Float[Array, " n"]], Float[Array, " n"]]

ROUNDS = 300
# Penalties tried one after the other, PATIENCE rounds each, and after each of them one as large as the multipliers are
# by then: what stalls under one seldom stalls under another, and all of these where a multiplier is far from 1.
PENALTIES = (1.0, 0.2, 3.0, 0.05)
PATIENCE = 15
# Shares of the Newton step that are tried: it overshoots where a piece ends on the way, by orders of magnitude where
# the multiplier of the next piece is that much smaller than the others.
FRACTIONS = tuple(0.5**k for k in range(20))
# Multiples of the plain splitting step that are tried: where it repeats itself, the end of the piece may be far away.
STRIDES = (1.0, 1.9, 30.0, 500.0)
# Share by which squared residuals may differ and still count as alike.
ALIKE = 1e-4


class _Iterate(eqx.Module):
    copies: Float[Array, " m"]
    penalty: Float[Array, ""]
    level: Float[Array, ""]
    finished: Bool[Array, ""]
    rounds: Int[Array, ""]


# (copies, pull, bend, penalty) -> the x of a first set that minimises
# bend/2 ||x||^2 - pull . x + penalty/2 ||image(x) - copies||^2.
Consensus = Callable[[Array, Array, Array, Array], Float[Array, " n"]]


Fixed = tuple[Float[Array, " m"], Float[Array, ""]]  # copies and penalty


def minimise_over_intersection(
    parts: Sequence[Projection],
    target: Float[Array, " n"],
    size: Float[Array, ""],
    *,
    curvature: float,
) -> Float[Array, " n"]:
    """argmin curvature/2 ||x||^2 - target . x over the intersection of the parts, whose points are about `size` long.

    curvature 1 and target z give the projection of z; curvature 0 and target g a linear maximiser. The answer lies in
    the first part exactly, in the others to the residual. A round is one Jacobian of k n columns and dense solves of
    that order, for k + 1 parts.
    """
    first, *rest = parts
    k, n = len(rest), target.shape[0]

    def consensus(copies: Array, pull: Array, bend: Array, penalty: Array) -> Float[Array, " n"]:
        return first((pull + penalty * jnp.sum(copies.reshape(k, n), axis=0)) / (bend + k * penalty))

    def nearest(copies: Array) -> Float[Array, " kn"]:
        return jnp.concatenate([part(copy) for part, copy in zip(rest, copies.reshape(k, n), strict=True)])

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
    residual ends at a few roundings of size, as a rule after 5 to 20 rounds, 300 at most. Derivatives in the target and
    in all that the functions close over are those of the implicit function theorem: one solve with the Jacobian at the
    fixed point.
    """
    eps = jnp.finfo(target.dtype).eps
    eye = jnp.eye(jax.eval_shape(image, target).shape[0], dtype=target.dtype)
    length = jnp.linalg.norm(stop_gradient(target))
    # Unit steepness at the size of the set, whatever the target's: then one penalty suits all targets.
    stretch = jnp.maximum(length / size, 1.0) if curvature else jnp.where(length > 0, length, 1.0) / size
    bend, pull = curvature / stretch, target / stretch

    def residual(copies: Array, penalty: Array) -> tuple[Float[Array, " m"], Float[Array, " m"]]:
        """What the splitting moves the copies by, and the x that it moves them for."""
        x = image(consensus(copies, pull, bend, penalty))
        return nearest(2.0 * x - copies) - x, x

    def unfinished(state: _Iterate) -> Bool[Array, ""]:
        return ~state.finished & (state.rounds < ROUNDS)

    def advance(state: _Iterate) -> _Iterate:
        miss, slope, _ = jax.linearize(lambda v: residual(v, state.penalty), state.copies, has_aux=True)
        jacobian = jax.vmap(slope, out_axes=1)(eye)
        level = jnp.max(jnp.abs(miss)) / size
        floors = jnp.stack([jnp.clip(1e-3 * level, 64 * eps, 1e-3), jnp.clip(level, 64 * eps, 0.1)])
        bold, wary = jax.vmap(lambda floor: jnp.linalg.solve(floor * eye - jacobian, miss))(floors)
        strides, fractions = jnp.asarray(STRIDES, target.dtype), jnp.asarray(FRACTIONS, target.dtype)
        steps = jnp.concatenate([jnp.outer(strides, miss), wary[None, :], jnp.outer(fractions, bold)])
        misses, images = jax.vmap(lambda step: residual(state.copies + step, state.penalty))(steps)
        chosen = _longest_of_the_best(steps, misses)
        copies, x = state.copies + steps[chosen], images[chosen]

        # Newton squares the residual or is stopped by rounding: close to rounding, a round that does not even halve it
        # is the end.
        stalled = (level > 0.5 * state.level) & (level <= 64 * eps)
        finished = (level <= 4 * eps) | stalled
        rounds = state.rounds + 1
        multipliers = state.penalty * jnp.max(jnp.abs(copies - x)) / size
        phase, age = rounds // PATIENCE, rounds % PATIENCE
        usual = jnp.asarray(PENALTIES, target.dtype)[(phase // 2) % len(PENALTIES)]
        balanced = jnp.where(age == 0, jnp.clip(multipliers, eps**0.5, 1e3), state.penalty)
        penalty = jnp.where(phase % 2 == 0, usual, balanced)
        rescaled = x + (copies - x) * (state.penalty / penalty)  # the multipliers stay what they are
        return _Iterate(
            copies=jnp.where(finished, state.copies, rescaled),
            penalty=jnp.where(finished, state.penalty, penalty),
            level=level,
            finished=finished,
            rounds=rounds,
        )

    def solved(_: Callable, start: Fixed) -> Fixed:
        begun = _Iterate(
            copies=start[0],
            penalty=start[1],
            level=jnp.asarray(jnp.inf, target.dtype),
            finished=jnp.asarray(False),
            rounds=jnp.asarray(0),
        )
        ended = jax.lax.while_loop(unfinished, advance, begun)
        return ended.copies, ended.penalty

    def equation(fixed: Fixed) -> Fixed:
        """Zero at the fixed point, whatever the penalty."""
        return residual(*fixed)[0], jnp.zeros_like(fixed[1])

    def newton(slope: Callable[[Fixed], Fixed], change: Fixed) -> Fixed:
        jacobian = jax.vmap(lambda e: slope((e, jnp.zeros_like(change[1])))[0], out_axes=1)(eye)
        return jnp.linalg.solve(jacobian - 64 * eps * eye, change[0]), jnp.zeros_like(change[1])

    start = jnp.zeros(len(eye), target.dtype), jnp.asarray(PENALTIES[0], target.dtype)
    copies, penalty = jax.lax.custom_root(equation, start, solved, newton)
    return consensus(copies, pull, bend, penalty)


def _longest_of_the_best(steps: Float[Array, "s m"], misses: Float[Array, "s m"]) -> Int[Array, ""]:
    """Which is the longest of the steps that leave the smallest residual; the first where none leaves a finite one."""
    lengths, reaches = jnp.sum(misses**2, axis=1), jnp.sum(steps**2, axis=1)
    usable = jnp.isfinite(lengths) & jnp.isfinite(reaches)
    best = jnp.min(jnp.where(usable, lengths, jnp.inf))
    alike = usable & (lengths <= (1.0 + ALIKE) * best)
    return jnp.argmax(jnp.where(alike, reaches, -1.0))
