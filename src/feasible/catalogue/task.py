"""A task: an environment with its constraint under a name, and the presets of the methods on it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import gymnasium

if TYPE_CHECKING:
    from feasible.algorithms.base import Algorithm
    from feasible.constraints import ConstrainedEnv, ConstrainedVectorEnv, OnInfeasible

Preset = Callable[[], "Mapping[str, Algorithm]"]
"""The methods of a task by name, with the hyper-parameters of one experiment; called when a run is configured."""
DEFAULT = "default"
"""The preset that every task has: each method with its own defaults."""


@dataclass(frozen=True)
class Task:
    """An environment with its constraint, under the name by which people and runs know it."""

    name: str
    make: str
    """Id of a Gymnasium environment that judges its actions by the constraint."""
    title: str
    words: str
    """The constraint for people."""
    steps: int
    eval_every: int
    observation_size: int
    action_size: int
    episode_length: int
    episodes: int = 10
    """Per evaluation."""
    options: Mapping[str, object] = field(default_factory=dict)
    """Of the environment."""
    presets: Mapping[str, Preset] = field(default_factory=dict)
    """By name; the first is what a run takes that names none."""

    @property
    def first_preset(self) -> str:
        """The preset of a run that names none."""
        return next(iter(self.presets), DEFAULT)

    def preset(self, name: str) -> "Mapping[str, Algorithm]":
        """The methods with the hyper-parameters of a preset of this task."""
        if name not in self.presets:
            known = ", ".join([*self.presets, DEFAULT])
            raise ValueError(f"preset: the task {self.name!r} has no preset {name!r}; it has {known}.")
        return self.presets[name]()

    def env(
        self, on_infeasible: "OnInfeasible" = "raise", render_mode: str | None = None, **options: object
    ) -> "ConstrainedEnv":
        """The environment, constrained."""
        given = {**self.options, "on_infeasible": on_infeasible, "render_mode": render_mode, **options}
        return cast("ConstrainedEnv", gymnasium.make(self.make, **given))

    def copies(
        self, num_envs: int, on_infeasible: "OnInfeasible" = "raise", threads: int = 1, **options: object
    ) -> "ConstrainedVectorEnv":
        """Copies of the environment that step as one, on `threads` threads, and start again in the step they end in."""
        given = {**self.options, "on_infeasible": on_infeasible, "threads": threads, **options}
        return cast("ConstrainedVectorEnv", gymnasium.make_vec(self.make, num_envs, **given))
