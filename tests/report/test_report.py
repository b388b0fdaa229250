"""A report's files: tables with the paper's values beside ours, figures that open, the same bytes every time."""

import csv
import io
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image
from scipy import stats

from benchmarks.report import made_up, write_run
from feasible.catalogue.registry import PAPERS
from feasible.paper.printed import FIGURES, PRINTED, TABLES, normalised
from feasible.report.aggregates import comparisons
from feasible.report.groups import group_runs
from feasible.report.runs import find_runs, read_runs
from feasible.report.writing import Report, write_report
from feasible.run.folder import read_metrics
from tests.report.conftest import KINDS, SEEDS, undrawn
from tests.run.runs import files


def table(report: Report, name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO((report.page.parent / "tables" / f"{name}.csv").read_text())))


def last_ten(report: Report, task: str, algo: str) -> list[float]:
    """The scores of the seeds, from the files of the runs alone."""
    scores = []
    for seed in SEEDS:
        lines = read_metrics(report.page.parents[1] / "runs" / task / algo / f"seed-{seed}" / "metrics.jsonl")
        scores.append(float(np.mean([line["eval/return"] for line in lines if "eval/return" in line][-10:])))  # pyright: ignore
    return scores


def test_scores_are_of_the_last_ten_evaluations(report: Report) -> None:
    rows = table(report, "scores")
    assert [(row["task"], row["method"]) for row in rows] == [
        ("bss-3", "FWPO"),
        ("bss-3", "Tabular projection"),
        ("reacher", "NFWPO"),
        ("reacher", "DDPG+OptLayer"),
    ]
    for row, (task, algo) in zip(rows, KINDS, strict=True):
        scores = last_ten(report, task, algo)
        assert int(row["seeds"]) == len(SEEDS)
        assert float(row["mean"]) == pytest.approx(np.mean(scores))
        assert float(row["std"]) == pytest.approx(np.std(scores))
        assert float(row["IQM"]) == pytest.approx(stats.trim_mean(scores, 0.25))
        assert min(scores) - 1e-9 <= float(row["IQM low"]) <= float(row["IQM high"]) <= max(scores) + 1e-9


def test_the_papers_values_are_those_it_prints() -> None:
    """Sums and corners of Tables 1 and 2 as printed."""
    first, second = TABLES
    sums = {task: sum(row[task][1] for row in first.rows.values() if task in row) for task in first.tasks}
    assert sums == pytest.approx({"bss-3": -6235.56, "bss-5": -64065.21, "nsfnet": 25963.16})
    sums = {task: sum(row[task][1] for row in second.rows.values()) for task in second.tasks}
    assert sums == pytest.approx({"reacher": -76.27, "halfcheetah": 24222.49})
    assert PRINTED["halfcheetah", "nfwpo"] == 6513.26
    assert PRINTED["bss-3", "fwpo"] == -1673.04
    assert "bss-3" not in first.rows["DDPG+OptLayer"]
    assert {task for task, _ in FIGURES} == set(PAPERS)


def test_the_papers_tables_have_its_layout(report: Report) -> None:
    rows = table(report, "table-2")
    assert [row["method"] for row in rows] == ["NFWPO", "DDPG+OptLayer"]
    assert [row["reacher paper"] for row in rows] == ["-4.76", "-7.25"]
    assert float(rows[0]["reacher"]) == pytest.approx(np.mean(last_ten(report, "reacher", "nfwpo")))
    assert "halfcheetah" not in rows[0]
    rows = table(report, "table-1")
    assert [(row["method"], row["bss-3 paper"]) for row in rows] == [
        ("NFWPO", "-1673.04"),
        ("DDPG+Projection", "-2254.52"),
    ]


def test_markdown_has_the_rows_of_the_csv(report: Report) -> None:
    for path in sorted((report.page.parent / "tables").glob("*.csv")):
        rows = list(csv.reader(io.StringIO(path.read_text())))
        lines = [line for line in path.with_suffix(".md").read_text().splitlines() if line.startswith("| ")]
        assert len(lines) == len(rows) + 1
        assert {line.count(" | ") for line in lines} == {len(rows[0]) - 1}


def test_every_figure_is_there_as_png_and_svg(report: Report) -> None:
    figures = report.page.parent / "figures"
    names = {path.stem for path in figures.iterdir()}
    assert names == {
        *("bss-3-return", "bss-3-violations", "bss-3-distance", "bss-3-statistics"),
        *("reacher-return", "reacher-violations", "reacher-gradients", "reacher-statistics"),
    }
    for name in names:
        with Image.open(figures / f"{name}.png") as image:
            image.load()
            assert min(image.size) > 300
            assert len(image.convert("RGB").getcolors(image.width * image.height) or []) > 100
        ElementTree.parse(figures / f"{name}.svg")
    text = (figures / "reacher-gradients.svg").read_text()
    assert "DDPG+OptLayer, before" in text
    assert "DDPG+OptLayer, after" in text
    assert "Figure 4a" in (figures / "reacher-return.svg").read_text()


def test_the_same_runs_give_the_same_bytes(report: Report, tmp_path: Path) -> None:
    write_report(report.page.parents[1] / "runs", tmp_path, title="Two tasks & <three> methods")
    assert files(tmp_path) == files(report.page.parent)


def test_methods_are_compared_over_the_tasks_they_share(tmp_path: Path) -> None:
    for task, algos in {
        "reacher": ("nfwpo", "ddpg-projection", "sac-projection"),
        "nsfnet": ("nfwpo", "ddpg-projection"),
    }.items():
        for algo in algos:
            for seed in SEEDS:
                write_run(tmp_path, made_up(task, algo, seed, 12, 2))
    found = comparisons(group_runs(read_runs(find_runs(tmp_path), tmp_path)))
    assert [(one.tasks, one.methods) for one in found] == [
        (("nsfnet",), ("nfwpo", "ddpg-projection")),
        (("reacher",), ("nfwpo", "ddpg-projection", "sac-projection")),
        (("nsfnet", "reacher"), ("nfwpo", "ddpg-projection")),
    ]
    both = found[-1].improvements
    assert both["nfwpo", "ddpg-projection"].value == pytest.approx(1 - both["ddpg-projection", "nfwpo"].value)


def test_the_papers_scale() -> None:
    assert normalised("reacher", -11.15) == pytest.approx(0)
    assert normalised("bss-5", -15132.21) == pytest.approx(1)
    assert normalised("halfcheetah-box", 1.0) is None


def test_variants_have_rows_of_their_own(tmp_path: Path) -> None:
    for variant in ("", "as-authors"):
        for seed in SEEDS:
            write_run(tmp_path / "runs", made_up("reacher", "nfwpo", seed, 12, 2, variant))
    with undrawn():
        report = write_report(tmp_path / "runs", tmp_path / "report")
    assert [row["method"] for row in table(report, "table-2")] == ["NFWPO", "NFWPO (as-authors)"]
    assert [group.title for group in report.groups] == ["NFWPO", "NFWPO (as-authors)"]


def test_one_variant_everywhere_is_not_named(tmp_path: Path) -> None:
    for task in ("reacher", "bss-5"):
        write_run(tmp_path / "runs", made_up(task, "nfwpo", 0, 12, 2, f"demo-{task}"))
    groups = group_runs(read_runs(find_runs(tmp_path / "runs"), tmp_path / "runs"))
    assert [group.title for group in groups] == ["NFWPO", "NFWPO"]
