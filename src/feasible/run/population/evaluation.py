"""Evaluation of a population: the episodes of all agents are copies of one environment, one policy call for all.

Each agent's episodes have the seeds that they have when it is evaluated alone (`feasible.run.evaluate`).
"""

import numpy as np

from feasible.constraints import ConstrainedVectorEnv
from feasible.run.evaluate import Evaluation, evaluation_seeds, play
from feasible.run.population.driver import Population


def evaluate_population(population: Population, env: ConstrainedVectorEnv, episodes: int) -> dict[int, Evaluation]:
    """By agent that has not failed, before or now: its evaluation at the present step.

    Plays `episodes` episodes of every agent in `env`, which has as many copies for each, agent by agent.
    """
    policies = population.policies
    seeds = [s for seed in population.seeds for s in evaluation_seeds(seed, population.step, episodes)]

    def refuse(copy: int, error: Exception) -> slice:
        agent = copy // episodes
        population.fail(agent, error)
        return slice(agent * episodes, (agent + 1) * episodes)

    returns, violations = play(
        lambda obs: population.programs.act(policies, obs, episodes),
        env,
        seeds,
        refuse,
        np.repeat(~population.live, episodes),
    )
    by_agent = zip(returns.reshape(-1, episodes).tolist(), violations.reshape(-1, episodes), strict=True)
    return {
        agent: Evaluation(tuple(own), float(violations.max()))
        for agent, (own, violations) in enumerate(by_agent)
        if population.live[agent]
    }
