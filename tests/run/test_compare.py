"""Comparisons as a person runs them: a grid, an interrupt, the same command again, failures and the exit code."""

import signal
from contextlib import ExitStack
from pathlib import Path

import pytest

from feasible.cli import main
from feasible.run.disk import checkpoint
from feasible.run.folder import RunFolder
from feasible.run.launch import grid
from feasible.run.sweep.sweep import prepare
from tests.run.gate import Gates
from tests.run.runs import METHODS, SMALL, assert_equal_runs, command, environment, files, finish

pytestmark = pytest.mark.xdist_group("processes")

SETTINGS = ["hidden_layers=[32]", "warmup=0", "batch_size=8", "replay_size=90"]  # QUICK
INTERVALS = ["--eval-every", "150", "--episodes", "2", "--checkpoint-every", "100"]
GRID = ["--tasks", "reacher", "--algos", *METHODS, "--seeds", "0", "--steps", "400"]
COMPARE = ["compare", *GRID, *INTERVALS, "--variant", "small", "--set", *SETTINGS]


def test_an_interrupted_comparison_goes_on_and_ends_as_an_undisturbed_one(
    undisturbed: dict[str, RunFolder], tmp_path: Path, cache: Path, gates: Gates, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [RunFolder(tmp_path / "reacher" / f"{algo}+small" / "seed-0") for algo in METHODS]
    compare = [*COMPARE, "--out", str(tmp_path)]
    with ExitStack() as closed:
        both = [closed.enter_context(gates.closed(f"reacher/{algo}+small/seed-0", 350)) for algo in METHODS]
        first = command(*compare, "--jobs", "2", cache=cache, gates=gates)
        for gate in both:
            gate.wait(lambda: first.poll() is None)
        first.send_signal(signal.SIGINT)
        code, _, complaint = finish(first)
    assert code == 130
    assert "start the same command to go on from the last checkpoints" in complaint
    assert [checkpoint.read(run.checkpoint) for run in runs] == [
        checkpoint.Saved(350, False, (run.metrics.stat().st_size,), ("..",)) for run in runs
    ]

    # A failure stops no other.
    state = runs[0].checkpoint / checkpoint.STATE
    whole = state.read_bytes()
    state.write_bytes(b"no archive")
    with environment(cache, gates), pytest.raises(SystemExit) as end:
        main(compare)
    assert end.value.code == 1
    said = capsys.readouterr()
    assert "1 of 2 done, 0 running, 1 failed" in said.out
    assert "1 of 2 runs failed" in said.err
    assert "state.feasible is damaged" in said.err
    finished = checkpoint.read(runs[1].checkpoint)
    assert finished is not None
    assert finished.finished
    before = files(runs[1].path)

    state.write_bytes(whole)
    with environment(cache, gates):
        main([*compare, "--jobs", "1"])
    assert "2 of 2 done, 0 running, 0 failed" in capsys.readouterr().out
    assert files(runs[1].path) == before  # nothing is repeated
    for run, algo in zip(runs, METHODS, strict=True):
        assert gates.starts(run.config().name) == [0, 350]
        assert_equal_runs(run, undisturbed[algo])


def test_a_grid_is_every_combination_seed_by_seed() -> None:
    configs = grid(["reacher", "bss-5"], ["nfwpo", "ddpg-shaping"], [4, 2], preset="fair", changes=SMALL)
    names = [(config.seed, config.task, config.algo) for config in configs]
    assert names[:3] == [(4, "reacher", "nfwpo"), (4, "reacher", "ddpg-shaping"), (4, "bss-5", "nfwpo")]
    assert len(set(names)) == 8
    assert {config.preset for config in configs} == {"fair"}
    assert {config.algorithm["batch_size"] for config in configs} == {8}  # pyright: ignore


@pytest.mark.parametrize(
    ("tasks", "algos", "seeds", "said"),
    [
        ([], ["nfwpo"], [0], "tasks must name at least one"),
        (["reacher"], ["nfwpo"], [0, 1, 0], "seeds must name each only once, not 0 again"),
        (
            ["reacher"],
            ["fwpo"],
            [0],
            "algo: tabular methods have no defaults, .*; use --preset paper on the task 'bss-3'",
        ),
    ],
)
def test_a_grid_that_makes_no_sense_is_refused(tasks: list[str], algos: list[str], seeds: list[int], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        grid(tasks, algos, seeds)


def test_a_refused_grid_leaves_nothing_behind(tmp_path: Path) -> None:
    taken = grid(["reacher"], ["nfwpo"], [1], steps=10)
    prepare(tmp_path, taken)
    before = files(tmp_path)
    with pytest.raises(FileExistsError, match="seed-1 holds a run with other settings: choose another --out"):
        prepare(tmp_path, grid(["reacher"], ["nfwpo"], [0, 1], steps=20))
    assert files(tmp_path) == before
