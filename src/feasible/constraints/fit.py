"""Whether a constraint, an action space and observations fit together: found once, when an environment is constrained.

What does not fit is told in a sentence. The constraint is only traced, so this costs milliseconds.
"""

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np

from feasible.constraints.action_box import Constraint, Observation, in_action_box, one_dimensional
from feasible.constraints.observations import Layout, judged_by
from feasible.errors import first_line
from feasible.sets.base import TOLERANCE, ActionSet

NARROWEST = 1e-3
"""Of the largest number of an action space, what an entry's width must be at least: tolerances are 1% of it then."""


def in_spaces(
    constraint: Constraint, action_space: gym.Space, observation_space: gym.Space, layout: Layout | None
) -> Constraint:
    """The constraint in the action space, on what actions are judged by."""
    actions = one_dimensional(action_space, "constrain: the action space")
    _check_units(actions)
    if not callable(constraint):
        raise ValueError(
            "constrain: the constraint must be a function from the observation to a set, got a "
            f"{type(constraint).__name__}; for the same set everywhere write lambda obs: the_set."
        )
    obs = observation_space.sample()
    if layout is not None:
        given, constraint, obs = constraint, judged_by(constraint, layout), layout.flat(obs)
        _check_indices(given, jax.tree.map(np.asarray, layout.rebuild(jnp.asarray(obs))))
    else:
        _check_indices(constraint, obs)
    feasible_set = _traced(constraint, obs, observation_space)
    if not isinstance(feasible_set, ActionSet):
        found = "an array" if isinstance(feasible_set, jax.ShapeDtypeStruct) else type(feasible_set).__name__
        raise ValueError(f"constrain: the constraint must return an ActionSet, got {found}.")
    if feasible_set.dim != actions.shape[0]:
        raise ValueError(
            f"constrain: the constraint's sets have dim {feasible_set.dim}, but the action space "
            f"has {actions.shape[0]} entries."
        )
    return in_action_box(constraint, actions, obs)


def _check_units(actions: gym.spaces.Box) -> None:
    """Refuse an entry that is narrow beside another's numbers: one tolerance for all of them would not see it."""
    low, high = np.asarray(actions.low, np.float64), np.asarray(actions.high, np.float64)
    bounded = np.isfinite(low) & np.isfinite(high) & (high > low)
    if not bounded.any():
        return
    width = np.where(bounded, high - low, np.inf)
    largest, entry = np.abs([low, high])[:, bounded].max(), int(np.argmin(width))
    if width[entry] < NARROWEST * largest:
        raise ValueError(
            f"constrain: entry {entry} of the action space is {width[entry]:.3g} wide, but its numbers go up to "
            f"{largest:.3g}, and actions are certified to {TOLERANCE:.0e} of the largest; bring all entries to one "
            "unit with gymnasium.wrappers.RescaleAction(env, -1.0, 1.0), and state the constraint in it."
        )


def _check_indices(constraint: Constraint, obs: Observation) -> None:
    """Refuse an index past the end of the observation. JAX takes the last entry instead, NumPy does not."""
    try:
        jax.eval_shape(lambda: constraint(obs))
    except IndexError as cause:
        if "out of" in str(cause):  # bounds, or range; others are no index at all
            raise ValueError(f"constrain: the constraint reads past the end of the observation: {cause}.") from cause
    except Exception:  # it comes with the traced observation, too, or it is of this sample alone
        return


def _traced(constraint: Constraint, obs: Observation, observation_space: gym.Space) -> object:
    """What the constraint returns, with shapes for arrays."""
    try:
        return jax.eval_shape(constraint, obs)
    except (
        jax.errors.ConcretizationTypeError,
        jax.errors.TracerArrayConversionError,
        jax.errors.TracerIntegerConversionError,
        jax.errors.NonConcreteBooleanIndexError,
    ) as cause:
        raise ValueError(
            "constrain: the constraint must be a pure JAX function of the observation, without Python branches on it "
            "or NumPy calls; use jax.numpy."
        ) from cause
    except KeyError as cause:
        if not isinstance(observation_space, gym.spaces.Dict):
            raise
        raise ValueError(
            f"constrain: the constraint reads {cause} of the observation, which has {', '.join(observation_space)}."
        ) from cause
    except (TypeError, AttributeError, IndexError) as cause:
        raise ValueError(
            f"constrain: the constraint fails on an observation of {observation_space} ({first_line(cause)}); it must "
            "be a function of one observation."
        ) from cause
