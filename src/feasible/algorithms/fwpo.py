"""FWPO (Algorithm 1): Frank-Wolfe policy optimisation of a table of actions on a known finite process.

    theta_0(s) in C(s) for every state s; in iteration k:
    1. evaluate theta_k: V_k from its linear system                                   (`finite_mdp.evaluate`)
    2. in every state, grad_a Q(s, a; theta_k) at a = theta_k(s)                      (`finite_mdp.action_gradients`)
    3. direction c_k(s) = argmax over C(s) of <c, grad>, gap g_k(s) = <c_k(s) - theta_k(s), grad>
    4. step size alpha_k(s) = min(1, (1 - gamma) mu_min g_k(s) / (L D_s^2)), and 0 where D_s = 0
    5. theta_{k+1}(s) = theta_k(s) + alpha_k(s) (c_k(s) - theta_k(s))

Every table is feasible without a projection, being a convex combination of feasible ones, and V never falls in any
state (Proposition 2). Cost of an iteration: one solve of S equations, S gradients and S linear maximisations.

Differences from the paper's text: the minimum with 1, without which the step can leave the set; the step 0 for a set
that is a point, where the paper divides by zero; L is the complete constant of `finite_mdp.smoothness`; D_s is the
set's `diameter()`, which some sets bound from above (the guarantees hold for any bound). The authors publish no
program for exact Q-functions: their BSS-3 experiment estimates Q with a network.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from feasible.algorithms.finite_mdp import FiniteMDP, Policy, Values, action_gradients, evaluate, smoothness
from feasible.errors import InfeasibleActionError
from feasible.sets import ActionSet
from feasible.sets.arguments import require


class Iteration(NamedTuple):
    """What one iteration saw: the table it started from, and what it made of it state by state."""

    policy: Policy
    values: Values
    gaps: Float[Array, " states"]
    effective_gap: Float[Array, ""]
    step_sizes: Float[Array, " states"]


def fwpo(mdp: FiniteMDP, sets: ActionSet, initial: Policy, iterations: int) -> tuple[Policy, Iteration]:
    """The table after so many iterations, and all iterations stacked.

    `sets` is one ActionSet whose arrays have the states in front, as `jax.vmap` of its constructor builds it.
    """
    if initial.shape != (mdp.states, sets.dim):
        raise ValueError(f"fwpo: initial must have shape {(mdp.states, sets.dim)}, not {initial.shape}.")
    require(
        "fwpo", _inside(sets, initial), "initial must lie in the feasible set of every state", InfeasibleActionError
    )
    return _run(mdp, sets, initial, iterations)


@jax.jit
def _inside(sets: ActionSet, policy: Policy) -> Bool[Array, " states"]:
    return jax.vmap(lambda feasible_set, action: feasible_set.contains(action))(sets, policy)


@eqx.filter_jit
def _run(mdp: FiniteMDP, sets: ActionSet, initial: Policy, iterations: int) -> tuple[Policy, Iteration]:
    rates = step_rates(mdp, sets)
    return jax.lax.scan(lambda policy, _: fwpo_iteration(mdp, sets, rates, policy), initial, length=iterations)


def fwpo_iteration(
    mdp: FiniteMDP, sets: ActionSet, rates: Float[Array, " states"], policy: Policy
) -> tuple[Policy, Iteration]:
    """One pass through the loop of Algorithm 1, with step sizes min(1, rate * gap)."""
    values = evaluate(mdp, policy)
    gradients = action_gradients(mdp, values, policy)
    directions, gaps = frank_wolfe(sets, gradients, policy)
    # Rounding can leave a gap of -1e-17 at an optimum; a step backwards would leave the set.
    step_sizes = jnp.clip(rates * gaps, 0.0, 1.0)
    moved = policy + step_sizes[:, None] * (directions - policy)
    return moved, Iteration(policy, values, gaps, jnp.linalg.norm(gaps), step_sizes)


def frank_wolfe(
    sets: ActionSet, gradients: Float[Array, "states actions"], policy: Policy
) -> tuple[Policy, Float[Array, " states"]]:
    """State by state, c = argmax over the set of <c, gradient> and the gap <c - theta, gradient>."""
    directions = jax.vmap(lambda feasible_set, gradient: feasible_set.maximise_linear(gradient))(sets, gradients)
    return directions, jnp.sum((directions - policy) * gradients, axis=1)


def step_rates(mdp: FiniteMDP, sets: ActionSet) -> Float[Array, " states"]:
    """(1 - gamma) mu_min / (L D_s^2) for every state, and 0 where D_s = 0.

    A larger L is as valid, so one of zero (rewards linear in the action) is taken as the smallest that can divide.
    """
    L = jnp.maximum(smoothness(mdp.regularity(), mdp.discount), jnp.finfo(mdp.restart.dtype).eps)
    curvature = L * _diameters(sets) ** 2
    moves = curvature > 0.0
    return jnp.where(moves, (1.0 - mdp.discount) * jnp.min(mdp.restart) / jnp.where(moves, curvature, 1.0), 0.0)


def squared_gap_bound(mdp: FiniteMDP, sets: ActionSet) -> Float[Array, ""]:
    """Proposition 2: the sum over all iterations of the squared effective gaps, if no step size is cut off at 1."""
    L, widest = smoothness(mdp.regularity(), mdp.discount), jnp.max(_diameters(sets))
    return 2.0 * L * widest**2 / ((1.0 - mdp.discount) ** 3 * jnp.min(mdp.restart) ** 2)


def _diameters(sets: ActionSet) -> Float[Array, " states"]:
    return jax.vmap(lambda feasible_set: feasible_set.diameter())(sets)
