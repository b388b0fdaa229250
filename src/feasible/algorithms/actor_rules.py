"""Actor rules: in which direction of the action space the policy is moved at a state. One regression serves all.

A rule answers, for one state, with the direction d in which the proposal x0 = pi(s) should move; the actor then takes
one step of regression towards the reference action x0 + d,

    L(theta) = 1/(2 |B|) sum_{s in B} || pi(s; theta) - (x0 + d) ||^2     with x0 + d held fixed,

whose gradient at the current theta is -(1/|B|) sum d^T d pi/d theta. With d = grad_a Q that is DDPG's policy gradient
and with d = eta grad_a Q it is eta times it: Proposition 3 of the paper.

| rule                | d                                                   | method                             |
|---------------------|-----------------------------------------------------|------------------------------------|
| `PolicyGradient`    | grad_a Q(s, a) at a = x0                            | DDPG+Projection, DDPG+RewardShaping |
| `ThroughProjection` | J^T grad_a Q(s, a) at a = P(x0), J = dP/dz at x0    | DDPG+OptLayer                      |
| `FrankWolfe(step)`  | x + step (c - x) - x0, x = P(x0), c the maximiser   | NFWPO, equations (12) and (13)     |

P is the projection on the feasible set of the state and c maximises <c, grad_a Q(s, x)> over it.
"""

from abc import abstractmethod
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from feasible.algorithms.base import Metrics
from feasible.sets.base import ActionSet

Action = Float[Array, " n"]
# a -> grad_a Q(s, a) at the state in question.
ActionGradient = Callable[[Action], Action]


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
    """The critic's gradient at the projection, pulled back through it: zero where all moves are projected away."""

    def direction(self, feasible_set: ActionSet, proposed: Action, gradient: ActionGradient) -> tuple[Action, Metrics]:
        projected, pull_back = jax.vjp(feasible_set.project, proposed)
        g = gradient(projected)
        (pulled,) = pull_back(g)
        return pulled, {"actor/grad_proposed": jnp.linalg.norm(pulled), "actor/grad_executed": jnp.linalg.norm(g)}

    def target_action(self, feasible_set: ActionSet, proposed: Action) -> Action:
        return feasible_set.project(proposed)


class FrankWolfe(ActorRule):
    """Towards the linear maximiser from the projection; the reference action is feasible, no projection is derived."""

    step: float

    def direction(self, feasible_set: ActionSet, proposed: Action, gradient: ActionGradient) -> tuple[Action, Metrics]:
        projected = feasible_set.project(proposed)
        g = gradient(projected)
        towards = feasible_set.maximise_linear(g) - projected
        metrics = {"actor/frank_wolfe_gap": jnp.vdot(g, towards), "actor/grad_executed": jnp.linalg.norm(g)}
        return projected + self.step * towards - proposed, metrics

    def target_action(self, feasible_set: ActionSet, proposed: Action) -> Action:
        return proposed


def regression_loss(actions: Float[Array, "b n"], references: Float[Array, "b n"]) -> Float[Array, ""]:
    """1/(2 |B|) sum ||a - r||^2; references are constants."""
    apart = actions - jax.lax.stop_gradient(references)
    return 0.5 * jnp.sum(apart * apart) / actions.shape[0]
