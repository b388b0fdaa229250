"""A task as algorithms see it, read off its environment."""

import gymnasium as gym
import jax.numpy as jnp
import numpy as np
from gymnasium.spaces.utils import flatdim
from gymnasium.vector import VectorEnv

from feasible.algorithms.base import Spec
from feasible.constraints import ConstrainedEnv, ConstrainedVectorEnv
from feasible.constraints.observations import layout_of
from feasible.constraints.states import time_limits


def spec_of(env: ConstrainedEnv | ConstrainedVectorEnv) -> Spec:
    """The spec of a constrained environment or of one of its copies, or a sentence that says what does not fit."""
    if isinstance(env, ConstrainedVectorEnv):
        observations, actions = env.single_observation_space, env.single_action_space
    else:
        observations, actions = env.observation_space, env.action_space
    size, layout = observation_size(observations), layout_of(observations)
    if not isinstance(actions, gym.spaces.Box) or len(actions.shape) != 1:
        raise ValueError(f"env: the action space must be a one-dimensional Box, got {actions}.")
    if not (np.all(np.isfinite(actions.low)) and np.all(np.isfinite(actions.high))):
        raise ValueError(
            "env: the action space must have finite bounds (outputs and exploration are scaled to it); "
            "wrap the environment with gymnasium.wrappers.RescaleAction or give its Box bounds."
        )
    low, high = (jnp.asarray(bound, jnp.float32) for bound in (actions.low, actions.high))
    return Spec(size, low, high, env.constraint, episode_length(env), layout)


def observation_size(observations: gym.Space) -> int:
    """Entries of the vectors that algorithms see."""
    layout = layout_of(observations)
    return layout.size if layout is not None else flatdim(observations)


def episode_length(env: ConstrainedEnv | ConstrainedVectorEnv) -> int | None:
    """Steps after which an episode of the environment, or of a copy, is cut off, where it says so."""
    if not isinstance(env, ConstrainedVectorEnv):
        return time_limit(env.env)
    copies = env.env.unwrapped
    singles = getattr(copies, "envs", None)  # where the copies are no more than these
    return time_limit(singles[0]) if singles else _own_length(copies)


def time_limit(env: gym.Env) -> int | None:
    """Steps after which an episode is cut off, where the environment says so."""
    limits = [limit._max_episode_steps for _, limit in time_limits(env)]
    said = _own_length(env.unwrapped), env.spec.max_episode_steps if env.spec is not None else None
    return min([*limits, *(length for length in said if length is not None)], default=None)


def _own_length(env: gym.Env | VectorEnv) -> int | None:
    """The length that an environment of ours has; others may mean something else by that name."""
    ours = any(kind.__module__.startswith("feasible.envs.") for kind in type(env).__mro__)
    return getattr(env, "episode_length", None) if ours else None
