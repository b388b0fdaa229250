"""The last executed action as part of the observation, so that a constraint can depend on it: limits on rates.

|a - last| <= r is a constraint of machines everywhere. A constraint is a function of the observation, hence the last
action must be in it; and since the policy needs it too, for the process to be Markov, that is where it belongs.
"""

from collections.abc import Callable
from typing import overload

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike, NDArray

from feasible.constraints.wrappers import ConstrainedEnv, ConstrainedVectorEnv

State = dict[str, NDArray]
LAST = "last_action"  # its name in saved states


class RememberAction(gym.Wrapper, RecordConstructorArgs):
    """Observations [observation | last executed action]; after a reset the last action is `first`."""

    def __init__(self, env: gym.Env, first: ArrayLike | None = None):
        RecordConstructorArgs.__init__(self, first=None if first is None else np.asarray(first).tolist())
        gym.Wrapper.__init__(self, env)
        observations, actions = _boxes(env, env.observation_space, env.action_space)
        self._inner = observations.shape
        self._first = _first(first, actions)
        self.observation_space = _longer(observations, actions)
        self._last = self._first

    def reset(self, *, seed: int | None = None, options: dict[str, object] | None = None):
        obs, info = self.env.reset(seed=seed, options=options)
        self._last = self._first
        return self._with_last(obs), info

    def step(self, action: NDArray[np.floating]):
        executed = np.array(action, self._first.dtype)  # the environment may write to its own
        obs, reward, terminated, truncated, info = self.env.step(action)
        self._last = executed
        return self._with_last(obs), reward, terminated, truncated, info

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

    def _with_last(self, obs: NDArray) -> NDArray:
        if np.shape(obs) != self._inner:
            return obs  # `constrain` says what is wrong with it, and at which step
        return np.concatenate([obs, self._last]).astype(self.observation_space.dtype)


class RememberActions(VectorWrapper):
    """The same for copies that step as one, whatever restarts their episodes."""

    def __init__(self, env: VectorEnv, first: ArrayLike | None = None):
        super().__init__(env)
        observations, actions = _boxes(env, env.single_observation_space, env.single_action_space)
        self._first = _first(first, actions)
        self.single_observation_space = _longer(observations, actions)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self._last = np.tile(self._first, (self.num_envs, 1))
        self._ended = np.zeros(self.num_envs, bool)

    def reset(self, *, seed: int | list[int | None] | None = None, options: dict[str, object] | None = None):
        anew = np.asarray((options or {}).get("reset_mask", np.ones(self.num_envs, bool)), bool)
        obs, info = self.env.reset(seed=seed, options=options)  # pyright: ignore[reportArgumentType] -- lists, too
        self._last[anew], self._ended[anew] = self._first, False
        return self._with_last(obs, self._last), info

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
        return self._with_last(obs, self._last), rewards, terminated, truncated, info

    @property
    def get_state(self) -> Callable[[], State]:
        """The complete state with the last actions, where the copies underneath can be saved."""
        inner: Callable[[], State] = self.env.get_state  # pyright: ignore[reportAttributeAccessIssue]
        return lambda: {**inner(), LAST: self._last.copy(), f"{LAST}_ended": self._ended.copy()}

    @property
    def set_state(self) -> Callable[[State], None]:
        inner: Callable[[State], None] = self.env.set_state  # pyright: ignore[reportAttributeAccessIssue]

        def restore(state: State) -> None:
            rest = dict(state)
            last, ended = np.array(rest.pop(LAST), self._first.dtype), np.array(rest.pop(f"{LAST}_ended"), bool)
            inner(rest)
            self._last, self._ended = last, ended

        return restore

    def _with_last(self, obs: NDArray, last: NDArray) -> NDArray:
        return np.concatenate([obs, last], axis=-1).astype(self.single_observation_space.dtype)

    def _final(self, final: NDArray, executed: NDArray, ended: NDArray) -> NDArray:
        """The last observations of episodes, with the actions that led there."""
        longer = np.full(self.num_envs, None, object)
        for copy in np.flatnonzero(ended):
            longer[copy] = self._with_last(final[copy], executed[copy])
        return longer


@overload
def remember_action(env: gym.Env, first: ArrayLike | None = None) -> RememberAction: ...
@overload
def remember_action(env: VectorEnv, first: ArrayLike | None = None) -> RememberActions: ...
def remember_action(env: gym.Env | VectorEnv, first: ArrayLike | None = None) -> RememberAction | RememberActions:
    """The environment with the last executed action at the end of its observations, for limits on rates.

    >>> env = feasible.remember_action(gym.make("Pendulum-v1"))
    >>> env = feasible.constrain(env, lambda obs: feasible.sets.Box(obs[-1:] - 0.5, obs[-1:] + 0.5))

    Use it inside `constrain`: what reaches it is then what is executed. `first` is the last action at the beginning of
    an episode, by default zeros, or what of the action space is nearest to them.
    """
    return RememberActions(env, first) if isinstance(env, VectorEnv) else RememberAction(env, first)


def _boxes(
    env: gym.Env | VectorEnv, observations: gym.Space, actions: gym.Space
) -> tuple[gym.spaces.Box, gym.spaces.Box]:
    """Both spaces, or a sentence that says what does not fit."""
    while isinstance(env, gym.Wrapper | VectorWrapper):
        if isinstance(env, ConstrainedEnv | ConstrainedVectorEnv):
            raise ValueError(
                "remember_action: the environment is constrained already; remember the action inside, as in "
                "constrain(remember_action(env), constraint): what arrives there is executed, and constraints see it."
            )
        env = env.env
    for name, space in (("observations", observations), ("actions", actions)):
        if not isinstance(space, gym.spaces.Box) or len(space.shape) != 1:
            raise ValueError(
                f"remember_action: {name} must be a one-dimensional Box, got {space}; "
                "flatten them with a Gymnasium wrapper first."
            )
    assert isinstance(observations, gym.spaces.Box)
    assert isinstance(actions, gym.spaces.Box)
    return observations, actions


def _first(first: ArrayLike | None, actions: gym.spaces.Box) -> NDArray:
    """The last action at the beginning of an episode."""
    if first is None:
        return np.clip(np.zeros(actions.shape), actions.low, actions.high).astype(actions.dtype)
    given = np.asarray(first, actions.dtype)
    if given.shape != actions.shape or not actions.contains(given):
        raise ValueError(f"remember_action: first must be an action of {actions}, not {first}.")
    return given


def _longer(observations: gym.spaces.Box, actions: gym.spaces.Box) -> gym.spaces.Box:
    dtype = np.result_type(observations.dtype, actions.dtype)
    low, high = (np.concatenate(ends) for ends in ((observations.low, actions.low), (observations.high, actions.high)))
    return gym.spaces.Box(low.astype(dtype), high.astype(dtype), dtype=dtype)
