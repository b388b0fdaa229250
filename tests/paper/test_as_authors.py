"""Which departures there are of which method; files and the driver know them."""

import json
from dataclasses import fields, replace
from pathlib import Path

import equinox as eqx
import jax
import numpy as np
import pytest
from numpy.typing import NDArray

from feasible.algorithms.actor_rules import PolicyGradient
from feasible.algorithms.base import Spec
from feasible.algorithms.description import build_algorithm, describe
from feasible.catalogue import registry
from feasible.catalogue.registry import PAPERS, algorithm_of
from feasible.paper.as_authors import (
    DEPARTURES,
    AuthorsDDPG,
    as_authors,
    departures,
    run_config,
)
from feasible.paper.as_authors.__main__ import main
from feasible.run.drive.plant import plant_of
from feasible.run.drive.programs import Programs
from feasible.run.drive.schedule import due_after
from feasible.run.folder import RunFolder, read_metrics
from feasible.run.launch import new_run
from feasible.run.policy import load_policy
from feasible.run.train import train

SOFT = "sac-projection"
# Of the methods that others wrote, their settings are all that is known; projected gradients are not of the paper.
FOREIGN = ("sac", "ppo", "trpo", "focops", "projected")
EVERY = [
    (task, algo)
    for task, known in PAPERS.items()
    for algo in known.preset("paper")
    if algo.split("-")[0] not in FOREIGN
]


def leaves(tree: object) -> list[NDArray]:
    return [np.asarray(leaf) for leaf in jax.tree.leaves(tree)]


class TestCatalogue:
    """Which departures there are, by the notes on the published code."""

    @pytest.mark.parametrize(("task", "algo"), EVERY)
    def test_they_survive_files_and_differ_from_the_paper_one_by_one(self, task: str, algo: str) -> None:
        paper = algorithm_of(PAPERS[task], algo, "paper")
        known = departures(task, algo)
        for name, algorithm in {**known, "all": as_authors(task, algo)}.items():
            assert build_algorithm(json.loads(json.dumps(describe(algorithm)))) == algorithm
            unlike = [f.name for f in fields(paper) if getattr(algorithm, f.name) != getattr(paper, f.name)]
            defaults = {f.name: f.default for f in fields(algorithm)}
            set_here = [n for n, v in defaults.items() if not hasattr(paper, n) and getattr(algorithm, n) != v]
            assert unlike or set_here, name
        assert all(DEPARTURES[name].says for name in known)
        # All together are each of them.
        whole = describe(as_authors(task, algo))
        base = describe(departures(task, algo)["zero-row"])
        for algorithm in known.values():
            for name, value in describe(algorithm).items():  # pyright: ignore[reportAttributeAccessIssue, reportOptionalMemberAccess]
                if value != base[name] and name not in ("zero_row", "rule"):  # pyright: ignore[reportArgumentType, reportCallIssue, reportIndexIssue, reportOptionalSubscript]
                    assert whole[name] == value  # pyright: ignore[reportArgumentType, reportCallIssue, reportIndexIssue, reportOptionalSubscript]

    def test_what_concerns_whom(self) -> None:
        def concerned(name: str) -> set[tuple[str, str]]:
            return {cell for cell in EVERY if name in departures(*cell)}

        assert concerned("limit-terminal") == {
            ("halfcheetah", "ddpg-projection"),
            ("halfcheetah", "ddpg-shaping"),
            ("reacher", "ddpg-optlayer"),
        }
        assert concerned("mirrored") == {("bss-5", "ddpg-optlayer"), ("nsfnet", "ddpg-optlayer")}
        assert concerned("odd-observation") == {("bss-3", a) for a in ("fwpo", "tabular-projection", "tabular-shaping")}
        assert concerned("zero-row") == set(EVERY)
        assert {algo for _, algo in concerned("two-batches")} == {"nfwpo"}
        # Every departure concerns methods that there are.
        assert all(departure.of <= set(EVERY) for departure in DEPARTURES.values())

    def test_outputs_and_hidden_activations(self) -> None:
        outputs = {
            ("bss-5", "nfwpo"): ("leaky_relu", None, "leaky_relu", "leaky_relu"),
            ("bss-5", "ddpg-optlayer"): ("leaky_relu", None, "leaky_relu", "leaky_relu"),
            ("bss-5", "ddpg-shaping"): ("tanh", (10, 35), "leaky_relu", "leaky_relu"),
            ("nsfnet", "nfwpo"): ("tanh", None, "leaky_relu", "relu"),
            ("nsfnet", "ddpg-optlayer"): ("tanh", (-100, 100), "leaky_relu", "relu"),
            ("halfcheetah", "nfwpo"): ("tanh", None, "relu", "relu"),
        }
        for cell, expected in outputs.items():
            a = as_authors(*cell)
            assert isinstance(a, AuthorsDDPG)
            assert (a.output, a.output_range, a.actor_hidden, a.critic_hidden) == expected

    def test_a_method_of_which_nothing_is_known_is_refused(self) -> None:
        with pytest.raises(ValueError, match="Nothing is known of what the authors' code of 'sac-projection' does"):
            as_authors("reacher", SOFT)

    def test_what_the_paper_s_settings_have_already(self) -> None:
        for task in ("bss-5", "nsfnet", "reacher", "halfcheetah"):
            sizes = {algo: as_authors(known, algo).batch_size for known, algo in EVERY if known == task}  # pyright: ignore[reportAttributeAccessIssue]
            assert sizes == {"nfwpo": 16, "ddpg-projection": 64, "ddpg-shaping": 64, "ddpg-optlayer": 16}
            assert as_authors(task, "ddpg-optlayer").intervals["actor"] == 50
        intervals = as_authors("bss-3", "fwpo").intervals
        assert (intervals["critic"], intervals["table"]) == (25, 50)

    def test_runs_of_all_have_the_authors_length_and_of_one_the_paper_s(self) -> None:
        assert run_config("bss-5", "nfwpo", 0).steps == 1_000_000
        assert run_config("bss-5", "ddpg-shaping", 0).steps == 500_000
        assert run_config("nsfnet", "nfwpo", 0).episodes == 5
        assert run_config("nsfnet", "nfwpo", 0, episodes=2).episodes == 2
        assert run_config("nsfnet", "nfwpo", 0, checkpoint_every=700_000).checkpoint_every == 700_000
        one = run_config("bss-5", "ddpg-optlayer", 3, "mirrored")
        assert (one.steps, one.episodes) == (100_000, 10)
        assert one.name == "bss-5/ddpg-optlayer+mirrored/seed-3"
        with pytest.raises(ValueError, match="nfwpo on bss-5 has no departure 'mirrored'; it has targets-apart"):
            run_config("bss-5", "nfwpo", 0, "mirrored")


@pytest.fixture(scope="module")
def specs() -> dict[str, Spec]:
    return {task: plant_of(registry.make(task)).spec for task in PAPERS if task != "halfcheetah-box"}


# Every task and every method; the other pairs are made of the same parts.
ONCE = [
    *(cell for cell in EVERY if cell[0] == "bss-3"),
    ("bss-5", "nfwpo"),
    ("nsfnet", "ddpg-projection"),
    ("reacher", "ddpg-optlayer"),
    ("halfcheetah", "ddpg-shaping"),
]


@pytest.mark.parametrize(
    ("task", "algo"),
    [
        pytest.param(*cell, marks=[] if cell in ONCE else [pytest.mark.slow])
        for cell in EVERY
        if cell[0] != "halfcheetah-box"
    ],
)
def test_the_driver_has_programs_for_them(task: str, algo: str, specs: dict[str, Spec]) -> None:
    algorithm = as_authors(task, algo)
    programs = Programs(algorithm, specs[task])
    # The step in the middle of the warm-up, its last, and one at which everything is due.
    for step in (1, algorithm.warmup, 100 * algorithm.warmup):
        program = programs.program(step)
        assert ("critic/loss" in program.metered.own[0]) == (step > algorithm.warmup)


def test_everything_is_due_at_once_and_episodes_are_the_paper_s(specs: dict[str, Spec]) -> None:
    for task, algo in EVERY:
        algorithm = as_authors(task, algo)
        assert due_after(algorithm, 100 * algorithm.warmup) == (frozenset(algorithm.intervals),)
    assert {task: spec.episode_length for task, spec in specs.items()} == {
        task: PAPERS[task].episode_length for task in specs
    }


@pytest.mark.parametrize(
    ("task", "algo"),
    [
        ("bss-5", "ddpg-optlayer"),
        ("reacher", "ddpg-optlayer"),
        ("bss-3", "tabular-projection"),
        ("nsfnet", "nfwpo"),
    ],
)
@pytest.mark.slow
def test_runs_train_to_their_end(task: str, algo: str, tmp_path: Path) -> None:
    config = run_config(task, algo, 0, steps=40)
    algorithm = {**config.algorithm, "warmup": 20, "replay_size": 64}  # pyright: ignore[reportGeneralTypeIssues]
    smaller = {"hidden_layers": [8, 8], "actor_interval": 1} if task != "bss-3" else {}
    often = {"eval_every": 40, "log_every": 20, "checkpoint_every": 30, "episodes": 1}
    config = replace(config, algorithm={**algorithm, **smaller}, **often)
    assert train(new_run(tmp_path, config)).finished
    folder = RunFolder(tmp_path / config.name)
    last = read_metrics(folder.metrics)[-1]
    assert last["step"] == 40
    assert np.isfinite(last["eval/return"])
    assert isinstance(last["violation/executed_max"], float)
    assert last["violation/executed_max"] <= 1e-3
    loaded, policy = load_policy(folder.policy, plant_of(registry.make(task)).spec)
    assert describe(loaded) == config.algorithm
    assert all(np.isfinite(leaf).all() for leaf in leaves(policy))


@pytest.mark.slow  # two whole processes; what they train is tested above
def test_the_command_trains_departures_one_by_one(tmp_path: Path, plain_processes: None) -> None:
    names = ["mirrored", "as-authors"]
    short = [
        "--departures",
        *names,
        "--seeds",
        "3",
        "--steps",
        "30",
        "--checkpoint-every",
        "15",
        "--out",
        str(tmp_path),
    ]
    assert main(["--train", "bss-5", "ddpg-optlayer", *short]) == 0
    for name in names:
        folder = RunFolder(tmp_path / "bss-5" / f"ddpg-optlayer+{name}" / "seed-3")
        known = {**departures("bss-5", "ddpg-optlayer"), "as-authors": as_authors("bss-5", "ddpg-optlayer")}
        assert folder.config().algorithm == describe(known[name])
        assert folder.config().checkpoint_every == 15
        assert read_metrics(folder.metrics)[-1]["step"] == 30


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--train", "bss-5", "nfwpo", "--departures", "mirrored"], "nfwpo on bss-5 has no departure 'mirrored'; it"),
        (
            ["--train", "bss-5", "projected-gradient"],
            "Nothing is known of what the authors' code of projected-gradient",
        ),
        (["--train", "bss-5", "sac-projection"], "Nothing is known of what the authors' code"),
        (["--departures", "mirrored"], "--departures are of a method: say which with --train TASK ALGO."),
        (["--train", "bss-5"], "--train names a task and then methods: add one, --train TASK ALGO."),
        (["--train", "bss-5", "nfwpo", "--episodes", "0"], "episodes must be a whole number of at least 1, not 0"),
        (["--train", "bss-5", "nfwpo", "--jobs", "2", "--device", "gpu"], "--jobs is for runs on cores"),
        (["--train", "bss-5", "nfwpo", "--device", "gpu"], "--device gpu: JAX finds no accelerator here"),
        (["--train", "bss-5", "nfwpo", "--jobs", "0"], "jobs must be at least 1, not 0"),
        (["--train", "bss-5", "nfwpo", "--seeds", "0", "0"], "Two of the runs are bss-5/nfwpo+targets-apart/seed-0"),
    ],
)
def test_what_the_command_refuses(
    arguments: list[str], said: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main([*arguments, "--out", str(tmp_path / "none")])
    assert said in " ".join(capfd.readouterr().err.split())
    assert not (tmp_path / "none").exists()


def test_policy_gradient_keeps_its_rule() -> None:
    algorithm = as_authors("halfcheetah", "ddpg-projection")
    assert isinstance(algorithm, AuthorsDDPG)
    assert algorithm.rule == PolicyGradient()
    assert algorithm.limits_terminate
    assert eqx.tree_equal(algorithm, build_algorithm(describe(algorithm)))
