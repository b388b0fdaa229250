"""The command on the page that repeats a run configures that very run."""

import functools
import shlex
from dataclasses import asdict, replace

import pytest

from feasible.algorithms.description import Plain
from feasible.cli import COMMANDS, parsed
from feasible.report.repeating import command_of
from feasible.report.runs import Run, described_run
from feasible.run.config import RunConfig
from feasible.run.launch import changes_of, configure


def run_of(config: RunConfig) -> Run:
    return described_run("runs/one", asdict(config), {})  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("task", "algo", "preset", "changes"),
    [
        ("reacher", "nfwpo", None, {}),
        ("reacher", "nfwpo", "fair", {"batch_size": 32, "noise": [0.1, 0.2], "frank_wolfe_step": 0.2}),
        ("bss-3", "fwpo", "paper", {}),
        ("halfcheetah", "sac-projection", "paper", {"entropy_target": None}),
        ("reacher", "td3-projection", "default", {"hidden_layers": [32, 16], "normalised": True}),
    ],
)
def test_it_configures_the_same_run(task: str, algo: str, preset: str | None, changes: dict[str, Plain]) -> None:
    config = configure(task, algo, 3, steps=9_000, preset=preset, changes=changes, episodes=4, variant="it's mine")
    program, *words = shlex.split(command_of(run_of(config)))
    assert program == "feasible"
    call = parsed(COMMANDS, words)
    assert isinstance(call, functools.partial)
    options = dict(call.keywords)
    given = changes_of(options.pop("set"))
    del options["output"]
    assert configure(options.pop("task"), options.pop("algo"), options.pop("seed"), changes=given, **options) == config


def test_there_is_none_for_what_nobody_could_name() -> None:
    config = configure("reacher", "nfwpo", 0)
    assert command_of(run_of(config))
    assert command_of(run_of(replace(config, task="Boat-v0"))) == ""
    assert command_of(run_of(replace(config, algo="mine"))) == ""
    assert command_of(run_of(replace(config, preset="strange"))) == ""
    assert command_of(run_of(replace(config, algorithm={"kind": "Strange"}))) == ""
