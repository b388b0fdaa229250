"""Algorithms survive the way through JSON, and nothing else comes out of it."""

import json
import subprocess
import sys

import pytest

from feasible.algorithms.actor_rules import FrankWolfe, PolicyGradient, ThroughProjection
from feasible.algorithms.base import Algorithm
from feasible.algorithms.ddpg import DDPG
from feasible.algorithms.description import build, build_algorithm, changed, describe, known, settings_of
from feasible.algorithms.focops import FOCOPS
from feasible.algorithms.ppo import PPO
from feasible.algorithms.sac import SAC
from feasible.algorithms.stable_baselines3 import RENAMED
from feasible.algorithms.trpo import TRPO
from feasible.catalogue.registry import METHODS, PAPERS, TASKS, algorithm_of
from feasible.errors import nearest

NFWPO = DDPG(rule=FrankWolfe(0.05), noise=0.1)
EVERY = [(name, algo) for name, task in PAPERS.items() for algo in task.preset("paper")]


@pytest.mark.parametrize("preset", ["paper", "fair"])
@pytest.mark.parametrize(("task", "algo"), EVERY)
def test_every_method_of_every_task_survives(task: str, algo: str, preset: str) -> None:
    algorithm = algorithm_of(PAPERS[task], algo, preset)
    again = build_algorithm(json.loads(json.dumps(describe(algorithm))))
    assert type(again) is type(algorithm)
    assert again == algorithm
    assert describe(again) == describe(algorithm)


def test_what_is_described() -> None:
    described = describe(DDPG(rule=FrankWolfe(0.05), noise=(0.1, 0.2)))
    assert isinstance(described, dict)
    assert described["kind"] == "DDPG"
    steps = {"step": 0.05, "by": "constant", "inner": 1, "away": False, "inside": 1.0, "project_target": False}
    assert described["rule"] == {"kind": "FrankWolfe", **steps}
    assert described["noise"] == [0.1, 0.2]
    assert described["hidden_layers"] == [400, 300]
    assert described["shaping"] == 0.0


@pytest.mark.parametrize("kind", ["Popen", "Algorithm", "os.system", None, 3])
def test_an_unknown_kind_is_refused(kind: str | int | None) -> None:
    with pytest.raises(ValueError, match=r"There is no algorithm or rule .* Known: .*DDPG"):
        build({"kind": kind, "args": ["true"]})
    with pytest.raises(ValueError, match="There is no algorithm or rule"):
        build_algorithm({"kind": "DDPG", "rule": {"kind": kind}, "noise": 0.1})


def test_a_rule_is_no_algorithm() -> None:
    with pytest.raises(ValueError, match="describes no algorithm"):
        build_algorithm({"kind": "FrankWolfe", "step": 0.1})


def test_what_no_file_can_hold_is_refused() -> None:
    with pytest.raises(TypeError, match="is not a setting that a file can hold"):
        describe(DDPG(rule=FrankWolfe(0.05), noise=object()))  # pyright: ignore[reportArgumentType]


class Nudge(PolicyGradient):
    """A rule of somebody else's."""


def test_files_name_every_kind_that_is_imported() -> None:
    algorithm = DDPG(rule=Nudge(), noise=0.1)
    assert build_algorithm(describe(algorithm)) == algorithm
    assert known()["DDPG"] is DDPG
    assert known()["Nudge"] is Nudge


def test_a_name_of_two_kinds_stands_for_neither() -> None:
    twin = type("Nudge", (PolicyGradient,), {})
    with pytest.raises(ValueError, match="There are two kinds 'Nudge'"):
        build(describe(twin()))


def test_whole_numbers_become_the_floats_that_settings_are() -> None:
    algorithm = changed(
        DDPG(rule=ThroughProjection(), noise=0.1), {"through_projection_penalty": 1, "discount": 1}, "x"
    )
    assert (algorithm.rule, algorithm.discount) == (ThroughProjection(1.0), 1.0)
    assert all(type(value) is float for value in (algorithm.rule.penalty, algorithm.discount))  # pyright: ignore[reportAttributeAccessIssue]
    assert type(changed(algorithm, {"batch_size": 8}, "x").batch_size) is int


@pytest.mark.parametrize(
    ("algorithm", "name", "said"),
    [
        (NFWPO, "learning_rate", "'actor_rate' and 'critic_rate' here"),
        (SAC(), "learning_rate", "this name of Stable-Baselines3 is 'rate' here"),
        (NFWPO, "buffer_size", "'replay_size' here"),
        (NFWPO, "gamma", "'discount' here"),
        (SAC(), "tau", "'target_ratio' here"),
        (NFWPO, "learning_starts", "'warmup' here"),
        (SAC(), "train_freq", "'interval' here"),
        (PPO(), "train_freq", "'horizon' here"),
        (PPO(), "batch_size", "'minibatch' here"),
        (PPO(), "tensorboard_log", r"learn\(steps, run=FOLDER, tensorboard=True\) writes"),
        (SAC(), "policy_kwargs", r"hidden_layers sets their sizes, for example \(256, 256\)"),
        (SAC(), "policy", "a method brings its networks along"),
        (SAC(), "verbose", r"learn\(steps, progress_bar=True\)"),
    ],
)
def test_names_of_stable_baselines3_are_answered_with_our_way(algorithm: Algorithm, name: str, said: str) -> None:
    with pytest.raises(ValueError, match=f"agent: There is no hyper-parameter '{name}': .*{said}.* Known: ") as error:
        changed(algorithm, {name: 1}, "agent")
    assert "did you mean" not in str(error.value)


def test_our_names_for_theirs_are_names_of_ours() -> None:
    ours = {name for one in (NFWPO, SAC(), PPO(), TRPO(), FOCOPS()) for name in settings_of(one)}
    assert {name for names in RENAMED.values() for name in names} <= ours


def test_a_name_that_is_taken_is_not_another_s() -> None:
    assert changed(SAC(), {"learning_starts": 7}, "agent").learning_starts == 7
    with pytest.raises(ValueError, match=r"There is no hyper-parameter 'gradient_steps'\. Known"):
        changed(NFWPO, {"gradient_steps": 1}, "agent")


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("averagd", "averaged"),
        ("batchsize", "batch_size"),
        ("batch", "batch_size"),
        ("Batch_Size", "batch_size"),
        ("actor_intervall", "actor_interval"),
        ("max_grad_norm", None),
        ("use_sde", None),
        ("verbosity", None),
        ("seeds", None),
        ("x" * 10_000, None),
    ],
)
def test_only_a_near_name_is_proposed(name: str, near: str | None) -> None:
    assert nearest(name, settings_of(NFWPO)) == near


def test_every_method_is_built_again_in_a_process_that_has_imported_none() -> None:
    spec = TASKS["reacher"].spec
    described = [describe(method.make(spec)) for method in METHODS.values() if method.sets != "allocations of bikes"]
    code = """
import json, sys
from feasible.algorithms.description import build_algorithm, describe
for given in json.load(sys.stdin):
    assert describe(build_algorithm(given)) == given
"""
    subprocess.run([sys.executable, "-c", code], input=json.dumps(described), text=True, check=True)
