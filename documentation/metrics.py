"""Tables of the metrics: those of every run, and those that the updates of each method report."""

from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np

from documentation.settings import example
from feasible import sets
from feasible.algorithms.base import Algorithm, Spec
from feasible.algorithms.fwpo_critic import BikeTable

EVERY_RUN: Mapping[str, str] = {
    "step": "environment steps made so far; on every line",
    "eval/return": "mean return of the episodes of an evaluation, without exploration",
    "eval/returns": "return of each of these episodes",
    "eval/executed_violation": "largest violation of an executed action in an evaluation",
    "train/episode_return": "mean return of the training episodes that ended since the last line",
    "violation/proposed_count": "proposals outside their feasible set since the warm-up, exploration included",
    "violation/intended_count": "the same without the exploration",
    "violation/executed_max": "largest violation of an executed action in training so far",
    "time/steps_per_second": "environment steps per second since the last line",
}
_MEANINGS: Mapping[str, str] = {
    "actor/frank_wolfe_gap": "mean over the states of the update of ⟨∇Q, c − x⟩, the Frank-Wolfe gap",
    "actor/grad_executed": "mean norm of the critic's gradient at the projected action",
    "actor/grad_proposed": "mean norm of the critic's gradient with respect to the proposal",
    "actor/loss": "the actor's loss",
    "actor/entropy": "mean entropy of the policy",
    "actor/entropy_weight": "weight of the entropy",
    "actor/divergence": "mean KL divergence between the policy that acted and the new one",
    "actor/clipped_share": "share of the ratios that were clipped",
    "actor/halvings": "halvings of the step before it was accepted",
    "actor/cost": "discounted cost of an episode, by the rollout's mean",
    "actor/multiplier": "ν, the weight of the cost",
    "actor/passes": "passes over the rollout that were made",
    "critic/augmented_share": "share of rejected proposals in the batch",
    "critic/loss": "mean squared error of the critic; of several, their sum",
    "critic/value": "mean value of the actions of the batch that the critic learns at",
    "policy/distance_to_optimal": "sum over all cells of the distance between the rounded action and staying put",
}


def metrics_table(method: str) -> str:
    """What the updates of a method report."""
    lines = ["| metric | what it is |", "|---|---|"]
    return "\n".join(lines + [f"| `{name}` | {_MEANINGS[name]} |" for name in reported(method)])


def every_run_table() -> str:
    lines = ["| metric | what it is |", "|---|---|"]
    return "\n".join(lines + [f"| `{name}` | {meaning} |" for name, meaning in EVERY_RUN.items()])


def reported(method: str) -> list[str]:
    """The names, from the update itself, traced and not run."""
    algorithm = example(method)

    def updated(key: jax.Array) -> dict[str, jax.Array]:
        spec = _spec(algorithm)
        state = algorithm.init(key, spec)
        return algorithm.update(state, spec, key, frozenset(algorithm.intervals))[1]

    return sorted(jax.eval_shape(updated, jax.random.key(0)))


def _spec(algorithm: Algorithm) -> Spec:
    if isinstance(algorithm, BikeTable):
        n, high = algorithm.stations, jnp.full(algorithm.stations, 35.0, jnp.float32)
        stock = sets.IntegerAllocation(algorithm.bikes, np.zeros(n, np.float32), 35.0)
        return Spec(2 * n + 1, jnp.zeros(n, jnp.float32), high, lambda obs: stock)
    one = jnp.ones(2, jnp.float32)
    return Spec(3, -one, one, lambda obs: sets.Box(-one, one), 100)
