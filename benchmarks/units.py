"""A small task with its actions in five units: what is learned by critics that see these, or units of the action box.

    python -m benchmarks.units [--algos NAME ...] [--seeds N] [--steps N]

A point in the plane is to be brought to zero; an action, of at most 0.6 of half its box, moves it. Only the middle and
the width of the action box differ between columns. Costs about ten seconds per run on one core.
"""

import argparse

import gymnasium as gym
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

import feasible as fs
from feasible.constraints import ConstrainedEnv

BOXES = ((0.0, 1.0), (50.0, 50.0), (20.0, 5.0), (0.0, 1000.0), (0.0, 0.01))
"""Middle and half width."""
EPISODES = 20


class Point(gym.Env[NDArray, NDArray]):
    """The reward is minus the squared distance from zero, over 30 steps."""

    def __init__(self, middle: float, half: float) -> None:
        self.middle, self.half = middle, half
        self.observation_space = gym.spaces.Box(-5.0, 5.0, (2,), np.float32)
        self.action_space = gym.spaces.Box(middle - half, middle + half, (2,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, object] | None = None) -> tuple[NDArray, dict]:
        super().reset(seed=seed)
        self.place, self.steps = self.np_random.uniform(-2.0, 2.0, 2), 0
        return self.place.astype(np.float32), {}

    def step(self, action: NDArray) -> tuple[NDArray, float, bool, bool, dict]:
        move = (np.asarray(action, np.float64) - self.middle) / self.half
        self.place, self.steps = np.clip(self.place + 0.3 * move, -3.0, 3.0), self.steps + 1
        return self.place.astype(np.float32), -float(self.place @ self.place), False, self.steps >= 30, {}


def made(middle: float, half: float) -> ConstrainedEnv:
    return fs.constrain(Point(middle, half), lambda obs: fs.sets.Ball(jnp.full(2, middle), 0.6 * half))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--algos", nargs="+", metavar="NAME", default=["td3-radial", "td3-nfwpo"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=2_000)
    given = parser.parse_args()
    columns = [f"{middle - half:g} to {middle + half:g}" for middle, half in BOXES]
    print("| method | critics see | " + " | ".join(columns) + " |")
    print("| --- | --- |" + " --: |" * len(columns))
    for algo in given.algos:
        for units in ("action", "box"):
            cells = []
            for middle, half in BOXES:
                returns = []
                for seed in range(given.seeds):
                    settings = {"hidden_layers": (64, 64), "warmup": 500, "critic_units": units}
                    agent = fs.agent(algo, made(middle, half), seed=seed, **settings)  # pyright: ignore[reportArgumentType]
                    agent.learn(given.steps)
                    returns.append(agent.evaluate(EPISODES, env=lambda m=middle, h=half: made(m, h)).mean)
                cells.append(f"{np.mean(returns):.2f}")
            print(f"| `{algo}` | {units} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
