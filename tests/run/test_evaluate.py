"""Evaluation against a plain loop over single environments, with seeds of its own."""

import jax
import numpy as np
import pytest

from feasible.catalogue import registry
from feasible.catalogue.registry import algorithm_of
from feasible.run.drive.plant import plant_of
from feasible.run.drive.programs import compiled_policy
from feasible.run.evaluate import evaluate, evaluation_seeds
from tests.run.runs import SMALL


@pytest.mark.parametrize("name", ["reacher", pytest.param("bss-5", marks=pytest.mark.slow)])
def test_an_evaluation_is_a_plain_loop_over_single_environments(name: str) -> None:
    algorithm = algorithm_of(registry.find_task(name), "nfwpo", "fair", SMALL)
    env = registry.make(name)
    spec = plant_of(env).spec
    policy = algorithm.policy(algorithm.init(jax.random.key(1), spec))
    seeds = evaluation_seeds(0, 5000, 3)
    copies = registry.make_vec(name, 3)
    act = compiled_policy(algorithm, spec)
    evaluate(act, policy, copies, evaluation_seeds(0, 1, 3))  # an earlier evaluation leaves no trace
    found = evaluate(act, policy, copies, seeds)

    @jax.jit
    def plainly(obs: jax.Array) -> tuple[jax.Array, jax.Array]:
        feasible_set = env.constraint(obs)
        executed = feasible_set.execute(spec.clip(policy(obs, spec.low, spec.high)))
        return executed, feasible_set.violation(executed)

    returns, violations = [], []
    for seed in seeds:
        obs, _ = env.reset(seed=seed)
        total, running = 0.0, True
        while running:
            action, violation = plainly(np.asarray(obs, np.float32))
            violations.append(float(violation))
            obs, reward, terminated, truncated, _ = env.step(np.asarray(action))
            total += float(reward)
            running = not (terminated or truncated)
        returns.append(total)
    np.testing.assert_allclose(found.returns, returns, rtol=1e-4)
    assert found.mean == pytest.approx(np.mean(found.returns))
    assert found.executed_violation == pytest.approx(max(violations), abs=1e-6)
    assert found.metrics()["eval/returns"] == list(found.returns)


def test_evaluation_seeds_are_apart_from_each_other_and_from_training() -> None:
    seen = [seed for run in range(5) for step in range(0, 100_000, 5_000) for seed in evaluation_seeds(run, step, 10)]
    assert len(set(seen)) == len(seen)
    assert min(seen) > 10  # runs are seeded 0, 1, 2, ...
    assert evaluation_seeds(3, 5000, 10)[:4] == evaluation_seeds(3, 5000, 4)
