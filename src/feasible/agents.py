"""Agents: a method bound to an environment of yours, as in `NFWPO(env, seed=0).learn(100_000)`.

Any environment that `feasible.constrain` or `feasible.make` made will do. The agents are thin: the algorithm is in
`feasible.algorithms`, the loop in `feasible.run.driver`.
"""

from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from jaxtyping import Array, Float, PyTree
from numpy.typing import ArrayLike, NDArray

from feasible.algorithms.actor_rules import ActorRule, FrankWolfe, PolicyGradient, ThroughProjection
from feasible.algorithms.base import Algorithm, Spec
from feasible.algorithms.ddpg import DDPG
from feasible.run.driver import Driver
from feasible.run.environment import plant
from feasible.run.evaluate import Evaluation, compiled_policy, evaluate, evaluation_seeds
from feasible.run.policy import load_policy, save_policy


class Agent:
    """A policy on an environment: `predict`, `evaluate`, `save`, and, unless it was loaded, `learn`."""

    def __init__(self, env: gym.Env, algorithm: Algorithm, seed: int, policy: PyTree[Array] | None = None):
        self.env, self.algorithm, self.seed = env, algorithm, seed
        self._plant = plant(env)
        self._act = compiled_policy(algorithm, self._plant.spec)
        self._loaded = policy
        self._driver = Driver(algorithm, self._plant, seed) if policy is None else None

    @property
    def step(self) -> int:
        """Environment steps made so far."""
        return self._driver.step if self._driver is not None else 0

    @property
    def policy(self) -> PyTree[Array]:
        """What acting needs: the actor."""
        if self._driver is None:
            return self._loaded
        if not self._driver.started:
            self._driver.start()
        return self.algorithm.policy(self._driver.carry.algorithm)

    def learn(self, steps: int, *, progress_bar: bool = False) -> "Agent":
        """Make so many more steps of training. Every executed action lies in its feasible set."""
        if self._driver is None:
            raise ValueError("learn: an agent that was loaded from a file holds its policy only; train a new one.")
        if not self._driver.started:
            self._driver.start()
        until = self._driver.step + steps
        if not progress_bar:
            self._driver.advance(until)
            return self
        from rich.progress import track

        tenth = max(1, steps // 100)
        for goal in track(range(self._driver.step + tenth, until + tenth, tenth), description="learning"):
            self._driver.advance(min(goal, until))
        return self

    def predict(self, obs: ArrayLike) -> NDArray[np.float32]:
        """The action for an observation (or a batch of them), without exploration; always feasible."""
        rows = np.asarray(obs, np.float32)
        single = rows.ndim == 1
        if rows.shape[-1:] != (self._plant.spec.observation_size,) or rows.ndim > 2:
            raise ValueError(
                f"predict: observations have {self._plant.spec.observation_size} entries, got shape {rows.shape}."
            )
        answers = np.asarray(self._act(self.policy, rows[None] if single else rows))[:, :-2]
        return answers[0] if single else answers

    def evaluate(self, episodes: int = 10, *, seed: int = 0, env: gym.Env | None = None) -> Evaluation:
        """Play whole episodes without exploration, in copies of the environment (or of `env`) seeded apart."""
        copies = SyncVectorEnv([_copier(env or self.env)] * episodes, autoreset_mode=AutoresetMode.SAME_STEP)
        try:
            return evaluate(self._act, self.policy, copies, evaluation_seeds(seed, self.step, episodes))
        finally:
            copies.close()

    def save(self, path: str | Path) -> None:
        """Write the policy: weights and a description, no code, no constraint."""
        save_policy(Path(path), self.algorithm, self._plant.spec, self.policy)


class _Neural(Agent):
    def __init__(self, env: gym.Env, rule: ActorRule, seed: int, settings: dict[str, object]):
        known = sorted({f.name for f in fields(DDPG)} - {"rule"})
        unknown = sorted(set(settings) - set(known))
        if unknown:
            raise TypeError(f"{type(self).__name__} has no setting {unknown[0]!r}; it has {', '.join(known)}.")
        algorithm = replace(DDPG(rule=rule, noise=_tenth(plant(env).spec), warmup=1_000), **settings)
        super().__init__(env, algorithm, seed)


class NFWPO(_Neural):
    """Neural Frank-Wolfe policy optimisation: regression to feasible reference actions (Algorithm 2 of the paper).

    >>> agent = NFWPO(feasible.make("reacher"), seed=0, frank_wolfe_step=0.05)
    >>> agent.learn(50_000, progress_bar=True).evaluate().mean

    Settings, all by keyword: `frank_wolfe_step` (0.05) is alpha of the paper; `noise` the standard deviation of the
    exploration, in units of the action (a tenth of half the action box); `warmup` (1,000) steps with actions drawn
    from the feasible sets; `batch_size` (64), `replay_size` (1,000,000), `discount` (0.99), `actor_rate` (1e-4),
    `critic_rate` (1e-3), `target_ratio` (1e-3), `actor_interval` and `critic_interval` (1), `hidden_layers`
    ((400, 300)), `actor_hidden` and `critic_hidden` ("relu" or "leaky_relu"), `output` ("tanh", "relu", "leaky_relu").
    """

    def __init__(self, env: gym.Env, *, seed: int = 0, frank_wolfe_step: float = 0.05, **settings: object):
        super().__init__(env, FrankWolfe(frank_wolfe_step), seed, settings)


class DDPGProjection(_Neural):
    """DDPG whose proposals are projected before they are executed. Settings as of `NFWPO`."""

    def __init__(self, env: gym.Env, *, seed: int = 0, **settings: object):
        super().__init__(env, PolicyGradient(), seed, settings)


class DDPGShaping(_Neural):
    """DDPG with projection and `shaping` (1.0) times the distance to the projection taken off the reward."""

    def __init__(self, env: gym.Env, *, seed: int = 0, shaping: float = 1.0, **settings: object):
        super().__init__(env, PolicyGradient(), seed, {"shaping": shaping, **settings})


class DDPGOptLayer(_Neural):
    """DDPG with the projection as the actor's last layer, differentiated exactly. Settings as of `NFWPO`."""

    def __init__(self, env: gym.Env, *, seed: int = 0, **settings: object):
        super().__init__(env, ThroughProjection(), seed, settings)


def load(path: str | Path, env: gym.Env) -> Agent:
    """The agent of a policy file, on an environment that brings the constraint. Loading runs no code from the file."""
    algorithm, policy = load_policy(Path(path), plant(env).spec)
    return Agent(env, algorithm, 0, policy)


def _tenth(spec: Spec) -> tuple[float, ...]:
    """A tenth of half the action box, by coordinate."""
    half: Float[np.ndarray, " n"] = (np.asarray(spec.high) - np.asarray(spec.low)) / 2
    return tuple(float(width) / 10 for width in half)


def _copier(env: gym.Env) -> Callable[[], gym.Env]:
    """A function that makes the environment anew."""
    if env.spec is None:
        raise ValueError(
            "evaluate: the environment cannot be copied, since it was not made by gymnasium.make; "
            "pass one that was, as evaluate(env=...)."
        )
    return lambda: gym.make(env.spec)  # pyright: ignore[reportArgumentType]
