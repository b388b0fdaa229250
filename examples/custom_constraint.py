"""Your own environment and constraint: heaters of three rooms behind one fuse whose rating changes with the hour.

    python examples/custom_constraint.py

The constraint is one line, a function from the observation to a set. Nothing else has to know about it: the agent acts,
explores and learns inside, and the environment would refuse an action outside.
"""

import gymnasium as gym
import numpy as np

import feasible as fs

ROOMS = 3
LOSSES = np.array([0.1, 0.2, 0.4])  # rooms differ in their walls


class Heating(gym.Env):
    """Rooms cool towards the outside; the reward is minus the squared distance from 20 degrees, in tens of degrees."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (ROOMS + 1,), np.float32)
    action_space = gym.spaces.Box(0.0, 1.0, (ROOMS,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, object] | None = None):
        super().reset(seed=seed)
        self.hour, self.warmth = 0, self.np_random.uniform(-1.0, 0.0, ROOMS)
        return self.observed(), {}

    def step(self, action: np.ndarray):
        self.hour += 1
        self.warmth = 0.8 * self.warmth - LOSSES + 0.5 * np.asarray(action)
        return self.observed(), -float(np.sum(self.warmth**2)), False, self.hour == 24, {}

    def observed(self) -> np.ndarray:
        # Whatever the constraint depends on must be in the observation: here the power that the fuse allows now.
        fuse = 1.5 + 0.5 * np.sin(2 * np.pi * self.hour / 24)
        return np.array([*self.warmth, fuse], np.float32)


# Registered, so that evaluations can make copies of it.
gym.register("example/Heating-v0", entry_point=lambda **options: Heating(**options), max_episode_steps=24)


def constraint(obs: np.ndarray) -> fs.sets.ActionSet:
    """0 <= a <= 1, and the sum of all heaters within the fuse."""
    return fs.sets.AllocationAtMost(total=obs[ROOMS], low=np.zeros(ROOMS), high=np.ones(ROOMS))


if __name__ == "__main__":
    env = fs.constrain(gym.make("example/Heating-v0"), constraint)
    # Small networks and a short horizon: rooms forget within hours.
    settings = {"hidden_layers": (32, 32), "warmup": 200, "replay_size": 5_000, "actor_rate": 1e-3, "discount": 0.9}
    agent = fs.NFWPO(env, seed=0, **settings)
    before = agent.evaluate(episodes=5).mean
    after = agent.learn(1_500).evaluate(episodes=5)
    print(f"return of a day: {before:.2f} before and {after.mean:.2f} after {agent.step} steps of learning")
    print(f"largest violation of an executed action: {after.executed_violation:.1e}")

    obs, _ = env.reset(seed=1)
    print("heaters for", np.round(obs, 2), "are", np.round(agent.predict(obs), 2))
    try:
        env.step(np.ones(ROOMS, np.float32))
    except fs.InfeasibleActionError as refusal:
        print("all heaters on:", refusal)
