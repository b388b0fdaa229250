"""Policies of Stable-Baselines3 in the feasible set: densities that integrate to one, and what is refused."""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
# The type checker also runs where PyTorch is not installed, and then takes a folder of tests for it.

from pathlib import Path

import gymnasium as gym
import jax
import numpy as np
import pytest
import torch
from stable_baselines3 import PPO, SAC, TD3
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.logger import configure
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

import feasible as fs
from feasible.sb3 import ExecutedDictReplayBuffer, Violations, constrained_policy, safe, unnormalised
from tests.run.runs import as_a_user

RADIUS, OFFSET = 0.4, 0.3


def disc(obs: jax.Array) -> fs.sets.ActionSet:
    """A disc that moves with the observation, inside a box that is not the unit one."""
    return fs.sets.Ball(OFFSET * obs[:2], RADIUS)


class Point(gym.Env):
    """Observations at random, two actions between -2 and 2."""

    observation_space, action_space = gym.spaces.Box(-1.0, 1.0, (3,)), gym.spaces.Box(-2.0, 2.0, (2,))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.count = 0
        return self._seen(), {}

    def step(self, action):
        self.count += 1
        return self._seen(), -float(np.sum(np.square(action))), False, self.count == 20, {}

    def _seen(self):
        return self.np_random.uniform(-1.0, 1.0, 3).astype(np.float32)


class Parts(gym.ObservationWrapper):
    def __init__(self, env: gym.Env):
        super().__init__(env)
        self.observation_space = gym.spaces.Dict(
            place=gym.spaces.Box(-1.0, 1.0, (2,)), rest=gym.spaces.Box(-1.0, 1.0, (1,))
        )

    def observation(self, observation):
        return {"place": observation[:2], "rest": observation[2:]}


def polar(obs: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The disc of an observation: points inside with their areas, and points of its circle with their lengths."""
    (points, weights), count = np.polynomial.legendre.leggauss(80), 300
    radii, angles = 0.5 * RADIUS * (points + 1), (np.arange(count) + 0.5) * 2 * np.pi / count
    ways = np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    inside = OFFSET * obs[:2] + radii[:, None, None] * ways
    areas = np.broadcast_to((0.5 * RADIUS * weights * radii)[:, None] * 2 * np.pi / count, (80, count))
    return (
        inside.reshape(-1, 2),
        areas.reshape(-1),
        OFFSET * obs[:2] + RADIUS * ways,
        np.full(count, RADIUS * 2 * np.pi / count),
    )


@pytest.mark.parametrize("map", ["radial", "alpha"])
@pytest.mark.parametrize("agent", ["SAC", "PPO"])
def test_log_probabilities_integrate_to_one(agent: str, map: str) -> None:
    obs = np.array([0.5, -0.8, 0.1], np.float32)
    inside, areas, circle, lengths = polar(obs)
    with as_a_user():
        env = safe(Point(), disc)
        settings = {"policy_kwargs": {"log_std_init": -2.0}} if agent == "PPO" else {}
        model = {"SAC": SAC, "PPO": PPO}[agent](
            constrained_policy(agent, disc, map), env, seed=0, device="cpu", **settings
        )

        def density(actions: np.ndarray) -> np.ndarray:
            rows, given = torch.as_tensor(obs).expand(len(actions), 3), torch.as_tensor(actions, dtype=torch.float32)
            with torch.no_grad():
                if agent == "PPO":
                    return model.policy.evaluate_actions(rows, given)[1].exp().numpy()
                actor = model.policy.actor
                mean, log_std, _ = actor.get_action_dist_params(rows)
                return actor.inside.gaussian.log_prob(given / 2, mean, log_std - 2.0, rows).exp().numpy()

        unit = 2.0 if agent == "SAC" else 1.0  # lengths of SAC's scaled actions are half as long
        total = np.sum(density(inside).astype(float) * areas) / unit**2
        if map == "alpha":
            total += np.sum(density(circle).astype(float) * lengths) / unit
    assert total == pytest.approx(1.0, abs=5e-3)


def test_sac_says_the_density_of_its_action() -> None:
    with as_a_user():
        model = SAC(constrained_policy("SAC", disc), safe(Point(), disc), seed=0, device="cpu")
        actor, rows = model.policy.actor, torch.rand(2000, 3)
        action, log_prob = actor.action_log_prob(rows)
        mean, log_std, _ = actor.get_action_dist_params(rows)
        again = actor.inside.gaussian.log_prob(action.detach(), mean, log_std, rows)
    deep = (2 * action.detach() - OFFSET * rows[:, :2]).norm(dim=1) < 0.95 * RADIUS  # where float32 has an inverse
    assert deep.sum() > 10
    torch.testing.assert_close(again[deep], log_prob[deep], atol=2e-3, rtol=2e-3)


@pytest.mark.parametrize("map", ["radial", "alpha", "projection"])
@pytest.mark.parametrize(("agent", "kind"), [("SAC", SAC), ("TD3", TD3), ("PPO", PPO)])
def test_actions_lie_in_the_disc(agent: str, kind, map: str) -> None:
    noise = {"noise": 0.5} if agent == "TD3" else {}
    with as_a_user():
        model = kind(constrained_policy(agent, disc, map, **noise), safe(Point(), disc), seed=0, device="cpu")
        obs = np.random.default_rng(0).uniform(-1, 1, (200, 3)).astype(np.float32)
        for deterministic in (True, False):
            actions = model.predict(obs, deterministic=deterministic)[0]
            assert np.linalg.norm(actions - OFFSET * obs[:, :2], axis=1).max() <= RADIUS + 2e-5
        assert np.ptp(actions, axis=0).min() > 0.1


def test_the_callback_writes_into_the_logger(tmp_path: Path) -> None:
    with as_a_user():
        env = safe(Point(), disc)
        model = SAC("MlpPolicy", env, seed=0, device="cpu", learning_starts=1000)
        model.set_logger(configure(str(tmp_path), ["csv"]))
        violations = Violations(disc)
        model.learn(100, callback=violations, log_interval=1)
        model.logger.close()
    header, *lines = (tmp_path / "progress.csv").read_text().splitlines()
    last = dict(zip(header.split(","), lines[-1].split(","), strict=True))
    assert float(last["violation/executed_count"]) == 0
    assert float(last["violation/proposed_count"]) == violations.proposed_count > 80  # of uniform ones, 97%
    assert float(last["violation/proposed_share"]) == pytest.approx(violations.proposed_count / 100)


def test_several_copies_and_dict_observations() -> None:
    def of_parts(obs: dict) -> fs.sets.ActionSet:
        return fs.sets.Ball(OFFSET * obs["place"], RADIUS)

    with as_a_user():
        copies = make_vec_env(lambda: Parts(Point()), 2, wrapper_class=safe, wrapper_kwargs={"constraint": of_parts})
        violations = Violations(of_parts)
        model = SAC(
            constrained_policy("SAC", of_parts), copies, seed=0, device="cpu", learning_starts=20,
            replay_buffer_class=ExecutedDictReplayBuffer,
        )  # fmt: skip
        model.learn(60, callback=violations)
    assert violations.executed_count == 0
    assert 0 < violations.proposed_count <= 20
    stored, place = 2.0 * model.replay_buffer.actions[:30], model.replay_buffer.observations["place"][:30]
    assert np.linalg.norm(stored - OFFSET * place, axis=-1).max() <= RADIUS + 2e-5


def test_normalised_observations_are_refused_unless_unnormalised(tmp_path: Path) -> None:
    with as_a_user():
        env = VecNormalize(DummyVecEnv([lambda: safe(Point(), disc)]))
        with pytest.raises(ValueError, match="VecNormalize normalises the observations"):
            constrained_policy("SAC", env)
        for agent, kind in (("SAC", SAC), ("TD3", TD3), ("PPO", PPO)):
            with pytest.raises(ValueError, match="VecNormalize normalises the observations"):
                kind(constrained_policy(agent, disc), env, device="cpu")
        model = SAC(constrained_policy("SAC", disc), safe(Point(), disc), seed=0, device="cpu")
        model.save(tmp_path / "model")
        with pytest.raises(ValueError, match="VecNormalize normalises the observations"):
            SAC.load(tmp_path / "model", env=env, device="cpu")
        model.set_env(env)  # of which the policy does not hear
        with pytest.raises(ValueError, match="VecNormalize normalises the observations"):
            model.learn(10, callback=Violations(disc))
        rewards_only = VecNormalize(DummyVecEnv([lambda: safe(Point(), disc)]), norm_obs=False)
        SAC(constrained_policy("SAC", rewards_only), rewards_only, device="cpu")
        with pytest.raises(ValueError, match=r"still change; set env\.training = False"):
            unnormalised(disc, env)
        env.obs_rms.mean, env.obs_rms.var = np.array([0.1, -0.1, 0.0]), np.array([0.5, 0.3, 0.2])
        env.training = False
        model = SAC(constrained_policy("SAC", unnormalised(disc, env)), env, seed=0, device="cpu", learning_starts=0)
        violations = Violations(disc)
        model.learn(40, callback=violations)
        assert (violations.proposed_count, violations.executed_count) == (0, 0)


def test_what_does_not_fit_is_said_in_a_sentence() -> None:
    for wrong, sentence in (
        (lambda: constrained_policy("SACC", disc), "There is no algorithm 'SACC'. Known: SAC, TD3, PPO"),
        (lambda: constrained_policy("SAC", disc, "radail"), "There is no map 'radail'; did you mean 'radial'"),
        (lambda: constrained_policy("PPO", disc, noise=0.1), "noise is for TD3"),
        (lambda: constrained_policy("PPO", Point()), "the environment has no constraint"),
        (lambda: safe(DummyVecEnv([Point]), disc), "safe: wrap each environment before they are made one"),
        (lambda: PPO(constrained_policy("PPO", disc), Point(), use_sde=True), "use_sde has no density after a map"),
    ):
        with pytest.raises(ValueError, match=sentence):
            wrong()
