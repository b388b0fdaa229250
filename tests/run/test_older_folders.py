"""A folder that version 0.1 wrote, with its names of the fields, is read by the one reader of config.json."""

import shutil
from pathlib import Path

from feasible.report.runs import find_runs, read_runs
from feasible.run.config import RENAMED, read_config, renamed
from feasible.run.folder import RunFolder
from feasible.run.launch import configure

RECORDED = Path(__file__).parent / "recorded" / "version-0.1"


def test_its_config_is_that_of_the_same_command_today() -> None:
    today = configure(
        "halfcheetah",
        "nfwpo",
        3,
        steps=600,
        changes={"warmup": 200},
        eval_every=300,
        episodes=2,
        checkpoint_every=1_000_000,
    )
    assert RunFolder(RECORDED).config() == today


def test_its_runs_are_reported(tmp_path: Path) -> None:
    shutil.copytree(RECORDED, tmp_path / "runs" / today_name())
    (run,) = read_runs(find_runs(tmp_path / "runs"), tmp_path / "runs").all
    assert (run.task, run.algo, run.variant, run.seed, run.preset) == ("halfcheetah", "nfwpo", "warmup=200", 3, "paper")
    assert run.series["eval/return"].steps.tolist() == [300, 600]


def test_a_field_of_today_counts_where_both_names_are_there() -> None:
    assert renamed({"settings": "fair", "preset": "paper", "seed": 1}) == {"preset": "paper", "seed": 1}
    assert not set(RENAMED) & set(read_config(RECORDED / "config.json"))


def today_name() -> str:
    return RunFolder(RECORDED).config().name
