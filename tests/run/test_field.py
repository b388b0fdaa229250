"""The field's methods in runs: killed and resumed bit for bit, on copies, and in a population as alone."""

from pathlib import Path

import jax
import numpy as np
import pytest

from feasible.algorithms.description import Plain
from feasible.catalogue.registry import TASKS
from feasible.run.folder import RunFolder, read_metrics
from feasible.run.launch import configure, new_run
from feasible.run.policy import load_policy
from feasible.run.sweep.accelerator import train_together
from feasible.run.train import Outcome, train
from tests.run.runs import Killed, assert_equal_runs
from tests.run.test_train import At
from tests.run.toys import toy_plant, toy_task

pytestmark = pytest.mark.usefixtures("shared_programs")
OFF_POLICY: dict[str, Plain] = {"hidden_layers": [8], "warmup": 0, "batch_size": 8, "replay_size": 50}
SMALL: dict[str, dict[str, Plain]] = {
    "td3": OFF_POLICY | {"penalty": 0.5},
    "sac": OFF_POLICY | {"learning_starts": 12, "directions": 4},
    "ppo": {"hidden_layers": [8], "horizon": 30, "minibatch": 10, "epochs": 2, "directions": 4},
}
NAMES = [
    "td3-proposed",
    "td3-optlayer",
    "td3-nfwpo",
    "td3-projected-gradient",
    "td3-alpha",
    "td3-radial",
    "sac-proposed",
    "sac-alpha",
    "sac-radial",
    "sac-truncated",
    "ppo-radial",
    "ppo-truncated",
]
FEASIBLE = ("alpha", "radial", "truncated")


@pytest.fixture(autouse=True)
def _toy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TASKS, "toy", toy_task())  # pyright: ignore[reportArgumentType]


def run(out: Path, algo: str, seed: int = 0, **changes: Plain) -> RunFolder:
    settings = {**SMALL[algo.partition("-")[0]], **changes}
    options = {"steps": 90, "eval_every": 46, "preset": "default", "variant": "small", "checkpoint_every": 30}
    return new_run(out, configure("toy", algo, seed, changes=settings, **options))  # pyright: ignore[reportArgumentType]


@pytest.mark.slow
@pytest.mark.parametrize("algo", NAMES)
def test_on_copies_killed_and_resumed_it_ends_as_an_undisturbed_run(algo: str, tmp_path: Path) -> None:
    whole, killed = (run(tmp_path / name, algo, copies=2) for name in ("whole", "killed"))
    assert train(whole) == Outcome(90, finished=True)
    with pytest.raises(Killed):
        train(killed, At(76, Killed))
    assert train(killed).finished
    assert_equal_runs(killed, whole)
    for line in read_metrics(whole.metrics):
        assert line["violation/executed_max"] <= 1e-5  # pyright: ignore[reportOperatorIssue]
        if algo.endswith(FEASIBLE):
            assert line["violation/proposed_count"] == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "algos",
    [
        ("td3-radial", "td3-alpha", "td3-proposed"),
        ("td3-optlayer", "td3-nfwpo", "td3-projected-gradient"),
        ("sac-truncated", "sac-alpha"),
        ("sac-radial", "sac-proposed"),
        ("ppo-radial", "ppo-truncated"),
    ],
    ids=" ".join,
)
def test_in_a_population_each_is_what_it_would_be_alone(algos: tuple[str, ...], tmp_path: Path) -> None:
    spec = toy_plant().spec
    together, alone = ([run(tmp_path / name, algo, 1) for algo in algos] for name in ("all", "one"))
    assert train_together(together) == []
    for folder, other in zip(together, alone, strict=True):
        assert train(other).finished
        (_, ours), (_, theirs) = load_policy(folder.policy, spec), load_policy(other.policy, spec)
        for one, two in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
            np.testing.assert_allclose(one, two, atol=1e-4)
