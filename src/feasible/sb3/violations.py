"""A callback that counts violations: of what agents propose to the environment, and of what it executes."""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
# The type checker also runs where Stable-Baselines3 is not installed.

from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Bool
from stable_baselines3.common.callbacks import BaseCallback

from feasible.constraints import Constraint, Observation, certified
from feasible.constraints.action_box import in_action_box
from feasible.sb3.normalised import check_raw, normaliser_of


class Violations(BaseCallback):
    """Counts actions outside the feasible set of the raw observation, by the library's own tolerance.

    Logs `violation/proposed_count`, `violation/executed_count` and `violation/proposed_share` at every step; the
    counts are attributes, too. A proposal is what the agent passes to `env.step`; what is executed is the environment's
    `info["executed_action"]`, or the proposal where it says none.
    """

    def __init__(self, constraint: Constraint, verbose: int = 0):
        super().__init__(verbose)
        self.constraint = constraint
        self.steps = self.proposed_count = self.executed_count = 0

    def _on_training_start(self) -> None:
        rule = getattr(self.model.policy, "rule", None)
        if rule is not None:
            check_raw(self.training_env, rule.constraint)
        space = self.training_env.observation_space
        constraint = in_action_box(self.constraint, self.training_env.action_space, space.sample())

        def outside(obs: Observation, action: Array) -> Bool[Array, ""]:
            region = constraint(obs)
            violation, tolerance = certified(constraint, region, region.point(action))
            return ~(violation <= tolerance)

        self._outside = jax.jit(jax.vmap(outside))
        self._obs = self._raw(self.model._last_obs)

    def _on_step(self) -> bool:
        proposed = self.locals["clipped_actions" if "clipped_actions" in self.locals else "actions"]
        infos = self.locals["infos"]
        done = np.array([info.get("executed_action", action) for info, action in zip(infos, proposed, strict=True)])
        self.steps += len(infos)
        self.proposed_count += int(np.sum(self._outside(self._obs, proposed)))
        self.executed_count += int(np.sum(self._outside(self._obs, done)))
        self.logger.record("violation/proposed_count", self.proposed_count)
        self.logger.record("violation/executed_count", self.executed_count)
        self.logger.record("violation/proposed_share", self.proposed_count / self.steps)
        self._obs = self._raw(self.locals["new_obs"])
        return True

    def _raw(self, obs: Any) -> Any:
        """The observation before VecNormalize, kept from being overwritten."""
        normaliser = normaliser_of(self.training_env)
        return jax.tree.map(np.array, obs if normaliser is None else normaliser.get_original_obs())
