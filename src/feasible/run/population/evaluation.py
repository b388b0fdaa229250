"""Evaluation of a population: the episodes of all agents are copies of one environment, one policy call for all.

Each agent's episodes have the seeds that they have when it is evaluated alone (`feasible.run.evaluate`).
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from feasible.algorithms.base import Algorithm
from feasible.constraints import ConstrainedVectorEnv
from feasible.run.evaluate import Evaluation, certified_action, evaluation_seeds, play
from feasible.run.population.driver import Population
from feasible.run.population.programs import PopulationPrograms


class PopulationEvaluator:
    """Plays `episodes` episodes of every agent in `env`, which has as many copies for each, agent by agent."""

    def __init__(self, programs: PopulationPrograms, env: ConstrainedVectorEnv, episodes: int):
        self._env, self._episodes = env, episodes
        self._groups, self._spec = programs.groups, programs.spec
        self._act = jax.jit(self._acts)

    def _acts(self, policies: list[PyTree[Array]], obs: Float[Array, "c o"]) -> Float[Array, "c n+2"]:
        """[actions | violation | tolerance] a row."""
        by_agent = obs.reshape(-1, self._episodes, obs.shape[-1])

        def of_agent(algorithm: Algorithm, policy: PyTree[Array], obs: Float[Array, "e o"]) -> Array:
            return jax.vmap(lambda one: certified_action(algorithm, self._spec, policy, one))(obs)

        parts = zip(self._groups, policies, strict=True)
        answers = [group.vmap(of_agent)(policy, by_agent[group.rows]) for group, policy in parts]
        return jnp.concatenate(answers).reshape(len(obs), -1)

    def evaluate(self, population: Population) -> dict[int, Evaluation]:
        """By agent that has not failed, before or now: its evaluation at the present step."""
        episodes, policies = self._episodes, population.policies
        seeds = [s for seed in population.seeds for s in evaluation_seeds(seed, population.step, episodes)]

        def refuse(copy: int, error: Exception) -> slice:
            agent = copy // episodes
            population.fail(agent, error)
            return slice(agent * episodes, (agent + 1) * episodes)

        returns, violations = play(
            lambda obs: np.asarray(self._act(policies, obs)),
            self._env,
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
