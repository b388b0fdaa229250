"""The grids of the paper's tables and figures: what they train, with which settings, and what comes of it."""

import csv
import io
import os
import sys
from pathlib import Path

import pytest

from feasible.algorithms.description import describe
from feasible.catalogue.registry import METHODS, PAPERS
from feasible.cli import main
from feasible.paper.as_authors import as_authors
from feasible.paper.items import ITEMS, TITLES, for_accelerator, paper_runs, run_folder
from feasible.paper.printed import PRINTED, TABLES


def named() -> set[tuple[str, str]]:
    return {(task, algo) for grid in ITEMS.values() for task, algos in grid.items() for algo in algos}


def test_every_item_of_the_paper_is_there() -> None:
    assert list(ITEMS) == ["table1", "table2", "fig1", "fig2", "fig3", "fig4", "fig5", "fig6", "all"]
    assert set(TITLES) == set(ITEMS)


def test_every_name_is_known() -> None:
    assert {task for task, _ in named()} == set(PAPERS)
    known = {algo for task in PAPERS.values() for algo in task.preset("paper")}
    assert {algo for _, algo in named()} == known - {"projected-gradient"}  # which is not of the paper
    assert known <= set(METHODS)


@pytest.mark.parametrize("item", ITEMS)
def test_every_run_can_be_configured(item: str) -> None:
    runs = paper_runs(item, [0])
    grid = {(task, algo) for task, algos in ITEMS[item].items() for algo in algos}
    assert len(runs) == len(grid)
    assert {(run.task, run.algo) for run in runs} == grid
    assert all(run.steps == PAPERS[run.task].steps for run in runs)


def test_tables_need_the_runs_of_which_they_print_a_value() -> None:
    for item, table in zip(("table1", "table2"), TABLES, strict=True):
        printed = {(task, algo) for row in table.rows.values() for task, (algo, _) in row.items()}
        assert {(task, algo) for task, algos in ITEMS[item].items() for algo in algos} == printed
    assert len(PRINTED) == 11 + 16


def test_the_papers_settings_and_lengths() -> None:
    runs = paper_runs("table1", [0, 1, 2, 3, 4])
    assert len(runs) == 55
    assert {(run.task, run.steps) for run in runs} == {("bss-3", 1_000_000), ("bss-5", 100_000), ("nsfnet", 500_000)}
    assert {run.preset for run in runs} == {"paper"}
    assert {run.variant for run in paper_runs("fig2", [0], "fair")} == {"fair"}
    assert {run.seed for run in runs[:11]} == {0}


def test_an_accelerator_gets_what_learns_at_every_step_of_mujoco() -> None:
    together = {(run.task, run.algo) for run in paper_runs("all", [0]) if for_accelerator(run)}
    neural = {"nfwpo", "ddpg-projection", "ddpg-shaping", "ddpg-optlayer", "sac-projection"}
    assert together == {*((t, a) for t in ("reacher", "halfcheetah") for a in neural), ("halfcheetah-box", "nfwpo")}


def test_shorter_runs_are_shorter_and_nothing_else() -> None:
    (full, *_), (short, *_) = paper_runs("fig3", [0]), paper_runs("fig3", [0], steps_scale=0.01)
    assert (short.steps, short.eval_every) == (5_000, 500)
    assert short.algorithm == full.algorithm
    assert short.episodes == full.episodes
    assert run_folder(Path("out"), 1.0) != run_folder(Path("out"), 0.01) != run_folder(Path("out"), 0.1)


def test_as_the_authors_did_beside_them() -> None:
    runs = paper_runs("fig2", [0], as_authors=True)
    assert [(run.algo, run.variant, run.steps) for run in runs[:4]] == [
        ("nfwpo", "", 100_000),
        ("nfwpo", "as-authors", 1_000_000),
        ("ddpg-projection", "", 100_000),
        ("ddpg-projection", "as-authors", 500_000),
    ]
    assert runs[1].algorithm == describe(as_authors("bss-5", "nfwpo"))
    assert [run.steps for run in paper_runs("fig2", [0], steps_scale=0.1, as_authors=True)[:2]] == [10_000, 100_000]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["table3"], "There is no item 'table3'; did you mean 'table2'? Known: table1, table2, fig1"),
        (["fig2", "--steps-scale", "2"], "steps_scale must be above 0 and at most 1, not 2.0."),
        (["fig2", "--seeds", "1", "1"], "seeds must name at least one, and each only once."),
        (["fig2", "--jobs", "0"], "jobs must be at least 1, not 0."),
    ],
)
def test_bad_input_is_answered_with_one_sentence(
    arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        main(["reproduce", *arguments, "--out", str(tmp_path / "out")])
    assert end.value.code == 1
    assert capsys.readouterr().err.startswith(f"feasible: {said}")
    assert not (tmp_path / "out").exists()


def test_an_item_is_trained_and_reported(
    tmp_path: Path,
    cache: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    plain_processes: None,
) -> None:
    """A part of Figure 1 in 100 steps; a second call trains nothing."""
    monkeypatch.setitem(ITEMS, "fig1", {"bss-3": ("fwpo",)})  # pyright: ignore[reportArgumentType, reportCallIssue]
    monkeypatch.setenv("FEASIBLE_CACHE", str(cache))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    arguments = ["fig1", "--steps-scale", "0.0001", "--seeds", "0", "--out", str(tmp_path)]
    main(["reproduce", *arguments])
    assert "1 of 1 done" in capsys.readouterr().out
    runs = tmp_path / "runs-x0.0001"
    assert len(list(runs.glob("bss-3/fwpo/seed-0/policy.feasible"))) == 1
    assert (tmp_path / "fig1" / "figures" / "bss-3-return.svg").exists()
    assert "Figure 1 of the paper" in (tmp_path / "fig1" / "index.html").read_text()
    table = csv.DictReader(io.StringIO((tmp_path / "fig1" / "tables" / "table-1.csv").read_text()))
    assert [row["bss-3 paper"] for row in table] == ["-1673.04"]
    before = {path: path.read_bytes() for path in runs.rglob("*") if path.is_file()}
    main(["reproduce", *arguments])
    assert {path: path.read_bytes() for path in runs.rglob("*") if path.is_file()} == before
