"""PPO entry by entry in runs: on several copies, killed and resumed, and in a population."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from feasible import sets
from feasible.catalogue.registry import TASKS
from feasible.catalogue.task import Task
from feasible.constraints import Observation
from feasible.run.folder import RunFolder, read_metrics
from feasible.run.launch import configure, new_run
from feasible.run.policy import load_policy
from feasible.run.sweep.accelerator import train_together
from feasible.run.train import Outcome, train
from tests.run.runs import Killed, assert_equal_runs
from tests.run.test_train import At
from tests.run.toys import SavedDrift

SMALL = {"horizon": 20, "minibatch": 10, "epochs": 2, "hidden_layers": [8], "head_units": 4}

pytestmark = pytest.mark.usefixtures("shared_programs")


def shared(obs: Observation) -> sets.AllocationAtMost:
    """{ a : 0 <= a <= 1, sum a <= the observation's last entry }."""
    return sets.AllocationAtMost(obs[2], jnp.zeros(2), jnp.ones(2))  # pyright: ignore[reportIndexIssue, reportOptionalSubscript, reportArgumentType]


@pytest.fixture(autouse=True)
def _own(monkeypatch: pytest.MonkeyPatch) -> None:
    own = Task("own", SavedDrift, shared, steps=60, eval_every=60, episodes=1)
    monkeypatch.setitem(TASKS, "own", own)  # pyright: ignore[reportArgumentType]


def run(out: Path, seed: int = 0, **changes: object) -> RunFolder:
    settings = {**SMALL, **changes}
    config = configure("own", "ppo-sequential", seed, changes=settings, variant="small", checkpoint_every=30)  # pyright: ignore[reportArgumentType]
    return new_run(out, config)


@pytest.mark.slow
def test_on_copies_killed_and_resumed_it_ends_as_an_undisturbed_run(tmp_path: Path) -> None:
    whole, killed = run(tmp_path / "whole", copies=2), run(tmp_path / "killed", copies=2)
    assert train(whole) == Outcome(60, finished=True)
    with pytest.raises(Killed):
        train(killed, At(50, Killed))
    assert train(killed).finished
    assert_equal_runs(killed, whole)
    last = read_metrics(whole.metrics)[-1]
    assert last["violation/proposed_count"] == 0
    assert last["violation/executed_max"] <= 1e-5  # pyright: ignore[reportOperatorIssue]


@pytest.mark.slow
def test_in_a_population_each_is_what_it_would_be_alone(tmp_path: Path) -> None:
    rates = (3e-4, 1e-3)
    together, alone = (
        [run(tmp_path / name, seed, rate=rate) for seed, rate in enumerate(rates)] for name in ("all", "one")
    )
    assert train_together(together) == []
    spec = TASKS["own"].spec
    for folder, other in zip(together, alone, strict=True):
        assert train(other).finished
        (_, ours), (_, theirs) = load_policy(folder.policy, spec), load_policy(other.policy, spec)
        for one, two in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
            np.testing.assert_allclose(one, two, atol=1e-4)
