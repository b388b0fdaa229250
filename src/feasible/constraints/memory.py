"""The last executed action as part of the observation, so that a constraint can depend on it: limits on rates.

|a - last| <= r is a constraint of machines everywhere. A constraint is a function of the observation, hence the last
action must be in it; and since the policy needs it too, for the process to be Markov, that is where it belongs.

    one-dimensional Box    [observation | last action]    obs[-n:]
    Dict                   a further entry                obs["last_action"]
    Tuple                  a further entry, the last      obs[-1]
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, overload

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike, NDArray

from feasible.constraints.action_box import one_dimensional
from feasible.constraints.states import State, restorable, restore, saved, wrappers_of
from feasible.constraints.wrappers import ConstrainedEnv, ConstrainedVectorEnv

LAST = "last_action"  # its name in a Dict and in saved states
Remembering: TypeAlias = gym.spaces.Box | gym.spaces.Dict | gym.spaces.Tuple


class RememberAction(gym.Wrapper, RecordConstructorArgs):
    """Observations with the last executed action; after a reset that is `first`."""

    def __init__(self, env: gym.Env, first: ArrayLike | None = None):
        RecordConstructorArgs.__init__(self, first=None if first is None else np.asarray(first).tolist())
        gym.Wrapper.__init__(self, env)
        actions = _actions(env, env.action_space)
        self._first = _first(first, actions)
        self.observation_space: Remembering = _longer(env.observation_space, actions)
        self._last = self._first

    def reset(self, *, seed: int | None = None, options: dict[str, object] | None = None):
        obs, info = self.env.reset(seed=seed, options=options)
        self._last = self._first
        return _joined(self.observation_space, obs, self._last), info

    def step(self, action: NDArray[np.floating]):
        executed = np.array(action, self._first.dtype)  # the environment may write to its own
        obs, reward, terminated, truncated, info = self.env.step(action)
        self._last = executed
        return _joined(self.observation_space, obs, executed), reward, terminated, truncated, info

    @property
    def get_state(self) -> Callable[[], State]:
        """The complete state with the last action, where the environment underneath can be saved."""
        inner = self.env.get_wrapper_attr("get_state")
        return lambda: {**inner(), LAST: self._last.copy()}

    @property
    def set_state(self) -> Callable[[State], None]:
        inner = self.env.get_wrapper_attr("set_state")

        def restore(state: State) -> None:
            rest = dict(state)
            last = np.array(rest.pop(LAST), self._first.dtype)
            inner(rest)
            self._last = last

        return restore


class RememberActions(VectorWrapper):
    """The same for copies that step as one, whatever restarts their episodes."""

    def __init__(self, env: VectorEnv, first: ArrayLike | None = None):
        super().__init__(env)
        actions = _actions(env, env.single_action_space)
        self._first = _first(first, actions)
        self.single_observation_space: Remembering = _longer(env.single_observation_space, actions)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self._last = np.tile(self._first, (self.num_envs, 1))
        self._ended = np.zeros(self.num_envs, bool)

    def reset(self, *, seed: int | list[int | None] | None = None, options: dict[str, object] | None = None):
        anew = np.asarray((options or {}).get("reset_mask", np.ones(self.num_envs, bool)), bool)
        obs, info = self.env.reset(seed=seed, options=options)  # pyright: ignore[reportArgumentType] -- lists, too
        self._last[anew], self._ended[anew] = self._first, False
        return _joined(self.single_observation_space, obs, self._last), info

    def step(self, actions: NDArray[np.floating]):
        executed = np.array(actions, self._first.dtype)
        obs, rewards, terminated, truncated, info = self.env.step(actions)
        ended, mode = np.asarray(terminated | truncated, bool), self.metadata.get("autoreset_mode")
        self._last = executed
        if mode == AutoresetMode.SAME_STEP:
            if ended.any():
                info = {**info, "final_obs": self._final(info["final_obs"], executed, ended)}
            self._last = np.where(ended[:, None], self._first, executed)
        elif mode == AutoresetMode.NEXT_STEP:  # whose episode ended with the step before has been reset instead
            self._last = np.where(self._ended[:, None], self._first, executed)
        self._ended = ended
        return _joined(self.single_observation_space, obs, self._last), rewards, terminated, truncated, info

    @property
    def get_state(self) -> Callable[[], State]:
        """The complete state with the last actions, where the copies underneath can be saved."""
        if not restorable(self.env):
            raise AttributeError("remember_action: the copies underneath cannot be saved.")
        return lambda: {**saved(self.env), LAST: self._last.copy(), f"{LAST}_ended": self._ended.copy()}

    @property
    def set_state(self) -> Callable[[State], None]:
        if not restorable(self.env):
            raise AttributeError("remember_action: the copies underneath cannot be saved.")

        def put_back(state: State) -> None:
            rest = dict(state)
            last, ended = np.array(rest.pop(LAST), self._first.dtype), np.array(rest.pop(f"{LAST}_ended"), bool)
            restore(self.env, rest)
            self._last, self._ended = last, ended

        return put_back

    def alone(self, env: gym.Env) -> RememberAction:
        """A single environment that remembers as each of these copies does."""
        return RememberAction(env, self._first)

    def _final(self, final: NDArray, executed: NDArray, ended: NDArray) -> NDArray:
        """The last observations of episodes, with the actions that led there."""
        longer = np.full(self.num_envs, None, object)
        for copy in np.flatnonzero(ended):
            longer[copy] = _joined(self.single_observation_space, final[copy], executed[copy])
        return longer


@overload
def remember_action(env: gym.Env, first: ArrayLike | None = None) -> RememberAction: ...
@overload
def remember_action(env: VectorEnv, first: ArrayLike | None = None) -> RememberActions: ...
def remember_action(env: gym.Env | VectorEnv, first: ArrayLike | None = None) -> RememberAction | RememberActions:
    """Add the last executed action to an environment's observations, for limits on rates.

    >>> env = feasible.remember_action(gym.make("Pendulum-v1"))
    >>> env = feasible.constrain(env, lambda obs: feasible.sets.Box(obs[-1:] - 0.5, obs[-1:] + 0.5))

    It is at the end of observations that are vectors, the entry "last_action" of a Dict and the last entry of a Tuple.
    Use it inside `constrain`: what reaches it is then what is executed. `first` is the last action at the beginning of
    an episode, by default zeros, or what of the action space is nearest to them.
    """
    return RememberActions(env, first) if isinstance(env, VectorEnv) else RememberAction(env, first)


def _actions(env: gym.Env | VectorEnv, actions: gym.Space) -> gym.spaces.Box:
    """The action space, or a sentence that says what does not fit."""
    if any(isinstance(wrapper, ConstrainedEnv | ConstrainedVectorEnv) for wrapper in wrappers_of(env)):
        raise ValueError(
            "remember_action: the environment is constrained already; remember the action inside, as in "
            "constrain(remember_action(env), constraint): what arrives there is executed, and constraints see it."
        )
    return one_dimensional(actions, "remember_action: the action space")


def _first(first: ArrayLike | None, actions: gym.spaces.Box) -> NDArray:
    """The last action at the beginning of an episode."""
    if first is None:
        return np.clip(np.zeros(actions.shape), actions.low, actions.high).astype(actions.dtype)
    given = np.asarray(first, actions.dtype)
    if given.shape != actions.shape or not actions.contains(given):
        raise ValueError(f"remember_action: first must be an action of {actions}, not {first}.")
    return given


def _longer(observations: gym.Space, actions: gym.spaces.Box) -> Remembering:
    """The space of observations with the last action, or a sentence that says what does not fit."""
    match observations:
        case gym.spaces.Dict():
            if LAST in observations.spaces:
                raise ValueError(f"remember_action: observations have an entry {LAST!r} already.")
            return gym.spaces.Dict([*observations.spaces.items(), (LAST, actions)])
        case gym.spaces.Tuple():
            return gym.spaces.Tuple((*observations.spaces, actions))
        case gym.spaces.Box() if len(observations.shape) == 1:
            dtype = np.result_type(observations.dtype, actions.dtype)
            low = np.concatenate([observations.low, actions.low]).astype(dtype)
            high = np.concatenate([observations.high, actions.high]).astype(dtype)
            return gym.spaces.Box(low, high, dtype=dtype)
        case _:
            raise ValueError(
                f"remember_action: observations must be a one-dimensional Box, a Dict or a Tuple, got {observations}; "
                "change them with a Gymnasium wrapper first."
            )


def _joined(space: Remembering, obs: Any, last: NDArray) -> Any:
    """An observation, or those of all copies, with the last action.

    What does not fit is left as it is: `constrain` says what is wrong with it, and at which step.
    """
    match space:
        case gym.spaces.Dict() if isinstance(obs, Mapping):
            return {**obs, LAST: last.copy()}
        case gym.spaces.Tuple() if isinstance(obs, tuple):
            return (*obs, last.copy())
        case gym.spaces.Box() if np.shape(obs) == (*last.shape[:-1], space.shape[0] - last.shape[-1]):
            return np.concatenate([obs, last], axis=-1).astype(space.dtype)
        case _:
            return obs
