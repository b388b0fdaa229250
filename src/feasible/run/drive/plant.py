"""What a driver needs of an environment: a constraint, steps as rows of numbers, and where possible saved states.

One environment is a row; copies that step as one are a row each.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Generic, NamedTuple, TypeVar

import gymnasium as gym
import jax
import numpy as np
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv
from jaxtyping import Bool, Float
from numpy.typing import NDArray

from feasible.algorithms.base import Spec
from feasible.algorithms.spec import spec_of
from feasible.constraints import ConstrainedEnv, ConstrainedVectorEnv, Layout
from feasible.constraints.action_box import handed_over
from feasible.constraints.outcomes import (
    check_observation,
    flattened,
    flattened_copies,
    restarted,
    restarted_copies,
    stepped,
    stepped_copies,
)
from feasible.constraints.states import State, restorable, restore, saved, wrappers_of
from feasible.errors import InvalidStepError
from feasible.run.drive.faults import NotFiniteError, finite, observed_fault
from feasible.run.drive.wire import Wire, wire_of

BEGINNING = "beginning"
Kind = TypeVar("Kind", gym.Env, VectorEnv)


class Steps(NamedTuple):
    """One step of all copies, a row each."""

    wire: Wire
    packets: Float[np.ndarray, "copies packet"]
    rewards: Sequence[float] | NDArray
    """The same rewards before they were rounded."""
    ended: Sequence[bool] | NDArray
    """Whose episode ended with the step; they have started the next one."""
    layout: Layout | None = None
    """Of observations that have a structure."""
    first: int = 0
    """The number of the first copy, where these are part of a population."""

    @property
    def seen(self) -> Float[np.ndarray, "copies o"]:
        """The observations to act on."""
        return self.wire.seen(self.packets)

    def faults(self, step: int) -> dict[int, NotFiniteError]:
        """By copy, what cannot be learned from; `step` is the number of this one. Costs a sum if there is nothing."""
        if finite(self.packets):
            return {}
        found = {}
        for copy in np.flatnonzero(~np.isfinite(self.packets).all(axis=1)).tolist():
            of, next_obs = self.of(copy), self.wire.next_obs(self.packets)[copy]
            fault = observed_fault(next_obs, self.rewards[copy], step, of, self.layout)
            found[copy] = fault or observed_fault(self.seen[copy], 0.0, step, of, self.layout)
        return found

    def of(self, copy: int) -> str:
        """Whose something is, where there are several."""
        return f" of copy {self.first + copy}" if len(self.packets) > 1 or self.first else ""


class Plant(ABC, Generic[Kind]):
    """A constrained environment, or copies of one, taken apart: what is stepped, and the constraint on its actions.

    Actions are judged by the driver, in the program that chooses them, so the judging wrapper is not stepped; whoever
    holds it must reset it before stepping it.

    >>> plant = plant_of(registry.make_vec("halfcheetah", 40, threads=15))
    >>> seen = plant.reset(seeds)             # the observations to act on, float32
    >>> steps = plant.step(actions, 1)        # what became of them
    """

    env: Kind
    copies: int
    first: int = 0
    """The number of the first copy, where these are part of a population."""
    awaited: int | None = None
    """A seed while a state that can be saved is waited for, of an environment that has none to give: the next episode
    then begins with a seed of its own, made of this one and the step. Such a beginning is a state."""

    def __init__(self, env: ConstrainedEnv | ConstrainedVectorEnv):
        self._wrapper, self.constraint = env, env.constraint
        self.spec: Spec = spec_of(env)
        self.wire, self._layout = wire_of(self.spec), self.spec.layout

    def reset(self, seeds: Sequence[int], step: int = 0) -> Float[np.ndarray, "copies o"]:
        """Start an episode in every copy, each as the single environment with its seed does; `step` have been made."""
        self._wrapper.forget()
        seen = np.array(self._restart(seeds, step), np.float32)  # some vectors give the same array again and again
        for copy, row in enumerate(seen):
            of = f" of copy {self.first + copy}" if self.copies > 1 or self.first else ""
            fault = observed_fault(row, 0.0, step, of, self._layout)
            if fault is not None:
                raise fault
        return seen

    @abstractmethod
    def step(self, actions: Float[np.ndarray, "copies n"], step: int) -> Steps:
        """Step every copy; `step` is the number that a fault is told with. Costs a few microseconds of its own."""

    @property
    def moved(self) -> bool:
        """Whether somebody else has reset or stepped the environment since this one did."""
        return not self._wrapper.awaits_reset

    @property
    @abstractmethod
    def restorable(self) -> bool:
        """Whether there is a state to save now."""

    @property
    def exact(self) -> bool:
        """Whether there is one at least at the beginning of episodes, so that a run can be resumed bit for bit."""
        return self.restorable

    @abstractmethod
    def get_state(self) -> State:
        """The complete state of all copies."""

    @abstractmethod
    def set_state(self, state: State) -> Float[np.ndarray, "copies o"] | None:
        """Go on from a saved state; the copies have been reset before. Where that is the beginning of an episode, what
        is seen there."""

    @abstractmethod
    def _restart(self, seeds: Sequence[int], step: int) -> NDArray: ...


class SinglePlant(Plant[gym.Env]):
    """One environment."""

    copies = 1

    def __init__(self, env: ConstrainedEnv):
        super().__init__(env)
        self.env, self._form = env.env, self._layout or (self.spec.observation_size,)
        self._actions = self.env.action_space
        self._saves = False
        self._beginning: int | None = None
        """The seed of the running episode, before its first step, where it is known."""

    def _restart(self, seeds: Sequence[int], step: int) -> NDArray:
        obs, _ = restarted(self.env, self._form, step, seed=seeds[0])
        self._beginning, self._saves = seeds[0], restorable(self.env)
        return np.asarray(flattened(obs, self._form, step))[None]

    def step(self, actions: Float[np.ndarray, "1 n"], step: int) -> Steps:
        action = handed_over(actions[0], self._actions)
        next_obs, reward, terminated, truncated, _ = stepped(self.env, action, self._form, step)
        next_obs = flattened(next_obs, self._form, step)
        seen, ended, self._beginning = next_obs, bool(terminated or truncated), None
        if ended:
            next_obs = np.array(next_obs)  # a reset may write into the environment's own array
        if ended and self.awaited is None:
            seen = flattened(restarted(self.env, self._form, step)[0], self._form, step)
        elif ended:
            seen = self._restart([_episode_seed(self.awaited, step)], step)[0]
        packets = self.wire.pack(1, next_obs, seen, reward, terminated, truncated)
        return Steps(self.wire, packets, [float(reward)], [ended], self._layout)

    @property
    def restorable(self) -> bool:
        return self._saves or self._beginning is not None

    @property
    def exact(self) -> bool:
        return True

    def get_state(self) -> State:
        if self._saves:
            return saved(self.env)
        return {BEGINNING: np.array(self._beginning)}

    def set_state(self, state: State) -> Float[np.ndarray, "1 o"] | None:
        if BEGINNING in state:
            return self.reset([int(state[BEGINNING])])
        restore(self.env, state)
        return None


class VectorPlant(Plant[VectorEnv]):
    """Copies that step as one. Whatever their autoreset mode, an episode that ends is followed by the next at once.

    Where the vector would start it a step late, ignoring an action (Gymnasium's default), or not at all, the copies
    that have ended are reset here, by Gymnasium's option `reset_mask`. So there is no step that could be stored,
    counted or judged by mistake, and drivers and algorithms know one kind of vector only.
    """

    def __init__(self, env: ConstrainedVectorEnv):
        self._resets = _autoreset(env) != AutoresetMode.SAME_STEP
        super().__init__(env)
        self.env, self.copies, self._actions = env.env, env.num_envs, env.action_space
        self._form = self._layout or (self.copies, self.spec.observation_size)

    def _restart(self, seeds: Sequence[int], step: int) -> NDArray:
        seen, _ = restarted_copies(self.env, self._form, step, seed=list(seeds))
        return flattened_copies(seen, self._form, self.copies, step)

    def step(self, actions: Float[np.ndarray, "copies n"], step: int) -> Steps:
        actions = handed_over(actions, self._actions)
        seen, rewards, terminated, truncated, infos = stepped_copies(self.env, actions, self._form, step)
        seen = flattened_copies(seen, self._form, self.copies, step)
        packets = self.wire.pack(self.copies, seen, seen, rewards, terminated, truncated)
        ended = np.asarray(terminated, bool) | np.asarray(truncated, bool)
        if self._resets and ended.any():
            self.wire.seen(packets)[ended] = self._begin_again(ended, self.wire.next_obs(packets), step)
        elif ended.any():
            for copy in np.flatnonzero(ended).tolist():
                self._check_last(infos["final_obs"], copy, step)
                self.wire.next_obs(packets)[copy] = self._final(
                    infos["final_obs"][copy], step, f" of copy {self.first + copy}"
                )
        return Steps(self.wire, packets, np.array(rewards), ended, self._layout, self.first)

    def _begin_again(self, ended: Bool[np.ndarray, " copies"], before: NDArray, step: int) -> NDArray:
        """The first observations of new episodes in the copies that have ended; the others stay as they are."""
        seen, _ = restarted_copies(self.env, self._form, step, options={"reset_mask": ended.copy()})
        seen = np.asarray(flattened_copies(seen, self._form, self.copies, step), np.float32)
        if not np.array_equal(seen[~ended], before[~ended], equal_nan=True):
            raise InvalidStepError(
                f"The vector environment reset copies whose episode had not ended at step {step}: its reset must heed "
                'options["reset_mask"], or its autoreset_mode be SAME_STEP.'
            )
        return seen[ended]

    @property
    def restorable(self) -> bool:
        return restorable(self.env)

    def get_state(self) -> State:
        return saved(self.env)

    def set_state(self, state: State) -> None:
        restore(self.env, state)

    def _check_last(self, last: Sequence[object], copy: int, step: int) -> None:
        """Refuse last observations that the reset has overwritten: Gymnasium's vector keeps the copy's own array."""
        vector = self.env.unwrapped
        if isinstance(vector, SyncVectorEnv) and _share(last[copy], vector._env_obs[copy]):
            raise InvalidStepError(
                f"The environment of copy {self.first + copy} gives the same array for every observation, so the last "
                f"of an episode is lost at step {step}: let it return new arrays, or make the vector with "
                "autoreset_mode=AutoresetMode.DISABLED."
            )

    def _final(self, obs: object, step: int, of: str) -> NDArray:
        """The last observation of an episode."""
        if self._layout is not None:
            return flattened(obs, self._layout, step, of)
        check_observation(obs, (self.spec.observation_size,), step, of)
        return np.asarray(obs)


def plant_of(env: gym.Env | ConstrainedVectorEnv) -> SinglePlant | VectorPlant:
    """The parts of an environment that `feasible.constrain`, `feasible.make` or `feasible.make_vec` made."""
    if isinstance(env, ConstrainedVectorEnv):
        return VectorPlant(env)
    if not isinstance(env, ConstrainedEnv):
        raise ValueError(
            "env: the environment states no constraint; wrap it with feasible.constrain(env, constraint), with all "
            "other wrappers inside, or use feasible.make(task)."
        )
    if any(isinstance(wrapper, ConstrainedEnv) for wrapper in wrappers_of(env.env)):
        raise ValueError(
            "env: the environment is constrained twice, and an agent knows one constraint; constrain it once, by "
            "the intersection of both sets, a & b."
        )
    return SinglePlant(env)


def _autoreset(env: ConstrainedVectorEnv) -> AutoresetMode:
    """When the vector starts the next episode of a copy that has ended."""
    try:
        mode = AutoresetMode(env.metadata.get("autoreset_mode"))
    except ValueError as cause:
        raise ValueError(
            "env: the vector environment must say when its episodes start again, as an AutoresetMode of Gymnasium in "
            'metadata["autoreset_mode"].'
        ) from cause
    vector = env.env.unwrapped
    if mode == AutoresetMode.NEXT_STEP and isinstance(vector, AsyncVectorEnv) and not vector.shared_memory:
        # Its workers forget that they have been reset, and would reset once more instead of the next step.
        raise ValueError(
            "env: AsyncVectorEnv with shared_memory=False needs autoreset_mode=AutoresetMode.SAME_STEP; "
            "or leave shared_memory=True."
        )
    return mode


def _share(one: object, other: object) -> bool:
    """Whether two observations have an array in common."""
    leaves = [[leaf for leaf in jax.tree.leaves(obs) if isinstance(leaf, np.ndarray)] for obs in (one, other)]
    return any(np.shares_memory(a, b) for a, b in zip(*leaves, strict=False))


def _episode_seed(seed: int | None, step: int) -> int:
    """The seed of the episode that begins after `step`, far from those of other episodes and of evaluations."""
    return int(np.random.SeedSequence([seed or 0, step, 2]).generate_state(1)[0])
