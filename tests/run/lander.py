"""A lander of another package, with a limit on its engines: what a user writes to have it as a task."""

import gymnasium as gym
import jax.numpy as jnp

import feasible as fs


def thrust(obs):
    """|main engine| + |side engines| <= 1.2, and 0.4 less while the first leg touches the ground."""
    return fs.sets.WeightedL1Box(weights=jnp.ones(2), budget=1.2 - 0.4 * obs[6], bound=1.0)


def make(**options):
    return gym.make("LunarLander-v3", continuous=True, max_episode_steps=60, **options)


lander = fs.Task("lander", make, thrust, title="a lander", steps=240, eval_every=120, episodes=2)
wrong = make
