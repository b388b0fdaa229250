"""ARAM in runs: on several copies, killed and resumed, and in a population, where preferences of episodes are kept."""

from pathlib import Path

import jax
import numpy as np
import pytest

from feasible.algorithms.aram import ARAMPolicy
from feasible.catalogue.registry import TASKS
from feasible.run.folder import RunFolder, read_metrics
from feasible.run.launch import configure, new_run
from feasible.run.policy import load_policy
from feasible.run.sweep.accelerator import train_together
from feasible.run.train import Outcome, train
from tests.run.runs import Killed, assert_equal_runs
from tests.run.test_train import At
from tests.run.toys import toy_plant, toy_task

SMALL = {
    "hidden_layers": [8],
    "warmup": 0,
    "learning_starts": 15,
    "batch_size": 8,
    "draws": 4,
    "augmented_size": 40,
    "replay_size": 50,
    "interval": 3,
    "normalised": True,
}

pytestmark = pytest.mark.usefixtures("shared_programs")


@pytest.fixture(autouse=True)
def _toy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TASKS, "toy", toy_task())  # pyright: ignore[reportArgumentType]


def run(out: Path, seed: int = 0, **changes: object) -> RunFolder:
    config = configure(
        "toy",
        "aram",
        seed,
        steps=90,
        eval_every=45,
        preset="default",
        changes={**SMALL, **changes},  # pyright: ignore[reportArgumentType]
        variant="small",
        checkpoint_every=30,
    )
    return new_run(out, config)


@pytest.mark.slow
def test_on_copies_killed_and_resumed_it_ends_as_an_undisturbed_run(tmp_path: Path) -> None:
    whole, killed = run(tmp_path / "whole", copies=3), run(tmp_path / "killed", copies=3)
    assert train(whole) == Outcome(90, finished=True)
    with pytest.raises(Killed):
        train(killed, At(75, Killed))
    assert train(killed).finished
    assert_equal_runs(killed, whole)
    last = read_metrics(whole.metrics)[-1]
    assert last["violation/executed_max"] <= 1e-5  # pyright: ignore[reportOperatorIssue]
    assert last["violation/proposed_count"] > 0  # pyright: ignore[reportOperatorIssue]


@pytest.mark.slow
def test_in_a_population_each_is_what_it_would_be_alone(tmp_path: Path) -> None:
    """Also where their numbers differ: the preference of acting is of the state."""
    spec, changes = toy_plant().spec, [{"preference": 0.9}, {"preference": 0.4, "reward_scale": 2.0}]
    together, alone = (
        [run(tmp_path / name, seed, interval=1, **change) for seed, change in enumerate(changes)]
        for name in ("all", "one")
    )
    assert train_together(together) == []
    for folder, other, change in zip(together, alone, changes, strict=True):
        assert train(other).finished
        (_, ours), (_, theirs) = load_policy(folder.policy, spec), load_policy(other.policy, spec)
        for one, two in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
            np.testing.assert_allclose(one, two, atol=1e-4)
        assert isinstance(ours, ARAMPolicy)
        assert float(ours.preference[0]) == pytest.approx(change["preference"])
