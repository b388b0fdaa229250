"""What a run cannot go on from: numbers that are not finite, actions that may not be executed; and who says so how."""

import math
from collections.abc import Mapping

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray

from feasible.algorithms.base import Algorithm, Spec
from feasible.constraints import Judge, Layout


class NotFiniteError(FloatingPointError):
    """An observation, a reward or a loss is NaN or infinite."""


def finite(numbers: Float[np.ndarray, "..."]) -> bool:
    """Whether all are finite; the sum of their squares tells sooner, but for finite numbers with an infinite one."""
    return math.isfinite(np.vdot(numbers, numbers)) or bool(np.isfinite(numbers).all())


def observed_fault(
    obs: NDArray, reward: float, step: int, of: str = "", layout: Layout | None = None
) -> NotFiniteError | None:
    """What an environment must not give; `of` names whose it is, where there are several. `layout` is that of the
    vector, where the observation has a structure."""
    bad = np.flatnonzero(~np.isfinite(obs))
    if len(bad):
        entry = f"Entry {bad[0]}" if layout is None else layout.name(int(bad[0]))
        return NotFiniteError(
            f"{entry} of the observation{of} is {obs[bad[0]]} at step {step}: the environment must give "
            "finite numbers (float32)."
        )
    if not np.isfinite(np.float32(reward)):
        return NotFiniteError(f"The reward{of} is {reward} at step {step}: the environment must return finite rewards.")
    return None


def learned_fault(metrics: Mapping[str, float], step: int) -> NotFiniteError | None:
    """A loss that says that the networks are gone."""
    for name, value in metrics.items():
        if not math.isfinite(value):
            return NotFiniteError(
                f"{name} is {value} at step {step}: training has diverged; "
                "train anew with lower learning rates or smaller rewards."
            )
    return None


def unable(algorithm: Algorithm, spec: Spec, obs: Float[np.ndarray, " o"], who: str = "") -> ValueError | None:
    """Why the algorithm cannot act at an observation whose feasible set is sound."""
    why = algorithm.trouble(spec, jnp.asarray(obs))
    if why is None:  # of most methods, at no cost; judging a set is compiled first
        return None
    fault = Judge(spec.constraint, "raise", batched=False).set_fault(obs, who)
    return ValueError(f"{type(algorithm).__name__}{who}: {why}") if fault is None else None


def refusal(
    algorithm: Algorithm,
    spec: Spec,
    obs: Float[np.ndarray, " o"],
    action: Float[np.ndarray, " n"],
    metrics: Mapping[str, float],
    step: int,
    of: str = "",
) -> Exception:
    """Why an action after `step` may not be executed: the set, the losses, the action; where one has gone, the others
    only follow. `metrics` are those of the update before it, `of` says whose the action is."""
    judge, who = Judge(spec.constraint, "raise", batched=False), f"{of} after step {step}"
    told = judge.set_fault(obs, who) or unable(algorithm, spec, obs, who)
    return told or learned_fault(metrics, step) or judge.explain(obs, action, who)
