"""Finite Markov decision processes with continuous actions: exact values, gradients and smoothness (Proposition 1).

A policy is a table theta of one action a state (the paper's direct parameterisation), and

    V = (I - gamma P)^-1 r,   Q(s, a) = r(s, a) + gamma sum_s' p(s' | s, a) V(s'),   J(theta) = sum_s mu(s) V(s),

with row s of P and entry s of r taken at the action theta(s).
"""

from abc import abstractmethod
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from feasible.sets.arguments import Numbers, floats, require, scalar

Policy = Float[Array, "states actions"]
Values = Float[Array, " states"]


class Regularity(NamedTuple):
    """Bounds on directional derivatives, over all states s, feasible actions a and unit vectors u of actions:

    `transition_slope`      C1  >= sum_s' |<grad_a p(s' | s, a), u>|
    `transition_curvature`  C2  >= sum_s' |u' hess_a p(s' | s, a) u|
    `reward_slope`          C_r >= |<grad_a r(s, a), u>|
    `reward_curvature`      L_r >= |u' hess_a r(s, a) u|
    """

    transition_slope: Float[Array, ""]
    transition_curvature: Float[Array, ""]
    reward_slope: Float[Array, ""]
    reward_curvature: Float[Array, ""]


class FiniteMDP(eqx.Module):
    """States 0, ..., S - 1, rewards in [0, 1] and transitions, both twice differentiable in the action."""

    discount: eqx.AbstractVar[Float[Array, ""]]
    restart: eqx.AbstractVar[Float[Array, " states"]]

    @abstractmethod
    def reward(self, state: Int[Array, ""], action: Float[Array, " actions"]) -> Float[Array, ""]:
        """r(s, a) in [0, 1]."""

    @abstractmethod
    def transition(self, state: Int[Array, ""], action: Float[Array, " actions"]) -> Float[Array, " states"]:
        """p(. | s, a)."""

    @abstractmethod
    def regularity(self) -> Regularity:
        """Bounds on the derivatives of rewards and transitions."""

    @property
    def states(self) -> int:
        return self.restart.shape[-1]


def evaluate(mdp: FiniteMDP, policy: Policy) -> Values:
    """V of the policy, from its linear system."""
    every = jnp.arange(mdp.states)
    rewards = jax.vmap(mdp.reward)(every, policy)
    kernel = jax.vmap(mdp.transition)(every, policy)
    return jnp.linalg.solve(jnp.eye(mdp.states, dtype=kernel.dtype) - mdp.discount * kernel, rewards)


def performance(mdp: FiniteMDP, policy: Policy) -> Float[Array, ""]:
    """J(theta), the value under the restart distribution."""
    return jnp.vdot(mdp.restart, evaluate(mdp, policy))


def action_value(
    mdp: FiniteMDP, values: Values, state: Int[Array, ""], action: Float[Array, " actions"]
) -> Float[Array, ""]:
    """Q(s, a) of the policy that has these values."""
    return mdp.reward(state, action) + mdp.discount * jnp.vdot(mdp.transition(state, action), values)


def action_gradients(mdp: FiniteMDP, values: Values, policy: Policy) -> Float[Array, "states actions"]:
    """grad_a Q(s, a) at a = theta(s) for every state; the values are held."""
    slope = jax.grad(action_value, argnums=3)
    return jax.vmap(lambda state, action: slope(mdp, values, state, action))(jnp.arange(mdp.states), policy)


def smoothness(bounds: Regularity, discount: Float[Array, ""]) -> Float[Array, ""]:
    """L (Proposition 1) such that J is L-smooth in the Euclidean norm of the whole table, for any restart distribution.

    Move the table along W with ||W||_F = 1, theta + delta W, and write ' for d/d delta. Row s of P' is
    <grad_a p(. | s, theta(s)), W_s> and ||W_s|| <= 1, so the row sums of |P'| are at most C1, those of |P''| at most
    C2, and |r'| <= C_r, |r''| <= L_r entry by entry. With G = (I - gamma P)^-1, whose row sums are 1 / (1 - gamma), and
    G' = gamma G P' G, differentiating V = G r twice, r included, gives

        V'' = 2 gamma^2 G P' G P' G r + gamma G P'' G r + 2 gamma G P' G r' + G r''.

    Sup-norms (row sums of matrices, |r| <= 1) bound every entry of V'', hence J'' = mu'V'', by

        L = 2 gamma^2 C1^2 / (1 - gamma)^3 + gamma (C2 + 2 C1 C_r) / (1 - gamma)^2 + L_r / (1 - gamma).

    As this holds for every W, the Hessian's spectral norm is at most L, and the table's feasible set is convex.
    The proof of Proposition 2 also needs Q to be L-smooth in the action, and it is: since |V| <= 1 / (1 - gamma),
    |u' hess_a Q u| <= L_Q = L_r + gamma C2 / (1 - gamma), which is never more than L.

    The paper's constant lacks the terms of r' and r'' and a factor gamma, and its C1 bounds one entry, not a row sum.
    """
    C1, C2, slope, curvature = bounds
    rest = 1.0 - discount
    squares = 2.0 * (discount * C1) ** 2 / rest**3
    return squares + discount * (C2 + 2.0 * C1 * slope) / rest**2 + curvature / rest


class SineMDP(FiniteMDP):
    """Rewards and transitions are sums of sine waves of the action, so that every bound has a closed form.

    With waves b_j(s, a) = sin(<k_sj, a> + phase_sj), rewards and transitions are

        r(s, a) = 1/2 + sum_j w_sj b_j(s, a),            sum_j |w_sj| <= 1/2,
        p(. | s, a) = base_s + sum_j E_sj b_j(s, a),     sum_s' E_sj(s') = 0,  sum_j |E_sj(s')| <= base_s(s'),

    which are in [0, 1] and probabilities for every action. Since |b_j| <= 1, |<grad b_j, u>| <= ||k_j|| and
    |u' hess b_j u| <= ||k_j||^2, the bounds are, with ||E_sj||_1 the sum over next states,

        C1 = max_s sum_j ||k_sj|| ||E_sj||_1,   C2 = max_s sum_j ||k_sj||^2 ||E_sj||_1,
        C_r = max_s sum_j ||k_sj|| |w_sj|,      L_r = max_s sum_j ||k_sj||^2 |w_sj|.
    """

    frequencies: Float[Array, "states waves actions"]
    phases: Float[Array, "states waves"]
    reward_waves: Float[Array, "states waves"]
    base: Float[Array, "states states"]
    transition_waves: Float[Array, "states waves states"]
    discount: Float[Array, ""]
    restart: Float[Array, " states"]

    def __init__(
        self,
        frequencies: Numbers,
        phases: Numbers,
        reward_waves: Numbers,
        base: Numbers,
        transition_waves: Numbers,
        discount: Numbers,
        restart: Numbers,
    ):
        k, phase, w, p, E, gamma, mu = floats(
            "SineMDP",
            frequencies=frequencies,
            phases=phases,
            reward_waves=reward_waves,
            base=base,
            transition_waves=transition_waves,
            discount=discount,
            restart=restart,
        )
        states, waves = phase.shape if phase.ndim == 2 else (-1, -1)
        shapes = (k.shape[:2], w.shape, p.shape, E.shape, mu.shape)
        wanted = ((states, waves), (states, waves), (states, states), (states, waves, states), (states,))
        if k.ndim != 3 or shapes != wanted:
            raise ValueError(f"SineMDP: shapes must be those of one number of states and of waves, not {shapes}.")
        self.frequencies, self.phases, self.reward_waves, self.base, self.transition_waves = k, phase, w, p, E
        self.discount, self.restart = scalar("SineMDP", "discount", gamma), mu
        rounding = 16.0 * states * float(jnp.finfo(p.dtype).eps)
        swing = jnp.sum(jnp.abs(E), axis=1)
        require("SineMDP", (self.discount >= 0.0) & (self.discount < 1.0), "discount must lie in [0, 1)")
        require(
            "SineMDP", (mu > 0.0) & (jnp.abs(jnp.sum(mu) - 1.0) <= rounding), "restart must be positive, with sum 1"
        )
        require("SineMDP", jnp.abs(jnp.sum(p, axis=1) - 1.0) <= rounding, "every row of base must have sum 1")
        require("SineMDP", jnp.abs(jnp.sum(E, axis=2)) <= rounding, "transition_waves must have sum 0 over next states")
        require("SineMDP", swing <= p + rounding, "transition_waves must not exceed base together")
        require("SineMDP", jnp.sum(jnp.abs(w), axis=1) <= 0.5 + rounding, "reward_waves must not exceed 1/2 together")

    def reward(self, state: Int[Array, ""], action: Float[Array, " actions"]) -> Float[Array, ""]:
        return 0.5 + jnp.vdot(self.reward_waves[state], self._waves(state, action))

    def transition(self, state: Int[Array, ""], action: Float[Array, " actions"]) -> Float[Array, " states"]:
        return self.base[state] + self._waves(state, action) @ self.transition_waves[state]

    def regularity(self) -> Regularity:
        speed = jnp.linalg.norm(self.frequencies, axis=2)
        mass, height = jnp.sum(jnp.abs(self.transition_waves), axis=2), jnp.abs(self.reward_waves)
        return Regularity(
            transition_slope=jnp.max(jnp.sum(speed * mass, axis=1)),
            transition_curvature=jnp.max(jnp.sum(speed**2 * mass, axis=1)),
            reward_slope=jnp.max(jnp.sum(speed * height, axis=1)),
            reward_curvature=jnp.max(jnp.sum(speed**2 * height, axis=1)),
        )

    def _waves(self, state: Int[Array, ""], action: Float[Array, " actions"]) -> Float[Array, " waves"]:
        return jnp.sin(self.frequencies[state] @ action + self.phases[state])


def random_sine_mdp(
    rng: np.random.Generator, states: int, actions: int, waves: int, discount: float | np.floating
) -> SineMDP:
    """A process whose waves use all the room there is, from a uniform restart; frequencies are about one a unit."""
    base = rng.dirichlet(np.ones(states), states)
    shape = rng.normal(size=(states, waves, states))
    shape -= np.sum(shape * base[:, None], axis=2, keepdims=True)
    shape /= np.abs(shape).sum(axis=1, keepdims=True).max(axis=2, keepdims=True)
    heights = rng.normal(size=(states, waves))
    return SineMDP(
        frequencies=rng.normal(size=(states, waves, actions)) / actions**0.5,
        phases=rng.uniform(0.0, 2.0 * np.pi, (states, waves)),
        reward_waves=0.5 * heights / np.abs(heights).sum(axis=1, keepdims=True),
        base=base,
        transition_waves=base[:, None] * shape,
        discount=discount,
        restart=np.full(states, 1.0 / states),
    )
