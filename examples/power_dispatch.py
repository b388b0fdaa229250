"""Economic dispatch: four generators meet a demand that changes by the hour, each within its ramp limits.

    python examples/power_dispatch.py

The balance (outputs sum to the demand) is an equality that no network meets by itself, and ramp limits depend on the
state: low_i = max(min_i, output_i - ramp_i), high_i = min(max_i, output_i + ramp_i). Both are one `Allocation`. Two
methods learn on it and are held against two rules that know more or less than they do.
"""

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np

import feasible as fs

# In units of 100 MW: what each generator can give, how far it can go in an hour; its price is c p + q p^2.
LEAST = np.array([0.2, 0.2, 0.1, 0.0], np.float32)
MOST = np.array([2.0, 1.5, 1.0, 0.8], np.float32)
RAMP = np.array([0.25, 0.3, 0.5, 0.8], np.float32)
LINEAR = np.array([1.0, 1.4, 2.2, 3.5], np.float32)
SQUARE = np.array([0.3, 0.4, 0.3, 0.5], np.float32)
HOURS = 48


def constraint(obs: jax.Array) -> fs.sets.ActionSet:
    """Outputs that meet the demand obs[4] and can be reached within the hour from the outputs obs[:4]."""
    outputs, demand = jnp.asarray(obs[:4]), obs[4]
    return fs.sets.Allocation(demand, jnp.maximum(LEAST, outputs - RAMP), jnp.minimum(MOST, outputs + RAMP))


class Dispatch(gym.Env):
    """Observations: outputs, demand, hour as a point on the circle. The reward is minus the price of the hour."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (7,), np.float32)
    action_space = gym.spaces.Box(LEAST, MOST, dtype=np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, object] | None = None):
        super().reset(seed=seed)
        self.hour, self.outputs = int(self.np_random.integers(24)), 0.5 * (LEAST + MOST)
        return self.observed(), {}

    def step(self, action: np.ndarray):
        self.hour, self.outputs = self.hour + 1, np.asarray(action, np.float32)
        return self.observed(), -price(self.outputs), False, False, {}

    def observed(self) -> np.ndarray:
        wanted = 2.6 + 1.1 * np.sin(2 * np.pi * (self.hour - 6) / 24) + 0.1 * self.np_random.normal()
        # What ramps cannot follow is met elsewhere: the demand on these generators is one that they can meet.
        low, high = np.maximum(LEAST, self.outputs - RAMP), np.minimum(MOST, self.outputs + RAMP)
        demand = np.clip(wanted, np.sum(low) + 0.01, np.sum(high) - 0.01)
        turn = 2 * np.pi * self.hour / 24
        return np.array([*self.outputs, demand, np.sin(turn), np.cos(turn)], np.float32)


def price(outputs: np.ndarray) -> float:
    return float(np.sum(LINEAR * outputs + SQUARE * outputs**2))


gym.register("example/Dispatch-v0", entry_point=lambda **options: Dispatch(**options), max_episode_steps=HOURS)


def environment() -> gym.Env:
    return fs.constrain(gym.make("example/Dispatch-v0"), constraint)


@jax.jit
def cheapest(obs: jax.Array) -> jax.Array:
    """The cheapest outputs of this hour, by projected gradient: what an operator does who looks no further."""
    region = constraint(obs)

    def improve(_: int, p: jax.Array) -> jax.Array:
        return region.project(p - 0.5 * (LINEAR + 2 * SQUARE * p))

    return jax.lax.fori_loop(0, 50, improve, region.centre())


def played(act, episodes: int = 4) -> float:
    """Mean price of an hour under a rule."""
    env, total = environment(), 0.0
    for seed in range(episodes):
        obs, _ = env.reset(seed=100 + seed)
        for _ in range(HOURS):
            obs, reward, *_ = env.step(np.asarray(act(obs)))  # an infeasible action would be refused
            total -= float(reward) / (episodes * HOURS)
    return total


if __name__ == "__main__":
    settings = {"hidden_layers": (64, 64), "warmup": 300, "replay_size": 5_000, "actor_rate": 1e-3, "discount": 0.95}
    print(f"{'all alike':18s} {played(jax.jit(lambda obs: constraint(obs).centre())):6.3f} an hour")
    for method in (fs.DDPGProjection, fs.NFWPO):
        agent = method(environment(), seed=0, **settings)
        agent.learn(1_000)
        print(f"{method.__name__:18s} {played(agent.predict):6.3f} an hour, after {agent.step} hours of learning")
    print(f"{'cheapest by hour':18s} {played(cheapest):6.3f} an hour, with the prices known")
