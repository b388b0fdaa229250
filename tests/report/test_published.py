"""Published results say what the run folders said, in a small part of their size."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.report import made_up, write_run
from feasible.report.published import is_published, publish, read_published
from feasible.report.runs import find_runs, read_runs
from feasible.report.writing import write_report
from feasible.run.folder import ABOUT
from feasible.run.launch import configure
from tests.report.conftest import EVALUATIONS, KINDS, SEEDS, undrawn, write_runs


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    return write_runs(tmp_path / "runs")


def test_what_is_published_is_what_was_measured(folders: Path, tmp_path: Path) -> None:
    out, runs = tmp_path / "results", read_runs(find_runs(folders), folders).all
    written = publish(runs, out)
    assert sorted(path.relative_to(out).as_posix() for path in written) == sorted(
        f"{task}/{algo}/paper.csv" for task, algo in KINDS
    )
    found = read_published(out)
    assert not found.notes
    assert [run.path.replace("/paper/", "/") for run in found.all] == [run.path for run in runs]
    for run, known in zip(found.all, runs, strict=True):
        assert (run.steps, run.reached, run.finished, run.preset) == (known.steps, known.reached, True, known.preset)
        assert run.described["algorithm"] == known.described["algorithm"]
        assert "command" not in run.described
        assert run.series["eval/return"].steps.tolist() == known.series["eval/return"].steps.tolist()
        np.testing.assert_allclose(run.series["eval/return"].values, known.series["eval/return"].values, rtol=1e-6)
        assert run.score == pytest.approx(known.score, rel=1e-6)
        assert run.infeasible_share == pytest.approx(known.infeasible_share)
        assert run.executed_violation == known.executed_violation
    rows = sum(len(path.read_text().splitlines()) - 1 for path in written)
    assert rows == len(KINDS) * len(SEEDS) * EVALUATIONS


def test_seeds_are_added_to_those_of_before_and_the_longer_run_of_a_seed_stays(tmp_path: Path) -> None:
    out = tmp_path / "results"
    for folder, lengths in (("first", {0: 12, 1: 6, 2: 12}), ("later", {1: 9, 2: 3, 4: 12})):
        for seed, length in lengths.items():
            write_run(tmp_path / folder, made_up("reacher", "nfwpo", seed, 12, logs=2), reached=2_000 * length)
        publish(read_runs(find_runs(tmp_path / folder), tmp_path / folder).all, out)
    found = {run.seed: len(run.series["eval/return"].steps) for run in read_published(out).all}
    assert found == {0: 12, 1: 9, 2: 12, 4: 12}
    again = read_runs(find_runs(tmp_path / "first"), tmp_path / "first").all[0]
    again.series["eval/return"].values[:] = 7.0
    publish([again], out)
    assert read_published(out).all[0].series["eval/return"].values.tolist() == [7.0] * 12  # of equals the last


def test_a_report_is_drawn_from_published_results(folders: Path, tmp_path: Path) -> None:
    publish(read_runs(find_runs(folders), folders).all, tmp_path / "results")
    assert is_published(tmp_path / "results")
    assert not is_published(folders)
    with undrawn():
        report = write_report(tmp_path / "results", tmp_path / "report")
    assert report.runs == len(KINDS) * len(SEEDS)
    scores = (tmp_path / "report/tables/scores.csv").read_text().splitlines()
    assert len(scores) == 1 + len(KINDS)


def test_runs_of_other_settings_need_another_name(folders: Path, tmp_path: Path) -> None:
    write_run(folders, made_up("reacher", "nfwpo", 2, 2 * EVALUATIONS, logs=2))
    with pytest.raises(ValueError, match=r"seed-2 was trained with other settings than .*seed-0: name one a variant"):
        publish(read_runs(find_runs(folders), folders).all, tmp_path / "results")


def test_runs_of_before_a_setting_was_known_are_those_with_its_default(folders: Path, tmp_path: Path) -> None:
    config = folders / "reacher/nfwpo/seed-0/config.json"
    described = json.loads(config.read_text())
    for name in ("twin", "target_noise"):
        del described["algorithm"][name]
    described["algorithm"]["rule"] = {"kind": "FrankWolfe", "step": described["algorithm"]["rule"]["step"]}
    config.write_text(json.dumps(described))
    publish(read_runs(find_runs(folders), folders).all, tmp_path / "results")
    found = [run for run in read_published(tmp_path / "results").all if (run.task, run.algo) == ("reacher", "nfwpo")]
    assert all(run.described["algorithm"]["twin"] is False for run in found)  # pyright: ignore


@pytest.mark.parametrize("silent", [0, 1])
def test_runs_of_before_folders_said_what_their_task_is_go_with_those_that_say_it(tmp_path: Path, silent: int) -> None:
    runs, out = tmp_path / "runs", tmp_path / "results"
    for seed in (0, 1):
        path = write_run(runs, made_up("reacher", "nfwpo", seed, 12, logs=2)) / "config.json"
        told = {name: value for name, value in json.loads(path.read_text()).items() if name not in ABOUT}
        path.write_text(json.dumps(told if seed == silent else {**told, "title": "an arm", "action_size": 2}))
    for run in read_runs(find_runs(runs), runs).all:
        publish([run], out)
    published = json.loads((out / "reacher/nfwpo/paper.json").read_text())
    assert (published["title"], published["action_size"], [*published["seeds"]]) == ("an arm", 2, ["0", "1"])


def test_an_algorithm_that_is_not_known_here_is_published_as_it_was_described(folders: Path, tmp_path: Path) -> None:
    for config in (folders / "reacher/nfwpo").glob("*/config.json"):
        described = json.loads(config.read_text())
        described["algorithm"] |= {"kind": "Elsewhere"}
        config.write_text(json.dumps(described))
    publish(read_runs(find_runs(folders), folders).all, tmp_path / "results")
    kinds = {run.described["algorithm"]["kind"] for run in read_published(tmp_path / "results").all}  # pyright: ignore
    assert "Elsewhere" in kinds


def test_a_file_is_named_by_the_preset_and_its_json_says_the_rest(tmp_path: Path) -> None:
    gap = {"frank_wolfe_by": "gap", "frank_wolfe_step": 0.02}
    for preset, changes, variant in (("paper", {}, ""), ("fair", gap, ""), ("fair", {}, "fair+first")):
        config = configure("reacher", "nfwpo", 0, steps=4_000, preset=preset, changes=changes, variant=variant)
        write_run(tmp_path / "runs", replace(config, log_every=1_000, eval_every=1_000))
    out = tmp_path / "results"
    written = publish(read_runs(find_runs(tmp_path / "runs"), tmp_path / "runs").all, out)
    names = {path.relative_to(out).as_posix(): json.loads(path.with_suffix(".json").read_text()) for path in written}
    assert {name: (about["preset"], about["changes"]) for name, about in names.items()} == {
        "reacher/nfwpo/paper.csv": ("paper", {}),
        "reacher/nfwpo/fair-frank_wolfe_by-gap-frank_wolfe_step-0.02.csv": ("fair", gap),
        "reacher/nfwpo/fair-first.csv": ("fair", {}),
    }
