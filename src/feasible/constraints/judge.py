"""The judge of actions: what an environment executes for a proposal, and the sentence where it executes nothing."""

from typing import Literal, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import NDArray

from feasible.compiling import ToldOnce
from feasible.constraints.action_box import Constraint, Observation, Watched, certified
from feasible.constraints.observations import layout_behind
from feasible.errors import EmptySetError, InfeasibleActionError

OnInfeasible: TypeAlias = Literal["raise", "project"]


class Verdict(eqx.Module):
    """What becomes of a proposed action in the feasible set of an observation."""

    executed: Float[Array, " n"]
    proposed_violation: Float[Array, ""]
    executed_violation: Float[Array, ""]
    tolerance: Float[Array, ""]


class Judge:
    """Decides, in one compiled call, what an environment executes for a proposal."""

    def __init__(self, constraint: Constraint, on_infeasible: OnInfeasible, *, batched: bool):
        if on_infeasible not in ("raise", "project"):
            raise ValueError(f"constrain: on_infeasible must be 'raise' or 'project', got {on_infeasible!r}.")
        self.constraint = constraint

        def verdict(obs: Observation, action: Float[Array, " n"]) -> Verdict:
            feasible_set = constraint(obs)
            proposed = feasible_set.point(action)
            violation, tolerance = certified(constraint, feasible_set, proposed)
            if on_infeasible == "raise":
                executed, left = proposed, jnp.maximum(violation, feasible_set.integrality(proposed))
            else:
                executed = feasible_set.execute(proposed)
                left, _ = certified(constraint, feasible_set, executed)
            return Verdict(executed, violation, left, tolerance)

        self._verdict = ToldOnce("the test of actions", jax.jit(jax.vmap(verdict) if batched else verdict))

    def __call__(self, obs: Observation, action: NDArray[np.floating]) -> Verdict:
        return self._verdict.call(obs, action)

    def set_fault(self, obs: Observation, who: str) -> ValueError | None:
        """What is wrong with the feasible set of an observation itself, whatever the action."""
        try:
            feasible_set = self.constraint(obs)
        except EmptySetError as cause:
            return EmptySetError(f"The feasible set{who} of observation {self._short(obs)} is empty: {cause}")
        except ValueError as cause:
            return InfeasibleActionError(
                f"The feasible set{who} of observation {self._short(obs)} cannot be made, so no action is executed: "
                f"{cause}"
            )
        if any(np.isnan(leaf).any() for leaf in jax.tree.leaves(feasible_set)):
            kind = type(feasible_set).__name__
            return InfeasibleActionError(
                f"The feasible set{who} of observation {self._short(obs)}, a {kind}, has a NaN in its numbers, so no "
                "action is executed: the constraint must return finite ones."
            )
        return None

    def explain(self, obs: Observation, action: NDArray[np.floating], who: str, when: str = "") -> ValueError:
        """The error for an action that may not be executed: its feasible set, if that is the reason.

        `who` names the action, `when` the moment, where that is not part of the name.
        """
        fault = self.set_fault(obs, who + when)
        if fault is not None:
            return fault
        if not np.all(np.isfinite(action)):
            return InfeasibleActionError(f"The action{who} has a NaN or an infinite entry and was not executed.")
        feasible_set = self.constraint(obs)
        residuals = feasible_set.residuals(action)
        violations = np.asarray(feasible_set.in_action_units(residuals))
        worst = int(np.argmax(violations))
        tolerance = float(certified(self.constraint, feasible_set, feasible_set.point(action))[1])
        if violations[worst] > tolerance:
            name, excess = feasible_set.residual_names()[worst], float(residuals[worst])
            return InfeasibleActionError(
                f"The action{who} violates '{name} <= 0' by {excess:.3g} and was not executed; pass it through the "
                "set's execute, or use on_infeasible='project'."
            )
        if isinstance(self.constraint, Watched) and np.max(self.constraint.excess(action)) > tolerance:
            return InfeasibleActionError(f"The action{who} {self.constraint.fault(action)}")
        return InfeasibleActionError(
            f"The action{who} is {float(feasible_set.integrality(action)):.3g} away from integers "
            "and was not executed; pass it through the set's execute, or use on_infeasible='project'."
        )

    def _short(self, obs: Observation) -> str:
        layout = layout_behind(self.constraint)
        if layout is not None:
            return f"{jax.tree.map(_rounded, layout.rebuild(jnp.asarray(obs)))!r:.400}"
        return np.array2string(np.asarray(obs), precision=4, threshold=16) if isinstance(obs, np.ndarray) else repr(obs)


def _rounded(leaf: Array) -> object:
    return leaf.tolist() if leaf.dtype.kind in "iub" else np.round(np.asarray(leaf, float), 4).tolist()
