"""The overview: what it reads of files that grow and are cut back, and when it expects the end."""

import io
import json
from datetime import datetime
from pathlib import Path

import pytest
from rich.console import Console

from feasible.run.folder import RunFolder
from feasible.run.progress import ProgressBar
from feasible.run.sweep.overview import ROWS, Follower, Overview, State
from tests.run.runs import small_run


def drawn(
    overview: Overview, states: dict[RunFolder, State], failures: dict[RunFolder, str] | None = None, width: int = 160
) -> str:
    console = Console(file=io.StringIO(), width=width)
    console.print(overview.drawn(states, failures or {}))
    return console.file.getvalue()  # pyright: ignore[reportAttributeAccessIssue]


def write(folder: RunFolder, *lines: dict[str, float]) -> None:
    folder.metrics.write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_a_file_is_followed_as_it_grows_is_torn_and_is_cut_back(tmp_path: Path) -> None:
    folder = small_run(tmp_path)
    follower = Follower(folder)
    follower.look()
    assert follower.step == 0
    write(folder, {"step": 10, "eval/return": 1.0}, {"step": 20})
    follower.look()
    assert (follower.step, follower.number("eval/return")) == (20, 1.0)
    with folder.metrics.open("a") as file:
        file.write('{"step": 30, "eval/re')
    follower.look()
    assert follower.step == 20
    with folder.metrics.open("a") as file:
        file.write('turn": 3.0}\n')
    follower.look()
    assert (follower.step, follower.number("eval/return")) == (30, 3.0)
    write(folder, {"step": 10, "eval/return": 1.0})
    follower.look()
    assert (follower.step, follower.number("eval/return")) == (10, 1.0)


def test_the_end_is_expected_from_the_speed_of_each_run(tmp_path: Path) -> None:
    """1000 steps each: one has 500 to go at 10 a second, two that wait 1000 at the same, two at a time: 125 s."""
    folders = [small_run(tmp_path, variant=name) for name in "abcd"]
    write(folders[0], {"step": 1000, "time/steps_per_second": 10.0})
    write(folders[1], {"step": 500, "time/steps_per_second": 10.0})
    noon = datetime(2026, 5, 1, 12, 0, 0).timestamp()
    overview = Overview(folders, 2, clock=lambda: noon)
    states: dict[RunFolder, State] = dict(zip(folders, ("done", "running", "waiting", "waiting"), strict=True))
    printed = drawn(overview, states)
    assert "1 of 4 done, 1 running, 0 failed, 10 steps/s, expected end 12:02 (in 2 min)" in printed
    states[folders[1]] = "failed"
    printed = drawn(overview, states, {folders[1]: "the disk is full"})
    assert "1 failed" in printed
    assert "seed-0 failed: the disk is full" in printed


@pytest.mark.parametrize(("count", "shown"), [(ROWS, ROWS), (ROWS + 1, 2)])
def test_a_large_sweep_shows_what_runs_and_what_failed(count: int, shown: int, tmp_path: Path) -> None:
    folders = [small_run(tmp_path, variant=str(number)) for number in range(count)]
    states: dict[RunFolder, State] = dict.fromkeys(folders, "waiting")
    states[folders[0]], states[folders[1]] = "running", "failed"
    printed = drawn(Overview(folders, 2), states, {folders[1]: "no reason"})
    assert printed.count("of 1,000") == shown


def test_in_a_narrow_terminal_it_is_a_list(tmp_path: Path) -> None:
    folder, other = small_run(tmp_path, variant="a"), small_run(tmp_path, variant="b")
    write(folder, {"step": 500, "eval/return": -12.34, "violation/executed_max": 1e-7, "time/steps_per_second": 10.0})
    printed = drawn(Overview([folder, other], 1), {folder: "running", other: "waiting"}, width=50)
    assert [line.rstrip() for line in printed.splitlines()[:6]] == [
        "Training",
        "reacher  NFWPO (a)  seed 0",
        "  running, 500 of 1,000, return -12.3, violation",
        "  1e-07, 10 steps/s",
        "reacher  NFWPO (b)  seed 0",
        "  waiting, 0 of 1,000",
    ]


def test_a_run_s_bar_and_evaluations_can_be_read_in_fifty_columns(tmp_path: Path) -> None:
    """The name stands above the bar; nothing of the table is cut."""
    config = small_run(tmp_path, variant="a long name of a variant").config()
    console = Console(file=io.StringIO(), width=50)
    line = {
        "step": 700_000,
        "eval/return": -1209.21,
        "eval/returns": [-1214.0, -1204.4],
        "eval/executed_violation": 0.0,
    }
    with ProgressBar(console) as bar:
        bar.begin([config], 0, "")
        bar.logged(config, {**line, "eval/executed_violation": 0.0, "time/steps_per_second": 812.3})
    printed = console.file.getvalue()  # pyright: ignore[reportAttributeAccessIssue]
    assert config.name in printed.replace("\n", "")
    assert "812 steps/s, return -1209" in printed
    for word in (
        "step",
        "return",
        "lowest",
        "highest",
        "violation",
        "700000",
        "-1209.2",
        "-1214.0",
        "-1204.4",
        "0.0e+00",
    ):
        assert word in printed[printed.index("Evaluations") :]
    assert "…" not in printed[printed.index("Evaluations") :]
