"""A limit on the rate of the action: thrusters that follow a command, change slowly and share one battery.

A constraint is a function of the observation, so the last action has to be in it: `fs.remember_action` puts it there.

    python examples/rate_limit.py
"""

import gymnasium as gym
import numpy as np

import feasible as fs

RATE, THRUST = 0.2, 1.0


class Thrusters(gym.Env):
    """Two thrusters are to follow a command that turns in a circle, and at times jumps. Observed is the command."""

    observation_space = gym.spaces.Box(-2.0, 2.0, (2,), np.float32)
    action_space = gym.spaces.Box(-1.0, 1.0, (2,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, object] | None = None):
        super().reset(seed=seed)
        self.angle = self.np_random.uniform(0, 2 * np.pi)
        return self.command(), {}

    def step(self, action: np.ndarray):
        reward = -float(np.sum((np.asarray(action) - self.command()) ** 2))
        jump = self.np_random.uniform(-np.pi, np.pi) if self.np_random.random() < 0.1 else 0.1
        self.angle += jump
        return self.command(), reward, False, False, {}

    def command(self) -> np.ndarray:
        return 1.2 * np.array([np.cos(self.angle), np.sin(self.angle)], np.float32)


# Registered, so that evaluations can make copies of it.
gym.register("example/Thrusters-v0", entry_point=lambda **options: Thrusters(**options), max_episode_steps=40)


def constraint(obs: np.ndarray) -> fs.sets.ActionSet:
    """|a - last| <= RATE for each thruster, and ||a|| <= THRUST for both together."""
    last = obs[-2:]
    return fs.sets.Box(last - RATE, last + RATE) & fs.sets.Ball(np.zeros(2, np.float32), THRUST)


if __name__ == "__main__":
    env = fs.constrain(fs.remember_action(gym.make("example/Thrusters-v0")), constraint)
    agent = fs.DDPGProjection(env, seed=0, hidden_layers=(32, 32), warmup=50, actor_rate=1e-3, discount=0.5)
    before = agent.evaluate(episodes=3).mean
    after = agent.learn(600).evaluate(episodes=3)
    print(f"return of an episode: {before:.1f} before and {after.mean:.1f} after {agent.step} steps of learning")
    print(f"largest violation of an executed action: {after.executed_violation:.1e}")

    obs, _ = env.reset(seed=1)
    actions = [obs[-2:]]
    for _ in range(40):
        obs, *_ = env.step(agent.predict(obs))
        actions.append(obs[-2:])
    changes, lengths = np.abs(np.diff(actions, axis=0)), np.linalg.norm(actions, axis=1)
    print(f"largest change of a thruster in a step: {changes.max():.3f} of {RATE}")
    print(f"largest thrust: {lengths.max():.3f} of {THRUST}")
