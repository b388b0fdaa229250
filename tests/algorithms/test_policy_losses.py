"""The losses of PPO and FOCOPS, with their gradients in the policy's spread and last bias, by plain loops."""

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.typing import NDArray

from feasible.algorithms.base import Spec
from feasible.algorithms.focops import FOCOPS
from feasible.algorithms.gaussian import GaussianPolicy, Normal
from feasible.algorithms.on_policy import Batch, Critics, OnPolicy
from feasible.algorithms.ppo import PPO
from feasible.sets import Box
from tests.algorithms.plain import ball_task

SPEC = Spec(3, -jnp.ones(2), jnp.ones(2), lambda obs: Box(-jnp.ones(2), 1.0))
SMALL: dict[str, Any] = {"horizon": 64, "minibatch": 64, "hidden_layers": (4,), "bounded": False}
# Far outside both clips, close to them on either side, and one; with advantages of both signs.
RATIOS, ADVANTAGES = (
    grid.ravel() for grid in np.meshgrid([0.02, 0.5, 0.79, 0.81, 1, 1.19, 1.21, 7], [-2, -0.3, 0.4, 1])
)
COUNT = len(RATIOS)
LOG_STD = np.array([-0.3, 0.2])


class Case:
    """Networks, and a batch in which the ratios are the wanted ones."""

    def __init__(self, algorithm: OnPolicy, before: tuple[NDArray, NDArray]):
        rng, state = np.random.default_rng(0), algorithm.init(jax.random.key(0), SPEC)
        self.actor: GaussianPolicy = eqx.tree_at(lambda a: a.log_std, state.actor, jnp.asarray(LOG_STD))
        self.critics: Critics = state.critics
        self.x, self.targets = rng.normal(size=(COUNT, 3)), rng.normal(size=(COUNT, 1 + algorithm.costs))
        self.mean = np.asarray(jax.vmap(self.actor)(jnp.asarray(self.x)).mean)
        self.noise = rng.normal(size=(COUNT, 2))
        sample = self.mean + np.exp(LOG_STD) * self.noise
        density = -0.5 * np.sum(self.noise**2 + 2 * LOG_STD + np.log(2 * np.pi), axis=1)
        shift, log_std = before
        arrays = self.x, sample, sample, self.mean + shift, np.broadcast_to(log_std, (COUNT, 2))
        x, sample, clipped, mean, log_std = (jnp.asarray(array) for array in arrays)
        weights, advantages = jnp.asarray(density - np.log(RATIOS)), jnp.asarray(ADVANTAGES)[:, None]
        self.batch = Batch(x, sample, clipped, Normal(mean, log_std), weights, advantages, jnp.asarray(self.targets))

    def critic_error(self) -> float:
        said = np.concatenate([jax.vmap(critic)(self.batch.x) for critic in self.critics], axis=1)
        return float(np.sum(np.mean((said - self.targets) ** 2, axis=0)))

    def check(self, algorithm: PPO | FOCOPS, loss: float, by_mean: NDArray, by_log_std: NDArray) -> dict[str, float]:
        """The mean is a last bias plus what does not depend on it."""
        gradient = jax.jit(jax.value_and_grad(algorithm.loss, has_aux=True))
        (found, metrics), (actor, _) = gradient((self.actor, self.critics), self.batch)
        assert float(found) == pytest.approx(loss, rel=1e-10)
        np.testing.assert_allclose(actor.mean.layers[-1].bias, by_mean, rtol=1e-9)
        np.testing.assert_allclose(actor.log_std, by_log_std, rtol=1e-9)
        return {name: float(value) for name, value in metrics.items()}


def test_the_clipped_surrogate_of_ppo() -> None:
    algorithm = PPO(**SMALL, clip=0.2, entropy_weight=0.3)
    case = Case(algorithm, (np.zeros((COUNT, 2)), LOG_STD))
    surrogate, clipped, by_mean, by_log_std = 0.0, 0, np.zeros(2), np.full(2, -0.3)
    for ratio, advantage, noise in zip(RATIOS, ADVANTAGES, case.noise, strict=True):
        surrogate += min(ratio * advantage, min(max(ratio, 0.8), 1.2) * advantage) / COUNT
        clipped += not 0.8 <= ratio <= 1.2
        if (ratio > 1.2 and advantage > 0) or (ratio < 0.8 and advantage < 0):
            continue  # further away already than it is pushed
        by_mean -= ratio * advantage * noise / np.exp(LOG_STD) / COUNT
        by_log_std -= ratio * advantage * (noise**2 - 1) / COUNT
    entropy = np.sum(LOG_STD + 0.5 * np.log(2 * np.pi * np.e))
    loss = case.critic_error() - surrogate - 0.3 * entropy
    metrics = case.check(algorithm, loss, by_mean, by_log_std)
    assert metrics["actor/loss"] == pytest.approx(-surrogate)
    assert metrics["actor/clipped_share"] == clipped / COUNT


def test_the_penalised_surrogate_of_focops() -> None:
    algorithm = FOCOPS(**SMALL, temperature=1.5, reach=0.1, decay=0.01)
    spread = np.array([-0.25, 0.25])
    shift = np.random.default_rng(1).normal(size=(COUNT, 2)) * 0.4
    case = Case(algorithm, (shift, spread))
    surrogate, near, by_mean, by_log_std = 0.0, 0, np.zeros(2), np.zeros(2)
    for ratio, advantage, noise, away in zip(RATIOS, ADVANTAGES, case.noise, shift, strict=True):
        variance, earlier = np.exp(2 * LOG_STD), np.exp(2 * spread)
        divergence = np.sum(spread - LOG_STD + (variance + away**2) / (2 * earlier) - 0.5)
        if divergence > 0.1:
            continue
        near += 1
        surrogate += (divergence - ratio * advantage / 1.5) / COUNT
        by_mean += (-away / earlier - ratio * advantage / 1.5 * noise / np.exp(LOG_STD)) / COUNT
        by_log_std += (variance / earlier - 1 - ratio * advantage / 1.5 * (noise**2 - 1)) / COUNT
    assert 5 < near < COUNT - 5
    squares = sum(float(np.sum(np.square(leaf))) for leaf in jax.tree.leaves(case.critics))
    loss = surrogate + case.critic_error() + 0.01 * squares
    assert case.check(algorithm, loss, by_mean, by_log_std)["actor/loss"] == pytest.approx(surrogate)


def test_without_a_discount_an_episode_counts_its_steps() -> None:
    algorithm, limited = FOCOPS(discount=1.0), ball_task()
    assert algorithm.episode(limited) == 5.0
    assert replace(algorithm, discount=0.5).episode(limited) == pytest.approx(1 + 1 / 2 + 1 / 4 + 1 / 8 + 1 / 16)
    with pytest.raises(ValueError, match="discount must be below 1 where episodes have no limit of steps"):
        algorithm.episode(replace(limited, episode_length=None))
