"""What is read of run folders, good and bad: the report always comes, and says what was left out and why."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from benchmarks.report import made_up, write_run
from feasible.cli import main
from feasible.report import runs as reading
from feasible.report.groups import group_runs, unevenness
from feasible.report.runs import Note, find_runs, parse_metrics, read_runs
from feasible.report.writing import write_report
from feasible.run.folder import read_metrics
from tests.report.conftest import EVALUATIONS, undrawn, write_runs

SINGLE = "a single seed has no standard deviation, no interval and no probability of improvement"


def notes_of(root: Path) -> list[Note]:
    runs = read_runs(find_runs(root), root)
    return [*runs.notes, *unevenness(group_runs(runs))]


def said(root: Path) -> list[str]:
    return [f"{note.about} {note.says}" for note in notes_of(root)]


def test_a_run_is_what_its_files_say(tmp_path: Path) -> None:
    config = made_up("reacher", "nfwpo", 3, EVALUATIONS, logs=2)
    folder = write_run(tmp_path, config)
    (run,) = read_runs(find_runs(tmp_path), tmp_path).all
    lines = read_metrics(folder / "metrics.jsonl")
    returns = [line["eval/return"] for line in lines if "eval/return" in line]
    assert run.path == "reacher/nfwpo/seed-3"
    assert (run.task, run.algo, run.seed, run.steps, run.reached) == ("reacher", "nfwpo", 3, 24_000, 24_000)
    assert run.series["eval/return"].values.tolist() == returns
    assert run.score == pytest.approx(np.mean(returns[-10:]))  # pyright: ignore[reportArgumentType, reportCallIssue]
    # Nothing is counted in 1,000 steps of warm-up on Reacher; the action after the last step is.
    assert run.infeasible_share == lines[-1]["violation/proposed_count"] / 23_001  # pyright: ignore[reportOperatorIssue]
    assert run.executed_violation == 3e-8
    assert run.described["algorithm"]["batch_size"] == 16  # pyright: ignore


def test_nothing_to_say_of_even_runs(tmp_path: Path) -> None:
    assert said(write_runs(tmp_path)) == []


def test_a_long_run_keeps_its_evaluations_and_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_run(tmp_path, made_up("reacher", "nfwpo", 0, 30, logs=5))
    (whole,) = read_runs(find_runs(tmp_path), tmp_path).all
    monkeypatch.setattr(reading, "LINES", 20)
    (thin,) = read_runs(find_runs(tmp_path), tmp_path).all
    assert len(thin.series["violation/proposed_count"].steps) < len(whole.series["violation/proposed_count"].steps) / 2
    assert thin.series["eval/return"].values.tolist() == whole.series["eval/return"].values.tolist()
    assert (thin.reached, thin.score, thin.infeasible_share) == (whole.reached, whole.score, whole.infeasible_share)


class TestBadInput:
    """Each spoils one thing in a folder of eight good runs."""

    @pytest.fixture
    def root(self, tmp_path: Path) -> Path:
        return write_runs(tmp_path / "runs")

    def test_a_torn_last_line(self, root: Path) -> None:
        path = root / "reacher/nfwpo/seed-0/metrics.jsonl"
        path.write_bytes(path.read_bytes()[:-40])
        first, second, third = said(root)
        assert first == "reacher/nfwpo/seed-0 was cut in the middle of its last line, which is not used"
        assert second.startswith(
            "reacher/nfwpo/seed-0 has not ended (step 23,000 of 24,000): drawn, but left out of the"
        )
        assert third == f"reacher has one finished seed of NFWPO: {SINGLE}"

    def test_a_damaged_line_in_the_middle(self, root: Path) -> None:
        path = root / "reacher/nfwpo/seed-0/metrics.jsonl"
        lines = path.read_text().splitlines()
        lines[11] = lines[11][:20]
        path.write_text("\n".join(lines) + "\n")
        assert (
            "seed-0 has a metrics file that is damaged in line 12; only the lines before it are used" in said(root)[0]
        )
        runs = read_runs(find_runs(root), root)
        assert next(run for run in runs.all if run.path == "reacher/nfwpo/seed-0").reached == 11_000

    @pytest.mark.parametrize("contents", ["", "{", "[]", '{"task": "reacher"}'])
    def test_a_damaged_config(self, contents: str, root: Path) -> None:
        (root / "reacher/nfwpo/seed-0/config.json").write_text(contents)
        assert "reacher/nfwpo/seed-0 has a config.json that is damaged or of another version" in said(root)[0]
        assert "reacher, NFWPO lacks seed 0, which other methods have" in said(root)

    def test_no_metrics(self, root: Path) -> None:
        (root / "reacher/nfwpo/seed-0/metrics.jsonl").unlink()
        (root / "reacher/nfwpo/seed-1/metrics.jsonl").write_text('{"step": 1000, "violation/proposed_count": 3}\n')
        assert said(root)[:2] == [
            "reacher/nfwpo/seed-0 has no metrics yet",
            "reacher/nfwpo/seed-1 has no evaluation yet",
        ]
        assert all(note.left_out for note in notes_of(root)[:2])

    def test_missing_seeds(self, root: Path) -> None:
        shutil.rmtree(root / "bss-3/fwpo/seed-1")
        assert said(root) == [
            f"bss-3 has one finished seed of FWPO: {SINGLE}",
            "bss-3, FWPO lacks seed 1, which other methods have",
        ]

    def test_mixed_versions(self, root: Path) -> None:
        write_run(root, made_up("reacher", "ddpg-shaping", 0, 12, 2), versions={"feasible": "0.2.0", "jax": "0.10.2"})
        assert "feasible has different versions: 0.1.0 (8 runs), 0.2.0 (1 runs)" in said(root)
        assert not any(text.startswith("jax") for text in said(root))

    def test_unequal_lengths(self, root: Path) -> None:
        write_run(root, made_up("reacher", "nfwpo", 2, 6, 2))
        notes = said(root)
        assert "reacher has runs of unequal length, 12,000 to 24,000 steps: scores are of each end" in notes
        assert "reacher, NFWPO seed 2: fewer than 10 evaluations, the score is their mean" in notes
        group = next(g for g in group_runs(read_runs(find_runs(root), root)) if g.title == "NFWPO")
        band = group.band("eval/return")
        assert band is not None
        assert band.steps.tolist() == list(range(2_000, 12_001, 2_000))
        assert len(group.scores) == 3

    def test_other_settings_of_a_seed(self, root: Path) -> None:
        path = root / "reacher/nfwpo/seed-1/config.json"
        config = json.loads(path.read_text())
        config["algorithm"]["batch_size"] = 17
        path.write_text(json.dumps(config))
        assert said(root) == ["reacher, NFWPO has seeds that were trained with different settings"]

    def test_the_same_run_twice(self, root: Path) -> None:
        shutil.copytree(root / "reacher", root / "copy" / "reacher")
        assert "reacher/nfwpo/seed-0 is the same run as copy/reacher/nfwpo/seed-0, which is used" in said(root)
        assert len(read_runs(find_runs(root), root).all) == 8

    def test_a_method_and_a_task_of_another_version(self, root: Path, tmp_path: Path) -> None:
        for folder, task, algo in (("new", "reacher", "newest"), ("other", "moon", "nfwpo")):
            shutil.copytree(root / "reacher/nfwpo/seed-0", root / folder / "seed-0")
            path = root / folder / "seed-0" / "config.json"
            path.write_text(json.dumps({**json.loads(path.read_text()), "task": task, "algo": algo}))
        with undrawn():
            report = write_report(root, tmp_path / "report")
        assert {"newest", "NFWPO"} <= {group.title for group in report.groups}
        assert "moon" in {group.task for group in report.groups}

    def test_one_unfinished_run_alone(self, tmp_path: Path) -> None:
        write_run(tmp_path / "runs", made_up("reacher", "nfwpo", 0, 12, 2), reached=4_000)
        report = write_report(tmp_path / "runs", tmp_path / "report")
        assert (tmp_path / "report/figures/reacher-return.svg").exists()
        assert [note.left_out for note in report.notes] == [True]
        assert "NFWPO,0,,,,,,-4.76" in (tmp_path / "report/tables/scores.csv").read_text()


def without_metrics(root: Path) -> None:
    (write_run(root, made_up("reacher", "nfwpo", 0, 1)) / "metrics.jsonl").unlink()


@pytest.mark.parametrize(
    ("prepare", "sentence"),
    [
        (lambda root: None, "is no folder: name the folder of the runs, the --out of `feasible compare`."),
        (Path.mkdir, "holds no runs: there is no config.json below it."),
        (without_metrics, "holds no run that can be read: reacher/nfwpo/seed-0 has no metrics yet."),
    ],
)
def test_no_runs_are_one_sentence(
    prepare: Callable[[Path], None], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "runs"
    prepare(root)
    with pytest.raises(SystemExit) as end:
        main(["report", str(root), "--out", str(tmp_path / "report")])
    assert end.value.code == 1
    assert capsys.readouterr().err == f"feasible: {root} {sentence}\n"
    assert not (tmp_path / "report").exists()


def test_a_metrics_file_cut_anywhere_is_read_to_there() -> None:
    """A cut leaves every line that was complete before it, and never fails."""
    whole = b"".join(json.dumps({"step": step, "eval/return": step / 7}).encode() + b"\n" for step in range(1, 9))
    for end in range(len(whole) + 1):
        lines, _ = parse_metrics(whole[:end])
        assert [line["step"] for line in lines] == list(range(1, whole[:end].count(b"\n") + 1))
