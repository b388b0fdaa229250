"""Actor rules: in which direction of the action space the policy is moved at a state. One regression serves all.

A rule answers, for one state, with the direction d in which the proposal x0 = pi(s) should move; the actor then takes
one step of regression towards the reference action x0 + d,

    L(theta) = 1/(2 |B|) sum_{s in B} || pi(s; theta) - (x0 + d) ||^2     with x0 + d held fixed,

whose gradient at the current theta is -(1/|B|) sum d^T d pi/d theta. With d = grad_a Q that is DDPG's policy gradient
and with d = eta grad_a Q it is eta times it: Proposition 3 of the paper.

| rule                      | d                                      | method                              |
|---------------------------|----------------------------------------|-------------------------------------|
| `PolicyGradient`          | grad_a Q(s, a) at a = x0               | DDPG+Projection, DDPG+RewardShaping |
| `ThroughProjection`       | J^T g, J = dP/dz at x0                 | DDPG+OptLayer                       |
| `FrankWolfe(step)`        | x + step (c - x) - x0, c the maximiser | NFWPO, equations (12) and (13)      |
| `ProjectedGradient(step)` | P(x + step g / mean ||g||) - x0        | not of the paper                    |

P is the projection on the feasible set of the state, x = P(x0), g = grad_a Q(s, x), c the set's maximiser of <c, g>.

Means over the batch are taken by the name of its axis: a batch is `jax.vmap(..., axis_name=STATES)`.
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from feasible.algorithms.away_steps import Mixture, better
from feasible.algorithms.base import Metrics, is_zero
from feasible.sets.base import ActionSet

Action = Float[Array, " n"]
Scalar = Float[Array, ""]
# a -> grad_a Q(s, a) at the state in question.
ActionGradient = Callable[[Action], Action]
STATES = "states"
HALVINGS = 5  # of a line search: it finds the step to a 32nd of the longest


class ActorRule(eqx.Module):
    """How one state's proposal should move, and which action the critic's target takes."""

    @abstractmethod
    def direction(
        self, feasible_set: ActionSet, proposed: Action, gradient: ActionGradient
    ) -> tuple[Action, Metrics]: ...

    @abstractmethod
    def target_action(self, feasible_set: ActionSet, proposed: Action) -> Action:
        """The action of the critic's target, from the target policy's output."""


class PolicyGradient(ActorRule):
    """The critic's gradient at the proposal itself, feasible or not."""

    def direction(self, feasible_set: ActionSet, proposed: Action, gradient: ActionGradient) -> tuple[Action, Metrics]:
        g = gradient(proposed)
        return g, {"actor/grad_proposed": jnp.linalg.norm(g)}

    def target_action(self, feasible_set: ActionSet, proposed: Action) -> Action:
        return proposed


class ThroughProjection(ActorRule):
    """The critic's gradient at the projection, pulled back through it: zero where all moves are projected away.

    `penalty` times the mean norm of the critic's gradients over the batch is the weight of ||x0 - P(x0)||^2 / 2, taken
    off the critic's value: proposals outside are pulled back, also where the gradient is zero.

    The critic's target takes the projection of the target policy's output, or with `project_target=False`, as DDPG's
    does, that output itself.
    """

    penalty: float = 0.0
    """Weight of the squared distance to the projection, in mean norms of the critic's gradient."""
    project_target: bool = True
    """Use the projection of the target policy's output in the critic's target."""

    def direction(self, feasible_set: ActionSet, proposed: Action, gradient: ActionGradient) -> tuple[Action, Metrics]:
        projected, pull_back = jax.vjp(feasible_set.project, proposed)
        g = gradient(projected)
        (pulled,) = pull_back(g)
        metrics = {"actor/grad_proposed": jnp.linalg.norm(pulled), "actor/grad_executed": jnp.linalg.norm(g)}
        if not is_zero(self.penalty):
            pulled = pulled + self.penalty * _mean(jnp.linalg.norm(g)) * (projected - proposed)
        return pulled, metrics

    def target_action(self, feasible_set: ActionSet, proposed: Action) -> Action:
        return feasible_set.project(proposed) if self.project_target else proposed


class FrankWolfe(ActorRule):
    """Towards the linear maximiser from the projection; the reference action is feasible, no projection is derived.

    The step is `step` in every state (`by="constant"`, the paper's), or

        by="gap"      min(1, step gap / mean gap), gap = <grad_a Q(s, x), c - x>: the step alpha(s) of Algorithm 1 is
                      proportional to the gap of the state; scaled by the batch it needs no constants
        by="search"   the best step of [0, step] for the critic, which is taken for concave along the way: bisection on
                      its slope, `HALVINGS` + 1 gradients more

    `inner` such steps are made one after the other. With `away` those after the first may also go away from the worst
    of the points that the present one is a mixture of, x and the maximisers so far, if the slope is larger that way.

    `inside` weighs the way back to the feasible set, x - x0, against the improvement from there.

    The critic's target takes the target policy's output, as the paper's does, or with `project_target` its projection:
    the critic learns at feasible actions only, and what it says of others is a guess. On a set with an equality, which
    no output meets, all its targets would be guesses.
    """

    step: float
    """alpha: how far a reference action goes from the projection towards the linear maximiser."""
    by: Literal["constant", "gap", "search"] = "constant"
    """How the step is chosen: `constant`, by the state's `gap`, or by a line `search` on the critic."""
    inner: int = 1
    """Frank-Wolfe steps from the projection to the reference action."""
    away: bool = False
    """Allow away steps after the first step."""
    inside: float = 1.0
    """Weight of the move from the proposal back to its projection."""
    project_target: bool = False
    """Use the projection of the target policy's output in the critic's target; of no effect on tables."""

    def direction(self, feasible_set: ActionSet, proposed: Action, gradient: ActionGradient) -> tuple[Action, Metrics]:
        start = feasible_set.project(proposed)
        moved, mixture, metrics = jnp.zeros_like(start), Mixture.of(start, self.inner), {}
        for index in range(1, self.inner + 1):
            point = start + moved
            g = gradient(point)
            mixture, move = mixture.adding(index, feasible_set.maximise_linear(g), point)
            slope = jnp.vdot(g, move.towards)
            metrics = metrics or {"actor/frank_wolfe_gap": slope, "actor/grad_executed": jnp.linalg.norm(g)}
            if self.away:
                move = better(g, move, mixture.away(g, point))
                slope = jnp.vdot(g, move.towards)
            step = self._step(gradient, point, move.towards, slope, move.longest)
            moved, mixture = moved + step * move.towards, mixture.moved(move, step)
        return moved + self.inside * (start - proposed), metrics

    def _step(self, gradient: ActionGradient, point: Action, towards: Action, slope: Scalar, longest: Scalar) -> Scalar:
        if self.by == "gap":
            slope = jnp.maximum(slope, 0)  # of a maximiser it is negative by rounding only
            return jnp.minimum(self.step * _relative(slope, slope), longest)
        low, high = jnp.zeros((), point.dtype), jnp.minimum(self.step, longest)
        if self.by == "constant":
            return high
        middle = high  # asked first: where the critic still rises, the whole way is best
        for _ in range(HALVINGS + 1):
            rises = jnp.vdot(gradient(point + middle * towards), towards) > 0
            low, high = jnp.where(rises, middle, low), jnp.where(rises, high, middle)
            middle = 0.5 * (low + high)
        return low

    def target_action(self, feasible_set: ActionSet, proposed: Action) -> Action:
        return feasible_set.project(proposed) if self.project_target else proposed


class ProjectedGradient(ActorRule):
    """A step of projected gradient ascent from the projection; no gradient passes through a projection.

    r = P(x + step g / m) with x = P(x0), g = grad_a Q(s, x) and m the mean of ||g|| over the batch, so that `step` is a
    length in the action space and states move in proportion to their gradients; d = r - x + `inside` (x - x0).

    Proposition 3 holds for it. Where no constraint binds, P(z) = z for x0 and for x0 + step g / m, hence x = x0 and
    d = step g / m. The gradient of the regression is then -(step/m) (1/|B|) sum g^T d pi/d theta, which is step/m > 0
    times that of -1/|B| sum Q(s, pi(s)), DDPG's. (Adam takes most of such a factor out again: there `step` matters
    where the constraint binds.) Where it binds, r is the feasible point nearest to the step, the fixed points
    x = P(x + t g) are the stationary points of Q(s, .) on the set for every t > 0, and r - x is a direction of ascent:
    <g, r - x> >= ||r - x||^2 m / step.

    A policy that is regressed to points of the boundary ends on both sides of it. With a `margin` the step ends in the
    set shrunk by that share towards its centre c, S' = c + (1 - margin) (S - c): r is then the projection on S',

        c + (1 - margin) (P(c + (z - c) / (1 - margin)) - c)     with z = x + step g / m.

    Where S' does not bind, nothing changes. Fixed points are then the stationary points on S', and r - x ascends for x
    in S'; from the rest of S it also leads back to S'.

    With `by="direction"` m is the state's own ||g||: every state's step has the same length, as Frank-Wolfe's constant
    step nearly has, and a few states with large gradients do not outweigh the others; Proposition 3 is lost.
    """

    step: float
    """Length of the gradient step at a state of mean gradient, in units of the action."""
    inside: float = 1.0
    """Weight of the move from the proposal back to its projection."""
    margin: float = 0.0
    """Share by which the set shrinks towards its centre for reference actions."""
    by: Literal["gradient", "direction"] = "gradient"
    """How far a state moves: by its `gradient`, in units of the batch's mean, or by its `direction` alone."""

    def direction(self, feasible_set: ActionSet, proposed: Action, gradient: ActionGradient) -> tuple[Action, Metrics]:
        projected = feasible_set.project(proposed)
        g = gradient(projected)
        size = jnp.linalg.norm(g)
        move = _relative(g, size) if self.by == "gradient" else _unit(g, size)
        reference = self._inside(feasible_set, projected + self.step * move)
        return reference - projected + self.inside * (projected - proposed), {"actor/grad_executed": size}

    def _inside(self, feasible_set: ActionSet, point: Action) -> Action:
        """The nearest point of the set less its margin."""
        if is_zero(self.margin):
            return feasible_set.project(point)
        centre, kept = feasible_set.centre(), 1.0 - self.margin
        return centre + kept * (feasible_set.project(centre + (point - centre) / kept) - centre)

    def target_action(self, feasible_set: ActionSet, proposed: Action) -> Action:
        return feasible_set.project(proposed)


def regression_loss(actions: Float[Array, "b n"], references: Float[Array, "b n"]) -> Float[Array, ""]:
    """1/(2 |B|) sum ||a - r||^2; references are constants."""
    apart = actions - jax.lax.stop_gradient(references)
    return 0.5 * jnp.sum(apart * apart) / actions.shape[0]


def _mean(value: Scalar) -> Scalar:
    """Over the states of the batch; a state that is asked about alone is a batch of its own."""
    try:
        return jax.lax.pmean(value, STATES)
    except NameError:  # what JAX says of an axis that is not there
        return value


def _relative(value: Float[Array, "*n"], size: Scalar) -> Float[Array, "*n"]:
    """In units of the batch's mean size; zero where that is zero."""
    return _unit(value, _mean(size))


def _unit(value: Float[Array, "*n"], unit: Scalar) -> Float[Array, "*n"]:
    """In that unit; zero where it is zero."""
    return jnp.where(unit > 0, value / jnp.where(unit > 0, unit, 1.0), 0.0)
