"""Saved states of environments: named arrays, of one environment or of copies that step as one.

An environment that can be saved has `get_state` and `set_state`, which give and take a dict of arrays, as ours do.
Limits of time around it are saved with it.
"""

from collections.abc import Iterator, Mapping
from typing import TypeAlias

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv, VectorWrapper
from gymnasium.wrappers import DelayObservation, FrameStackObservation, TimeAwareObservation, TimeLimit
from numpy.typing import NDArray

State: TypeAlias = dict[str, NDArray]
LIMIT, ENDED = "time_limit/", "ended"
REMEMBERING = (DelayObservation, FrameStackObservation, TimeAwareObservation)
"""Wrappers that a reset, and nothing else, brings to a known state."""


def restorable(env: gym.Env | VectorEnv) -> bool:
    """Whether an environment, reset before, or all copies of a vector have a state to save.

    They have none to save in the middle of an episode inside a wrapper that remembers what was seen or how long ago.
    """
    if isinstance(env, VectorEnv):
        return hasattr(env, "get_state") or (isinstance(env, SyncVectorEnv) and all(map(restorable, env.envs)))
    if not (env.has_wrapper_attr("get_state") and env.has_wrapper_attr("set_state")):
        return False
    if any(isinstance(wrapper, REMEMBERING) for wrapper in wrappers_of(env)):
        return False
    state = env.get_wrapper_attr("get_state")()
    return isinstance(state, dict) and all(isinstance(value, np.ndarray) for value in state.values())


def saved(env: gym.Env | VectorEnv) -> State:
    """The complete state: the environment's own and how far each limit of time has come, or that of every copy."""
    if not isinstance(env, VectorEnv):
        limits = {f"{LIMIT}{place}": np.array(limit._elapsed_steps) for place, limit in time_limits(env)}
        return {**env.get_wrapper_attr("get_state")(), **limits}
    if hasattr(env, "get_state"):
        return env.get_state()  # pyright: ignore[reportAttributeAccessIssue]
    if not isinstance(env, SyncVectorEnv):
        raise AttributeError(f"get_state: the copies of {env!r:.80} cannot be saved.")
    states = [saved(single) for single in env.envs]
    state = {f"{copy}/{name}": array for copy, own in enumerate(states) for name, array in own.items()}
    if env.autoreset_mode == AutoresetMode.NEXT_STEP:
        state[ENDED] = env._autoreset_envs.copy()
    return state


def restore(env: gym.Env | VectorEnv, state: Mapping[str, NDArray]) -> None:
    """Bring an environment, or all copies of a vector, to a saved state; it has been reset before."""
    if not isinstance(env, VectorEnv):
        own = {name: value for name, value in state.items() if not name.startswith(LIMIT)}
        env.get_wrapper_attr("set_state")(own)
        for place, limit in time_limits(env):
            limit._elapsed_steps = int(state[f"{LIMIT}{place}"])
    elif hasattr(env, "set_state"):
        env.set_state(state)  # pyright: ignore[reportAttributeAccessIssue]
    else:
        assert isinstance(env, SyncVectorEnv)
        for copy, single in enumerate(env.envs):
            of_copy = f"{copy}/"
            restore(single, {name.removeprefix(of_copy): a for name, a in state.items() if name.startswith(of_copy)})
        env._autoreset_envs = np.array(state.get(ENDED, np.zeros(env.num_envs)), bool)


def time_limits(env: gym.Env) -> list[tuple[int, TimeLimit]]:
    """The wrappers that limit an episode's steps, numbered from the outermost."""
    return list(enumerate(wrapper for wrapper in wrappers_of(env) if isinstance(wrapper, TimeLimit)))


def wrappers_of(env: gym.Env | VectorEnv) -> Iterator[gym.Wrapper | VectorWrapper]:
    """The wrappers around an environment or a vector, from the outermost."""
    while isinstance(env, gym.Wrapper | VectorWrapper):
        yield env
        env = env.env
