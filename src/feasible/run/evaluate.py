"""Evaluation as in the paper: whole episodes of the policy without exploration, executed through the feasible set.

Environments are seeded apart from training, by (seed of the run, step, episode); so an evaluation depends on nothing
that training did before it but the policy, and training depends on no evaluation.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
from gymnasium.spaces.utils import flatdim
from jaxtyping import Array, Bool, Float, PyTree

from feasible.algorithms.spec import episode_length
from feasible.constraints import ConstrainedVectorEnv, Judge
from feasible.constraints.action_box import handed_over
from feasible.constraints.outcomes import flattened_copies, restarted_copies, stepped_copies
from feasible.run.drive.faults import NotFiniteError
from feasible.run.drive.lone import Lone
from feasible.run.drive.population import Population
from feasible.run.drive.programs import Policy
from feasible.run.drive.wire import Wire

LONGEST = 100_000
"""Steps of an episode without a limit of time, after which it is taken for one that never ends."""


@dataclass(frozen=True)
class Evaluation:
    """The returns of the episodes, and the largest violation of an executed action in them."""

    returns: tuple[float, ...]
    executed_violation: float

    @property
    def mean(self) -> float:
        return sum(self.returns) / len(self.returns)

    def __repr__(self) -> str:
        return (
            f"Evaluation(mean={self.mean:.6g}, episodes={len(self.returns)}, lowest={min(self.returns):.6g}, "
            f"highest={max(self.returns):.6g}, executed_violation={self.executed_violation:.2g})"
        )

    def metrics(self) -> dict[str, float | list[float]]:
        return {
            "eval/return": self.mean,
            "eval/returns": list(self.returns),
            "eval/executed_violation": self.executed_violation,
        }


def evaluation_seeds(seed: int, step: int, episodes: int) -> list[int]:
    """Seeds of the episodes: far from those of training, different at every step."""
    states = np.random.SeedSequence([seed, step, 1]).generate_state(episodes, np.uint32)
    return [int(state) for state in states]


def evaluate(act: Policy, policy: PyTree[Array], env: ConstrainedVectorEnv, seeds: list[int]) -> Evaluation:
    """One episode in each copy of the environment."""
    returns, violations = play(lambda obs: np.asarray(act(policy, obs)), env, seeds)
    return Evaluation(tuple(returns.tolist()), float(violations.max()))


class AgentsEvaluation:
    """An evaluation of a driver's agents as they are now: prepared by its thread, played by any, told by its thread.

    Plays `episodes` episodes of every agent that has not failed in `env`, which has as many copies for each, agent by
    agent. It changes nothing of the driver until it is told, so the driver may go on meanwhile.
    """

    def __init__(self, driver: Lone | Population, env: ConstrainedVectorEnv, episodes: int) -> None:
        self.step, self.live = driver.step, driver.live.copy()
        self._env, self._episodes, self._act = env, episodes, driver.acting(episodes)
        self._seeds = [s for seed in driver.seeds for s in evaluation_seeds(seed, driver.step, episodes)]
        self._refused: dict[int, Exception] = {}

    def play(self) -> Self:
        """Play the episodes."""
        left_out = np.repeat(~self.live, self._episodes)
        self._returns, self._violations = play(self._act, self._env, self._seeds, self._refuse, left_out)
        return self

    def tell(self, driver: Lone | Population) -> dict[int, Evaluation]:
        """By agent: its evaluation, after it was played; the driver hears of those that cannot go on."""
        for agent, error in self._refused.items():
            self.live[agent] = False
            if driver.live[agent]:
                driver.fail(agent, error)
        returns = self._returns.reshape(-1, self._episodes).tolist()
        violations = self._violations.reshape(-1, self._episodes).max(axis=1).tolist()
        agents = np.flatnonzero(self.live).tolist()
        return {agent: Evaluation(tuple(returns[agent]), violations[agent]) for agent in agents}

    def _refuse(self, copy: int, error: Exception) -> slice:
        agent = copy // self._episodes
        self._refused[agent] = error
        return slice(agent * self._episodes, (agent + 1) * self._episodes)


def _stop(copy: int, error: Exception) -> slice:
    del copy
    raise error


def play(
    act: Callable[[Float[np.ndarray, "c o"]], Float[np.ndarray, "c n+2"]],
    env: ConstrainedVectorEnv,
    seeds: list[int],
    refuse: Callable[[int, Exception], slice] = _stop,
    left_out: Bool[np.ndarray, " c"] | None = None,
) -> tuple[Float[np.ndarray, " c"], Float[np.ndarray, " c"]]:
    """One episode in each copy; a copy that is done waits for the others. Returns, and largest executed violations.

    `refuse` hears of a copy that cannot go on, and says which copies are given up with it.
    """
    simulator, judge = env.env, Judge(env.constraint, "raise", batched=False)
    form, step = env.layout or simulator.observation_space.shape, 0
    wire, longest = Wire(0, flatdim(simulator.single_action_space)), episode_length(env) or LONGEST
    obs, _ = restarted_copies(simulator, form, step, seed=seeds)
    returns, largest = np.zeros(len(seeds)), np.zeros(len(seeds))
    given_up = np.zeros(len(seeds), bool) if left_out is None else left_out.copy()
    running = ~given_up
    while running.any():
        seen = np.asarray(flattened_copies(obs, form, len(seeds), step), np.float32)
        rows = act(seen)
        violations, tolerances = wire.certificate(rows)
        actions = wire.executed(rows).copy()  # the environment's own, to write to
        for copy in np.flatnonzero(running & ~(violations <= tolerances)).tolist():
            if not given_up[copy]:
                error = judge.explain(seen[copy], actions[copy], f" of evaluation episode {copy}")
                given_up[refuse(copy, error)] = True
        if given_up.any():
            running &= ~given_up
            if not running.any():
                break
            # Some action that the simulator can step with: that of a copy which goes on.
            actions = np.where(given_up[:, None], actions[np.argmax(running)], actions)
        np.maximum(largest, violations, out=largest, where=running)
        step += 1
        if step > longest:
            raise ValueError(
                f"evaluate: an episode of the evaluation has not ended after {longest:,} steps; give the environment a "
                "limit, as gymnasium.wrappers.TimeLimit(env, 1000) does."
            )
        handed = handed_over(actions, simulator.action_space)
        obs, rewards, terminated, truncated, _ = stepped_copies(simulator, handed, form, step)
        for copy in np.flatnonzero(running & ~np.isfinite(rewards)).tolist():
            if not given_up[copy]:
                error = NotFiniteError(
                    f"A reward of evaluation episode {copy} is {rewards[copy]}: "
                    "the environment must return finite rewards."
                )
                given_up[refuse(copy, error)] = True
        returns += np.where(running, rewards, 0.0)
        running &= ~(terminated | truncated)
    return returns, largest
