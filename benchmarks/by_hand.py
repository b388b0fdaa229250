"""Trained policies beside the rule by hand of their task, on the same episodes.

    python -m benchmarks.by_hand RUN ... [--episodes N]

The rule is to leave the bikes where they are on bike sharing, and the best fixed rates on NSFNET. A run's evaluations
vary with the days that they meet; differences between two policies on the same days do not. Episodes are those that the
rules were scored on (`feasible.paper.references`). Costs seconds per run.
"""

import argparse
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from feasible.paper.references import EPISODES, FOUND_RATES, SEED, Actions, Observations, at_rates, play, score, stay
from feasible.run.loading import TrainedRun, load_run

Policy = Callable[[Observations], Actions]


def by_hand(task: str) -> Policy:
    """The rule of a task."""
    if task == "nsfnet":
        return at_rates(np.array(FOUND_RATES, np.float32))
    if not task.startswith("bss-"):
        raise ValueError(f"There is no rule by hand for the task {task!r}, but for bike sharing and nsfnet.")
    return stay


def trained(run: TrainedRun) -> Policy:
    """What a run's policy executes."""

    def execute(obs: jax.Array) -> jax.Array:
        return run.algorithm.act(run.policy, run.spec, obs, jax.random.key(0), explore=False).executed

    executed = jax.jit(jax.vmap(execute))
    return lambda obs: np.asarray(executed(jnp.asarray(obs, jnp.float32)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", metavar="RUN", help="folder of a run")
    parser.add_argument("--episodes", type=int, default=EPISODES)
    arguments = parser.parse_args()
    seeds, rules = range(SEED, SEED + arguments.episodes), {}
    for path in arguments.runs:
        run = load_run(Path(path))
        if run.task not in rules:
            rules[run.task] = play(run.task, by_hand(run.task), seeds)
            print(f"{run.task}, by hand: {score(rules[run.task])}")
        returns = play(run.task, trained(run), seeds)
        print(f"{run.name}: {score(returns)}, more than by hand by {score(returns - rules[run.task])}")


if __name__ == "__main__":
    main()
