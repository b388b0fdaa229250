"""Calls outside jit are compiled once per shape; new values, new sets and new states never retrace."""

import logging

import jax
import numpy as np
import pytest

from feasible.sets import ActionSet, Allocation, Ball, Polytope, WeightedL1Box


def exercise(feasible_set: ActionSet, seed: int) -> None:
    rng = np.random.default_rng(seed)
    z, g = rng.normal(size=(2, feasible_set.dim))
    feasible_set.project(z)
    feasible_set.maximise_linear(g)
    feasible_set.contains(z)
    feasible_set.frank_wolfe_gap(feasible_set.centre(), g)
    feasible_set.exit_distance(feasible_set.centre(), g)
    feasible_set.sample(jax.random.key(seed))
    feasible_set.execute(z)
    feasible_set.diameter()


def example(kind: int, seed: int) -> ActionSet:
    rng = np.random.default_rng(seed)
    if kind == 0:
        return WeightedL1Box(rng.normal(size=4), 1.0, 1.0)
    if kind == 1:
        return Ball(rng.normal(size=4), 1.0)
    if kind == 2:
        return Allocation(2.0, np.zeros(4), rng.uniform(1, 2, size=4))
    return Polytope(np.ones((1, 3)), 1.0 + rng.random(), 0.0, 1.0)


@pytest.mark.parametrize("kind", range(4))
def test_nothing_retraces(kind: int, caplog: pytest.LogCaptureFixture) -> None:
    exercise(example(kind, 0), 0)
    with jax.log_compiles(), caplog.at_level(logging.WARNING):
        for seed in range(1, 4):
            exercise(example(kind, seed), seed)
    compiled = [record.message for record in caplog.records if "Compiling" in record.message]
    assert compiled == []


def test_the_log_would_show_a_retrace(caplog: pytest.LogCaptureFixture) -> None:
    with jax.log_compiles(), caplog.at_level(logging.WARNING):
        jax.jit(lambda x: x + 17.0)(np.zeros(23))
    assert any("Compiling" in record.message for record in caplog.records)
