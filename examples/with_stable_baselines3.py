"""An agent of another library made safe: SAC of Stable-Baselines3 on an environment that repairs its actions.

    pip install stable-baselines3
    python examples/with_stable_baselines3.py

With `on_infeasible="project"` an action outside the feasible set is replaced by the nearest one inside before the
environment steps, so any library that knows Gymnasium can train on it. What was executed is in `info`.
"""

import sys

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np

import feasible as fs

STEPS = 600


def constraint(obs: jax.Array) -> fs.sets.ActionSet:
    """Pendulum's torque may be the smaller the faster it turns."""
    return fs.sets.Ball(jnp.zeros(1), 2.0 - 0.15 * jnp.abs(obs[2]))


if __name__ == "__main__":
    try:
        from stable_baselines3 import SAC  # pyright: ignore[reportMissingImports]
        from stable_baselines3.common.callbacks import BaseCallback  # pyright: ignore[reportMissingImports]
    except ModuleNotFoundError:
        sys.exit("This example needs Stable-Baselines3: pip install stable-baselines3.")

    class Watch(BaseCallback):
        """Counts what was repaired, and measures what was executed."""

        repaired, largest = 0, 0.0

        def _on_step(self) -> bool:
            for info, obs in zip(self.locals["infos"], self.seen, strict=True):
                allowed = constraint(jnp.asarray(obs))
                self.repaired += info["proposed_violation"] > float(allowed.tolerance)
                self.largest = max(self.largest, float(allowed.violation(info["executed_action"])))
            self.seen = np.array(self.locals["new_obs"])
            return True

        def _on_training_start(self) -> None:
            self.seen = np.array(self.model._last_obs)

    env = fs.constrain(gym.make("Pendulum-v1"), constraint, on_infeasible="project")
    agent = SAC("MlpPolicy", env, seed=0, learning_starts=200, train_freq=4, policy_kwargs={"net_arch": [32, 32]})
    watch = Watch()
    agent.learn(STEPS, callback=watch)
    print(f"{watch.repaired} of {STEPS} actions were outside the feasible set and repaired")
    print(f"largest violation of an executed action: {watch.largest:.1e}")

    obs, _ = env.reset(seed=1)
    total, running = 0.0, True
    while running:
        action, _ = agent.predict(obs, deterministic=True)
        obs, reward, terminated, truncated, _ = env.step(action)
        total, running = total + float(reward), not (terminated or truncated)
    print(f"return of an episode of the trained policy: {total:.0f}")
