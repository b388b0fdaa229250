"""Evaluation as in the paper: whole episodes of the policy without exploration, executed through the feasible set.

Environments are seeded apart from training, by (seed of the run, step, episode); so an evaluation depends on nothing
that training did before it but the policy, and training depends on no evaluation.
"""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree
from numpy.typing import NDArray

from feasible.algorithms.base import Algorithm, Spec
from feasible.constraints import ConstrainedVectorEnv, Judge
from feasible.run.finite import NotFiniteError
from feasible.run.step import full_precision

# (policy, observations) -> [actions | violation | tolerance] a row.
Policy = Callable[[PyTree[Array], Float[np.ndarray, "c o"]], Float[Array, "c n+2"]]


@dataclass(frozen=True)
class Evaluation:
    """The returns of the episodes, and the largest violation of an executed action in them."""

    returns: tuple[float, ...]
    executed_violation: float

    @property
    def mean(self) -> float:
        return sum(self.returns) / len(self.returns)

    def metrics(self) -> dict[str, float | list[float]]:
        return {
            "eval/return": self.mean,
            "eval/returns": list(self.returns),
            "eval/executed_violation": self.executed_violation,
        }


def compiled_policy(algorithm: Algorithm, spec: Spec) -> Policy:
    """Acting without exploration, on a batch of observations, with the violation of what is to be executed."""

    @full_precision
    def act(policy: PyTree[Array], obs: Float[Array, " o"]) -> Float[Array, " n+2"]:
        decision = algorithm.decide(policy, spec, obs, jax.random.key(0), explore=False)
        feasible_set = spec.feasible_set(obs)
        judgement = jnp.stack([feasible_set.violation(decision.executed), feasible_set.tolerance])
        return jnp.concatenate([decision.executed, judgement.astype(decision.executed.dtype)])

    return jax.jit(jax.vmap(act, in_axes=(None, 0)))


def evaluation_seeds(seed: int, step: int, episodes: int) -> list[int]:
    """Seeds of the episodes: far from those of training, different at every step."""
    states = np.random.SeedSequence([seed, step, 1]).generate_state(episodes, np.uint32)
    return [int(state) for state in states]


def evaluate(act: Policy, policy: PyTree[Array], env: ConstrainedVectorEnv, seeds: list[int]) -> Evaluation:
    """One episode in each copy of the environment; a copy that is done waits for the others."""
    simulator = env.env
    obs, _ = simulator.reset(seed=seeds)  # pyright: ignore[reportArgumentType]
    returns, running = np.zeros(len(seeds)), np.ones(len(seeds), bool)
    largest = 0.0
    while running.any():
        rows = np.asarray(act(policy, np.asarray(obs, np.float32)))
        actions, violations, tolerances = rows[:, :-2], rows[:, -2], rows[:, -1]
        _check_actions(env, obs, actions, running & ~(violations <= tolerances))
        largest = max(largest, float(violations[running].max()))
        obs, rewards, terminated, truncated, _ = simulator.step(actions)
        _check_rewards(rewards, running)
        returns += np.where(running, rewards, 0.0)
        running &= ~(terminated | truncated)
    return Evaluation(tuple(returns.tolist()), largest)


def _check_rewards(rewards: NDArray, running: NDArray[np.bool_]) -> None:
    bad = np.flatnonzero(running & ~np.isfinite(rewards))
    if len(bad):
        raise NotFiniteError(
            f"A reward of evaluation episode {bad[0]} is {rewards[bad[0]]}: the environment must give finite ones."
        )


def _check_actions(env: ConstrainedVectorEnv, obs: NDArray, actions: NDArray, refused: NDArray[np.bool_]) -> None:
    if refused.any():
        copy = int(np.argmax(refused))
        judge = Judge(env.constraint, "raise", batched=False)
        raise judge.explain(np.asarray(obs[copy], np.float32), actions[copy], f" of evaluation episode {copy}")
