"""Environments that enforce their constraint: they refuse or repair an action outside its feasible set."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import overload

import gymnasium as gym
import jax
import numpy as np
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv, VectorWrapper
from gymnasium.wrappers import StickyAction
from numpy.typing import NDArray

from feasible.constraints.action_box import Constraint, Observation, declared
from feasible.constraints.fit import in_spaces
from feasible.constraints.judge import Judge, OnInfeasible
from feasible.constraints.observations import Layout, layout_of
from feasible.constraints.outcomes import (
    flattened,
    flattened_copies,
    restarted,
    restarted_copies,
    stepped,
    stepped_copies,
)
from feasible.constraints.states import State, restore, saved
from feasible.errors import InfeasibleActionError, InvalidStepError
from feasible.sets.base import ActionSet

JUDGED, IGNORED = "judged_observation", "ignored_actions"  # in saved states


class ConstrainedEnv(gym.Wrapper, RecordConstructorArgs):
    """An environment that executes only actions in the feasible set of its current observation.

    `on_infeasible="raise"` refuses an infeasible action with `InfeasibleActionError` and does not step. `"project"`
    executes the nearest feasible action instead; `info` reports `executed_action` and `proposed_violation`.
    `env.constraint` is the constraint, and `env.action_set()` the current set.

    If observations have a structure, such as a Dict, the constraint sees the structure: numbers in float32, choices in
    int32, integers of a Box in its own dtype. Then `env.layout` is not None, `env.layout.flat(obs)` is the vector of an
    observation, and `env.constraint` is a function of this vector.
    """

    task: object = None
    """The `feasible.Task` that made it, where one did."""
    task_options: "Mapping[str, object]" = MappingProxyType({})
    """Of the environment, by which it differs from the task's own."""

    def __init__(self, env: gym.Env, constraint: Constraint, on_infeasible: OnInfeasible = "raise"):
        RecordConstructorArgs.__init__(self, constraint=constraint, on_infeasible=on_infeasible)
        gym.Wrapper.__init__(self, env)
        _check_raw(env)
        self.layout = _layout(env.observation_space)
        self.constraint = in_spaces(constraint, env.action_space, env.observation_space, self.layout)
        self.on_infeasible: OnInfeasible = on_infeasible
        self._judge = Judge(self.constraint, on_infeasible, batched=False)
        self._form = self.layout or _array_shape(env.observation_space)
        self._obs: Observation = None
        self._made = 0

    def reset(self, *, seed: int | None = None, options: dict[str, object] | None = None):
        self._obs, self._made = None, 0
        obs, info = restarted(self.env, self._form, 0, seed=seed, options=options)
        self._obs = _copy(flattened(obs, self._form, 0))
        return obs, info

    def step(self, action: NDArray[np.floating]):
        _check_reset(self._obs)
        proposed = _check_shape(action, self.env.action_space)
        verdict = self._judge(self._obs, proposed)
        if not verdict.executed_violation <= verdict.tolerance:
            raise self._judge.explain(self._obs, proposed, "", f" at step {self._made}")
        if self.on_infeasible == "project":
            action = declared(verdict.executed, self.env.action_space)  # the environment's own, to write to
        try:
            obs, reward, terminated, truncated, info = stepped(self.env, action, self._form, self._made + 1)
            judged = flattened(obs, self._form, self._made + 1)
        except InvalidStepError:
            self._obs = None  # where the environment is now is not known
            raise
        self._obs, self._made = _copy(judged), self._made + 1
        if self.on_infeasible == "project":
            violation = float(verdict.proposed_violation)
            executed = declared(verdict.executed, self.env.action_space)
            info = {**info, "executed_action": executed, "proposed_violation": violation}
        return obs, reward, terminated, truncated, info

    def action_set(self) -> ActionSet:
        """Return the feasible set of the current observation."""
        _check_reset(self._obs)
        return self.constraint(self._obs)

    @property
    def awaits_reset(self) -> bool:
        """Whether nothing can be stepped before a reset."""
        return self._obs is None

    def forget(self) -> None:
        """Say that the environment underneath was moved past this wrapper: nothing is stepped before a reset."""
        self._obs = None

    def get_state(self) -> State:
        """The complete state of the environment underneath, with the observation the next action is judged by."""
        _check_reset(self._obs)
        return {**saved(self.env), JUDGED: np.asarray(self._obs)}

    def set_state(self, state: State) -> None:
        rest = dict(state)
        obs = rest.pop(JUDGED)
        restore(self.env, rest)
        self._obs = _copy(obs)


class ConstrainedVectorEnv(VectorWrapper):
    """`ConstrainedEnv` for a vector environment: one compiled call judges all copies; one infeasible action stops all.

    If the vector ignores the action of a copy that it resets (next-step autoreset), that action is not judged.
    """

    task: object = None
    """The `feasible.Task` that made them, where one did."""
    task_options: "Mapping[str, object]" = MappingProxyType({})

    def __init__(self, env: VectorEnv, constraint: Constraint, on_infeasible: OnInfeasible = "raise"):
        super().__init__(env)
        _check_raw(env)
        self.layout = _layout(env.single_observation_space)
        self.constraint = in_spaces(constraint, env.single_action_space, env.single_observation_space, self.layout)
        self.on_infeasible: OnInfeasible = on_infeasible
        self._judge = Judge(self.constraint, on_infeasible, batched=True)
        self._form = self.layout or _array_shape(env.observation_space)
        self._obs: Observation = None
        self._made = 0
        self._late = env.metadata.get("autoreset_mode") == AutoresetMode.NEXT_STEP
        self._ignored = np.zeros(env.num_envs, bool)
        """Whose next action is ignored."""

    def reset(self, *, seed: int | list[int | None] | None = None, options: dict[str, object] | None = None):
        self._obs, self._made = None, 0
        self._ignored = self._ignored & ~np.asarray((options or {}).get("reset_mask", True), bool)
        obs, info = restarted_copies(self.env, self._form, 0, seed=seed, options=options)
        self._obs = _copy(flattened_copies(obs, self._form, self.num_envs, 0))
        return obs, info

    def step(self, actions: NDArray[np.floating]):
        _check_reset(self._obs)
        proposed = _check_shape(actions, self.env.action_space)
        verdict = self._judge(self._obs, proposed)
        refused = ~np.asarray(verdict.executed_violation <= verdict.tolerance) & ~self._ignored
        if refused.any():
            copy = int(np.argmax(refused))
            obs = jax.tree.map(lambda leaf: leaf[copy], self._obs)
            raise self._judge.explain(obs, proposed[copy], f" of copy {copy}", f" at step {self._made}")
        chosen = actions
        if self.on_infeasible == "project":
            chosen = np.where(self._ignored[:, None], proposed, verdict.executed)
            actions = declared(chosen, self.env.action_space)  # the environment's own, to write to
        try:
            outcome = stepped_copies(self.env, actions, self._form, self._made + 1)
            judged = flattened_copies(outcome[0], self._form, self.num_envs, self._made + 1)
        except InvalidStepError:
            self._obs = None  # where the copies are now is not known
            raise
        obs, rewards, terminated, truncated, info = outcome
        ignored, self._ignored = self._ignored, (terminated | truncated) & self._late
        self._obs, self._made = _copy(judged), self._made + 1
        if self.on_infeasible == "project":
            violation = np.where(ignored, 0.0, verdict.proposed_violation)
            executed = declared(chosen, self.env.action_space)
            info = {**info, "executed_action": executed, "proposed_violation": violation}
        return obs, rewards, terminated, truncated, info

    @property
    def awaits_reset(self) -> bool:
        """Whether nothing can be stepped before a reset."""
        return self._obs is None

    def forget(self) -> None:
        """Say that the copies were moved past this wrapper: nothing is stepped before a reset."""
        self._obs, self._ignored = None, np.zeros(self.num_envs, bool)

    def get_state(self) -> State:
        """The complete state of all copies, with the observations the next actions are judged by and which are not."""
        _check_reset(self._obs)
        return {**saved(self.env), JUDGED: np.asarray(self._obs), IGNORED: self._ignored.copy()}

    def set_state(self, state: State) -> None:
        rest = dict(state)
        obs, ignored = rest.pop(JUDGED), rest.pop(IGNORED)
        restore(self.env, rest)
        self._obs, self._ignored = _copy(obs), np.array(ignored)


@overload
def constrain(env: gym.Env, constraint: Constraint, on_infeasible: OnInfeasible = "raise") -> ConstrainedEnv: ...
@overload
def constrain(
    env: VectorEnv, constraint: Constraint, on_infeasible: OnInfeasible = "raise"
) -> ConstrainedVectorEnv: ...
def constrain(
    env: gym.Env | VectorEnv, constraint: Constraint, on_infeasible: OnInfeasible = "raise"
) -> ConstrainedEnv | ConstrainedVectorEnv:
    """Keep every executed action of an environment inside `constraint(observation)` and the action space.

    Takes any Gymnasium environment or vector environment with a one-dimensional Box action space. The constraint
    is a pure JAX function of the raw observation, for example
    `lambda obs: feasible.sets.WeightedL1Box(weights=obs[11:17], budget=20.0, bound=1.0)`, or for a Dict
    `lambda obs: feasible.sets.Ball(obs["centre"], obs["radius"])`.
    """
    if isinstance(env, VectorEnv):
        return ConstrainedVectorEnv(env, constraint, on_infeasible)
    if not isinstance(env, gym.Env):
        raise ValueError(f"constrain: env must be a Gymnasium environment, or a vector of them, not {env!r:.80}.")
    return ConstrainedEnv(env, constraint, on_infeasible)


def _check_raw(env: gym.Env | VectorEnv) -> None:
    """Refuse wrappers that change what is judged: normalised observations, actions of steps before."""
    inner: gym.Env | VectorEnv = env
    while True:
        if type(inner).__name__ == "NormalizeObservation":  # Gymnasium has one for environments and one for vectors
            raise ValueError(
                "constrain: NormalizeObservation is inside, so the constraint would see normalised values, which "
                "change their meaning while the statistics do. Constrain the environment without it, and let the agent "
                "normalise what its networks see: normalised=True."
            )
        if isinstance(inner, StickyAction):
            raise ValueError(
                "constrain: StickyAction is inside, so an action of a step before would be executed unjudged; "
                "constrain the environment without it."
            )
        if isinstance(inner, gym.Wrapper | VectorWrapper):
            inner = inner.env
        elif isinstance(inner, SyncVectorEnv):
            inner = inner.envs[0]
        else:
            return


def _layout(space: gym.Space) -> Layout | None:
    """How actions are judged by observations that have a structure. Those that only agents of other libraries take, as
    images, have none: actions are judged by them as they are."""
    try:
        return layout_of(space)
    except ValueError:
        return None


def _array_shape(space: gym.Space) -> tuple[int, ...] | None:
    """The shape of observations that are arrays; of others it is not looked at."""
    return space.shape if isinstance(space, gym.spaces.Box) else None


def _copy(obs: Observation) -> Observation:
    """The observation as it was: what a user then does to the array changes no set."""
    return jax.tree.map(np.array, obs)


def _check_reset(obs: Observation) -> None:
    if obs is None:
        raise gym.error.ResetNeeded("constrain: call reset before step, the feasible set depends on the observation.")


def _check_shape(action: NDArray[np.floating], space: gym.Space) -> NDArray[np.floating]:
    array = np.asarray(action)
    if array.shape != space.shape:
        raise InfeasibleActionError(
            f"The action must have shape {space.shape}, got {array.shape}; nothing was stepped."
        )
    return array
