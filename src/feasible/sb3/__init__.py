"""Stable-Baselines3 with action constraints: policies that are feasible by construction, and environments that repair.

    from feasible.sb3 import Violations, constrained_policy, safe

    env = safe(gym.make("HalfCheetah-v5"), constraint)
    model = SAC(constrained_policy("SAC", constraint), env)
    model.learn(10_000, callback=Violations(constraint))

Importing `feasible` does not load this package, which needs Stable-Baselines3: `pip install 'feasible[sb3]'`.
"""

try:
    import stable_baselines3 as _stable_baselines3  # noqa: F401  # pyright: ignore[reportMissingImports]
except ModuleNotFoundError as cause:
    raise ModuleNotFoundError(
        "feasible.sb3 needs Stable-Baselines3: pip install 'feasible[sb3]'.", name="stable_baselines3"
    ) from cause

from feasible.sb3.environments import ExecutedDictReplayBuffer as ExecutedDictReplayBuffer
from feasible.sb3.environments import ExecutedReplayBuffer as ExecutedReplayBuffer
from feasible.sb3.environments import safe as safe
from feasible.sb3.normalised import unnormalised as unnormalised
from feasible.sb3.policies import constrained_policy as constrained_policy
from feasible.sb3.violations import Violations as Violations
