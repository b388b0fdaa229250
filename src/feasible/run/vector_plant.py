"""What a driver needs of copies of a task's environment that step as one: packets, finite numbers, saved states."""

from collections.abc import Sequence
from dataclasses import dataclass

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from jaxtyping import Bool, Float, Float64

from feasible.algorithms.base import Spec
from feasible.constraints import ConstrainedVectorEnv
from feasible.constraints.outcomes import check_observation, restarted_copies, stepped_copies
from feasible.run.drive.finite import NotFiniteError, finite, observed_fault
from feasible.run.environment import State, spec_of


@dataclass(frozen=True)
class Steps:
    """One step of all copies, a row each."""

    packets: Float[np.ndarray, "copies packet"]
    """[next_obs | seen | reward, terminated, truncated], as `step.pack` writes one."""
    rewards: Float64[np.ndarray, " copies"]
    """The same rewards before they were rounded."""
    ended: Bool[np.ndarray, " copies"]
    """Whose episode ended with the step; they have started the next one."""

    def faults(self, step: int) -> dict[int, NotFiniteError]:
        """By copy, what cannot be learned from; `step` is the number of this one. Costs a sum if there is nothing."""
        if finite(self.packets):
            return {}
        size, found = len(self.packets[0]) // 2 - 1, {}
        for copy in np.flatnonzero(~np.isfinite(self.packets).all(axis=1)).tolist():
            packet, of = self.packets[copy], f" of copy {copy}"
            fault = observed_fault(packet[:size], self.rewards[copy], step, of)
            found[copy] = fault or observed_fault(packet[size : 2 * size], 0.0, step, of)
        return found

    def check(self, step: int) -> None:
        """Stop at the first copy with a number that is not finite."""
        for fault in self.faults(step).values():
            raise fault


class VectorPlant:
    """Copies of a constrained environment taken apart, as `Plant` is one: actions are judged by the driver.

    >>> plant = VectorPlant(registry.make_vec("halfcheetah", 40, threads=15))
    >>> seen = plant.reset(seeds)             # the observations to act on, float32
    >>> steps = plant.step(actions, 1)        # what became of them
    """

    def __init__(self, env: ConstrainedVectorEnv):
        self.env, self.constraint = env.env, env.constraint
        if self.env.metadata.get("autoreset_mode") != AutoresetMode.SAME_STEP:
            raise ValueError("env: episodes must start again in the step that ends them (AutoresetMode.SAME_STEP).")
        self.spec: Spec = spec_of(env)
        self.copies = env.num_envs
        size = self.spec.observation_size
        self._shape = (self.copies, size)
        self._next, self._seen = slice(size), slice(size, 2 * size)

    def reset(self, seeds: Sequence[int]) -> Float[np.ndarray, "copies o"]:
        """Start an episode in every copy, each as the single environment with its seed does."""
        obs, _ = restarted_copies(self.env, self._shape, 0, seed=list(seeds))
        seen = np.asarray(obs, np.float32)
        for copy, row in enumerate(seen):
            fault = observed_fault(row, 0.0, 0, f" of copy {copy}")
            if fault is not None:
                raise fault
        return seen

    def step(self, actions: Float[np.ndarray, "copies n"], step: int) -> Steps:
        """Step every copy; `step` is the number that a fault is told with.

        The packets are new arrays; costs a few microseconds besides the environment.
        """
        seen, rewards, terminated, truncated, infos = stepped_copies(self.env, actions, self._shape, step)
        packets = np.empty((self.copies, 2 * self.spec.observation_size + 3), np.float32)
        packets[:, self._next] = packets[:, self._seen] = seen
        packets[:, -3], packets[:, -2], packets[:, -1] = rewards, terminated, truncated
        ended = terminated | truncated
        if ended.any():
            for copy in np.flatnonzero(ended):
                check_observation(infos["final_obs"][copy], self._shape[1:], step, f" of copy {copy}")
                packets[copy, self._next] = infos["final_obs"][copy]
        return Steps(packets, np.asarray(rewards, np.float64), ended)

    def seen(self, steps: Steps) -> Float[np.ndarray, "copies o"]:
        """The observations to act on after a step."""
        return steps.packets[:, self._seen]

    @property
    def restorable(self) -> bool:
        return hasattr(self.env, "get_state") or all(_restorable(env) for env in self._singles())

    def get_state(self) -> State:
        """The complete state of all copies."""
        if hasattr(self.env, "get_state"):
            return self.env.get_state()  # pyright: ignore[reportAttributeAccessIssue]
        states = [env.get_wrapper_attr("get_state")() for env in self._singles()]
        return {f"{copy}/{name}": array for copy, state in enumerate(states) for name, array in state.items()}

    def set_state(self, state: State) -> None:
        """Go on from a saved state; the copies have been reset before."""
        if hasattr(self.env, "set_state"):
            self.env.set_state(state)  # pyright: ignore[reportAttributeAccessIssue]
            return
        for copy, env in enumerate(self._singles()):
            own = {name.removeprefix(f"{copy}/"): array for name, array in state.items() if name.startswith(f"{copy}/")}
            env.get_wrapper_attr("set_state")(own)

    def close(self) -> None:
        """Let the threads go."""
        self.env.close()

    def _singles(self) -> Sequence[gym.Env]:
        """The single environments, where the copies are no more than these."""
        return self.env.envs if isinstance(self.env, SyncVectorEnv) else ()


def _restorable(env: gym.Env) -> bool:
    return env.has_wrapper_attr("get_state") and env.has_wrapper_attr("set_state")
