"""Evaluation as in the paper: whole episodes of the policy without exploration, executed through the feasible set.

Environments are seeded apart from training, by (seed of the run, step, episode); so an evaluation depends on nothing
that training did before it but the policy, and training depends on no evaluation.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from gymnasium.spaces.utils import flatdim
from jaxtyping import Array, Bool, Float, PyTree

from feasible.constraints import ConstrainedVectorEnv, Judge
from feasible.constraints.outcomes import flattened_copies, restarted_copies, stepped_copies
from feasible.run.drive.faults import NotFiniteError
from feasible.run.drive.lone import Lone
from feasible.run.drive.population import Population
from feasible.run.drive.programs import Policy
from feasible.run.drive.wire import Wire


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


def evaluate_agents(driver: Lone | Population, env: ConstrainedVectorEnv, episodes: int) -> dict[int, Evaluation]:
    """By agent that has not failed, before or now: its evaluation at the present step.

    Plays `episodes` episodes of every agent in `env`, which has as many copies for each, agent by agent.
    """
    seeds = [s for seed in driver.seeds for s in evaluation_seeds(seed, driver.step, episodes)]

    def refuse(copy: int, error: Exception) -> slice:
        agent = copy // episodes
        driver.fail(agent, error)
        return slice(agent * episodes, (agent + 1) * episodes)

    returns, violations = play(driver.acting(episodes), env, seeds, refuse, np.repeat(~driver.live, episodes))
    by_agent = zip(returns.reshape(-1, episodes).tolist(), violations.reshape(-1, episodes), strict=True)
    return {
        agent: Evaluation(tuple(own), float(violations.max()))
        for agent, (own, violations) in enumerate(by_agent)
        if driver.live[agent]
    }


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
    wire = Wire(0, flatdim(simulator.single_action_space))
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
            # Some action that the simulator can step with: that of a copy which goes on.
            actions = np.where(given_up[:, None], actions[np.argmax(running)], actions)
        np.maximum(largest, violations, out=largest, where=running)
        step += 1
        obs, rewards, terminated, truncated, _ = stepped_copies(simulator, actions, form, step)
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
