"""A task: an environment with its constraint under a name, and the presets of the methods on it."""

import inspect
import re
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from numbers import Integral
from typing import TYPE_CHECKING, Any, cast

import gymnasium as gym

from feasible.errors import first_line
from feasible.extras import SIMULATORS, require

if TYPE_CHECKING:
    from feasible.algorithms.base import Algorithm, Spec
    from feasible.constraints import ConstrainedEnv, ConstrainedVectorEnv, Constraint, OnInfeasible

Preset = Callable[[], "Mapping[str, Algorithm]"]
"""The methods of a task by name, with the hyper-parameters of one experiment; called when a run is configured."""
DEFAULT = "default"
"""The preset that every task has: each method with its own defaults."""


class KeptLast(gym.Wrapper):
    """Hands over an episode's last observation as a copy: the reset that follows may write into the same array."""

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        obs, reward, terminated, truncated, info = self.env.step(action)
        return (deepcopy(obs) if terminated or truncated else obs), reward, terminated, truncated, info


@dataclass(frozen=True)
class Task:
    """An environment with its constraint, under the name by which people and runs know it.

    >>> boat = feasible.Task("boat", lambda **options: gym.make("Boat-v0", **options), within_charge, steps=200_000)

    Sizes, bounds and the length of episodes come from the environment. If the task is in a module `mine`, train it on
    the command line with `feasible train --task mine:boat`.
    """

    name: str
    make: str | Callable[..., gym.Env]
    """The environment without the constraint: its Gymnasium id, or a function that makes it and takes `render_mode`
    and your options as keywords."""
    constraint: "Constraint | None" = None
    """A function from the raw observation to the feasible set; None for an environment with its own constraint."""
    _: KW_ONLY
    steps: int = 100_000
    """Environment steps of a run, by default."""
    title: str = ""
    words: str = ""
    """The constraint in words. If omitted: the first line of its docstring."""
    eval_every: int = 5_000
    """Steps between evaluations."""
    episodes: int = 10
    """Episodes per evaluation."""
    options: Mapping[str, object] = field(default_factory=dict)
    """Options of the environment."""
    presets: Mapping[str, Preset] = field(default_factory=dict)
    """Presets by name; a run without a preset takes the first."""
    sizes: "Mapping[str, int] | None" = None
    """observation_size, action_size and episode_length, if they are known before the environment is made."""

    def __post_init__(self) -> None:
        if not re.fullmatch(r"\w[\w.+-]*", self.name):
            raise ValueError(f"Task: name must be one word of letters, digits, '.', '+' and '-', not {self.name!r}.")
        if not (isinstance(self.make, str) or callable(self.make)):
            raise ValueError(f"Task: make must be a function that makes the environment, or its id, not {self.make!r}.")
        if self.constraint is not None and not callable(self.constraint):
            raise ValueError(
                "Task: constraint must be a function from the observation to a set, not a "
                f"{type(self.constraint).__name__}."
            )
        for name in ("steps", "eval_every", "episodes"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
                raise ValueError(f"Task: {name} must be a whole number of at least 1, not {value!r}.")
            object.__setattr__(self, name, int(value))
        if not self.words and self.constraint is not None:
            object.__setattr__(self, "words", (inspect.getdoc(self.constraint) or "").partition("\n")[0])

    def __repr__(self) -> str:
        """Such as `Task 'boat': a boat at a buoy; thrust within the charge; 100,000 steps`."""
        return f"Task {self.name!r}: " + "; ".join(filter(None, (self.title, self.words, f"{self.steps:,} steps")))

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def first_preset(self) -> str:
        """The preset that a run takes if it names none."""
        return next(iter(self.presets), DEFAULT)

    def preset(self, name: str) -> "Mapping[str, Algorithm]":
        """Return the methods with the hyper-parameters of a preset of this task."""
        if name not in self.presets:
            known = ", ".join([*self.presets, DEFAULT])
            raise ValueError(f"preset: the task {self.name!r} has no preset {name!r}; it has {known}.")
        return self.presets[name]()

    @property
    def _is_ours(self) -> bool:
        """Whether the environment is one of this library."""
        return isinstance(self.make, str) and self.make.startswith("feasible/")

    @property
    def _has_vector(self) -> bool:
        """Whether Gymnasium knows a vector of the environment's own."""
        return isinstance(self.make, str) and gym.spec(self.make).vector_entry_point is not None

    @property
    def extra(self) -> str | None:
        """The extra of the installation that the environment needs, where it is one of ours that needs one."""
        if not self._is_ours:
            return None
        # Such as feasible.envs.mujoco.constrained:reacher, whose folder is the simulator's.
        return SIMULATORS.get(str(gym.spec(str(self.make)).entry_point).split(".")[2])

    def check_installed(self) -> None:
        """Refuse a task whose simulator is not installed."""
        if self.extra is not None:
            require(self.extra, f"The task {self.name!r}")

    def env(
        self, on_infeasible: "OnInfeasible" = "raise", render_mode: str | None = None, **options: object
    ) -> "ConstrainedEnv":
        """Make the constrained environment."""
        self.check_installed()
        from feasible.constraints import ConstrainedEnv

        if self.constraint is not None:
            env = ConstrainedEnv(self._single(render_mode, options), self.constraint, on_infeasible)
        else:
            asked = self._is_ours or on_infeasible != "raise"
            judging = {"on_infeasible": on_infeasible} if isinstance(self.make, str) and asked else {}
            env = self._single(render_mode, {**judging, **options})
        if not isinstance(env, ConstrainedEnv):
            raise ValueError(f"Task: {self.name!r} has no constraint, and its environment brings none: give it one.")
        env.task, env.task_options = self, options
        return env

    def copies(
        self, num_envs: int, on_infeasible: "OnInfeasible" = "raise", threads: int = 1, **options: object
    ) -> "ConstrainedVectorEnv":
        """Make copies of the environment that step together; an episode that ends restarts in the same step.

        If the environment has its own vector, that steps the copies on `threads` threads; otherwise they step in turn.
        """
        self.check_installed()
        from feasible.constraints import ConstrainedVectorEnv

        if isinstance(num_envs, bool) or not isinstance(num_envs, Integral) or num_envs < 1:
            raise ValueError(f"Task: num_envs must be a whole number of at least 1, not {num_envs!r}.")
        num_envs = int(num_envs)
        if self.constraint is None and isinstance(self.make, str) and (self._is_ours or self._has_vector):
            given = {**self.options, "on_infeasible": on_infeasible, "threads": threads, **options}
            made = cast("ConstrainedVectorEnv", gym.make_vec(self.make, num_envs, **given))
            made.task, made.task_options = self, options
            return made
        from gymnasium.vector import AutoresetMode, SyncVectorEnv

        def single() -> gym.Env:
            own = self._single(None, options) if self.constraint is not None else self.env(**options).env  # pyright: ignore[reportArgumentType]
            return KeptLast(own)

        constraint = self.constraint or self.env(**options).constraint  # pyright: ignore[reportArgumentType]
        copies = SyncVectorEnv([single] * num_envs, autoreset_mode=AutoresetMode.SAME_STEP)
        made = ConstrainedVectorEnv(copies, constraint, on_infeasible)
        made.task, made.task_options = self, options
        return made

    @cached_property
    def spec(self) -> "Spec":
        """What algorithms know about the task; the first access makes the environment once."""
        from feasible.algorithms.spec import spec_of

        return spec_of(self.env())

    @property
    def observation_size(self) -> int:
        return self.sizes["observation_size"] if self.sizes else self.spec.observation_size

    @property
    def action_size(self) -> int:
        return self.sizes["action_size"] if self.sizes else self.spec.action_size

    @property
    def episode_length(self) -> int | None:
        """Steps after which an episode is truncated; None if there is no limit."""
        return self.sizes["episode_length"] if self.sizes else self.spec.episode_length

    def _single(self, render_mode: str | None, options: Mapping[str, object]) -> gym.Env:
        given: dict[str, Any] = {**self.options, **options}
        if render_mode is not None:
            given["render_mode"] = render_mode
        try:
            env: Any = gym.make(self.make, **given) if isinstance(self.make, str) else self.make(**given)
        except Exception as cause:
            if self.constraint is None:  # one of ours, whose errors name their options
                raise
            raise ValueError(
                f"Task: the environment of {self.name!r} could not be made: {first_line(cause)}."
            ) from cause
        if not isinstance(env, gym.Env):
            raise ValueError(f"Task: make of {self.name!r} must return a Gymnasium environment, not {env!r:.80}.")
        return env
