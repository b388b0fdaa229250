"""Runs from elsewhere: files are named by slugs, names are text everywhere, and a bad run is left out and named."""

import csv
import io
import json
import math
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks.report import made_up, write_run
from feasible.report.file_names import slug, unique_slugs
from feasible.report.published import publish, read_published
from feasible.report.runs import find_runs, read_runs
from feasible.report.tables import Table
from feasible.report.writing import write_report
from tests.report.conftest import undrawn
from tests.report.test_runs import SINGLE

ODD = "=cmd|'/C calc'!A0<img src=x onerror=alert(1)>[a](b)$\\frac{$"
TASKS = ("../../../x", "a/b", "a-b", "A-B", "..", "/etc/x", ODD, "__DATA__", "_hidden")


def changed(folder: Path, change: Callable[[dict], object]) -> None:
    path = folder / "config.json"
    described = json.loads(path.read_text())
    change(described)
    path.write_text(json.dumps(described))


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with one figure: drawing takes most of a report's time."""
    folder = write_run(tmp_path_factory.mktemp("runs"), made_up("reacher", "nfwpo", 0, 3, 1))
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    few = [{name: line[name] for name in ("step", "eval/return")} for line in lines]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in few))
    return folder


@pytest.mark.parametrize("name", ["bss-3-return", "nfwpo+fair+frank_wolfe_by=gap+frank_wolfe_step=0.05", "A_b.c"])
def test_plain_names_are_their_own_slugs(name: str) -> None:
    assert slug(name) == name


def test_slugs_are_names_of_files_and_no_two_are_alike() -> None:
    names = [*TASKS, "", "x" * 1000, "\n", "a\u2215b", "a-b-2"]
    found = unique_slugs(names)
    assert len({one.lower() for one in found}) == len(names)
    assert all(re.fullmatch(r"[A-Za-z0-9_+=][A-Za-z0-9._+=-]{0,110}", one) for one in found)


def test_a_report_stays_in_its_folder_whatever_tasks_are_called(template: Path, tmp_path: Path) -> None:
    for number, task in enumerate(TASKS):
        folder = Path(shutil.copytree(template, tmp_path / f"runs/{number}"))
        changed(
            folder, lambda described, task=task: described.update(task=task, algo=task, variant=task[:2].strip("/."))
        )
    before = set(tmp_path.rglob("*"))
    report = write_report(tmp_path / "runs", tmp_path / "a/b")
    assert report.runs == len(TASKS)
    assert {group.task for group in report.groups} == set(TASKS)
    written = [path for path in set(tmp_path.rglob("*")) - before if path.is_file()]
    assert all(path.parent in (tmp_path / "a/b", tmp_path / "a/b/figures", tmp_path / "a/b/tables") for path in written)
    assert len(list((tmp_path / "a/b/figures").glob("*return*.svg"))) == len(TASKS)
    for path in (tmp_path / "a/b/figures").glob("*.svg"):
        ElementTree.parse(path)
    texts = [path.read_text() for path in (tmp_path / "a/b/tables").glob("*.md")]
    assert any("onerror" in text for text in texts)
    assert not any("<img" in text or "[a](b)" in text for text in texts)
    tables = [list(csv.reader(io.StringIO(path.read_text()))) for path in (tmp_path / "a/b/tables").glob("*.csv")]
    cells = [cell for table in tables for row in table for cell in row]
    assert f"'{ODD}" in cells
    assert not [cell for cell in cells if cell[:1] in "=+@" and cell]
    data = report.page.read_text().split('<script type="application/json" id="data">')[1].split("</script>")[0]
    assert {task["name"] for task in json.loads(data)["tasks"]} == set(TASKS)


def test_text_is_no_formula_and_numbers_stay_numbers() -> None:
    texts = ("=1+1", "+1", "-1", "@A1", "a=1", "<b>x</b> & `y` [z](w) | *v*", "two\nlines", None)
    table = Table("t", "T", ("=a", "b"), tuple((text, -1.5) for text in texts))
    heading, *rows = csv.reader(io.StringIO(table.csv()))
    assert heading == ["'=a", "b"]
    assert [row[0] for row in rows] == ["'=1+1", "'+1", "'-1", "'@A1", *texts[4:6], "two\ufffdlines", ""]
    assert [row[1] for row in rows] == ["-1.5"] * len(texts)
    lines = table.markdown().splitlines()
    assert len(lines) == 4 + len(texts)
    assert "| &lt;b&gt;x&lt;/b&gt; &amp; \\`y\\` \\[z\\](w) \\| \\*v\\* | -1.50 |" in lines


def spoil(name: str, contents: bytes) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes(contents)


def replaced(name: str, make: Callable[[Path], object]) -> Callable[[Path], object]:
    def spoiled(folder: Path) -> None:
        (folder / name).unlink()
        make(folder / name)

    return spoiled


CONFIG, METRICS = "config.json", "metrics.jsonl"
LEFT_OUT: dict[str, tuple[Callable[[Path], object], str]] = {
    "not UTF-8": (spoil(CONFIG, b'{"task": "\xff"}'), "config.json is no JSON"),
    "nested": (spoil(CONFIG, b"[" * 10**5), "config.json is nested too deeply"),
    "empty": (spoil(CONFIG, b""), "config.json is no JSON"),
    "huge": (spoil(CONFIG, b" " * 2**21), "config.json has more than 1,048,576 bytes"),
    "folder": (replaced(CONFIG, Path.mkdir), "config.json is no file"),
    "pipe": (replaced(CONFIG, os.mkfifo), "config.json is no file"),
    "endless": (replaced(METRICS, lambda path: path.symlink_to("/dev/zero")), "metrics.jsonl is no file"),
    "folder of metrics": (replaced(METRICS, Path.mkdir), "metrics.jsonl is no file"),
    "pipe of metrics": (replaced(METRICS, os.mkfifo), "metrics.jsonl is no file"),
    "no metrics": (spoil(METRICS, b""), "has no evaluation yet"),
    "step beyond int64": (
        spoil(METRICS, b'{"step": 9223372036854775808, "eval/return": 1}\n'),
        "has no evaluation yet",
    ),
    "negative step": (spoil(METRICS, b'{"step": -1, "eval/return": 1}\n'), "has no evaluation yet"),
    "nested metrics": (spoil(METRICS, b"[" * 10**5 + b"\n"), "has no evaluation yet"),
    "metrics not UTF-8": (spoil(METRICS, b"\xff\n"), "has no evaluation yet"),
    "no numbers": (spoil(METRICS, b'{"step": 1, "eval/return": "9"}\n'), "has no evaluation yet"),
    "NaN": (spoil(METRICS, b'{"step": 1, "eval/return": NaN}\n'), "has no evaluation yet"),
    "huge number": (spoil(METRICS, b'{"step": 1, "eval/return": 1' + b"0" * 400 + b"}\n"), "has no evaluation yet"),
}
FIELDS: dict[str, tuple[str, object]] = {
    "seed -1": ("seed", -1),
    "seed 2**70": ("seed", 2**70),
    "no steps": ("steps", 0),
    "interval of 0": ("eval_every", 0),
    "episodes": ("episodes", 10**9),
    "a list": ("task", ["reacher"]),
    "an object": ("algo", {}),
    "no task": ("task", ""),
    "control characters": ("variant", "\x1b[31m"),
    "half a letter": ("task", "\ud800"),
    "infinite": ("steps", math.inf),
}


def test_bad_runs_are_named_and_the_others_reported(template: Path, tmp_path: Path) -> None:
    for name, (harm, _) in LEFT_OUT.items():
        harm(Path(shutil.copytree(template, tmp_path / "runs" / name)))
    for name, (field, value) in FIELDS.items():
        changed(Path(shutil.copytree(template, tmp_path / "runs" / name)), lambda c, f=field, v=value: c.update({f: v}))
    shutil.copytree(template, tmp_path / "runs/good")
    runs = read_runs(find_runs(tmp_path / "runs"), tmp_path / "runs")
    assert [run.path for run in runs.all] == ["good"]
    left_out = {note.about: note.says for note in runs.notes if note.left_out}
    assert left_out.keys() == LEFT_OUT.keys() | FIELDS.keys()
    for name, (_, said) in LEFT_OUT.items():
        assert said in left_out[name], name
    for name, (field, _) in FIELDS.items():
        assert f"({field} must be" in left_out[name] or "(task and algo must be" in left_out[name], name
    assert all(note.says.isprintable() and len(note.says) < 300 for note in runs.notes)


def test_what_else_a_configuration_says_is_text(template: Path, tmp_path: Path) -> None:
    odd = {"versions": {"feasible": "\ud800\x1b[31m=1", "jax\n": ["deep"]}, "machine": 3, "command": "=1"}
    odd["algorithm"] = {"warmup": -(10**400)}
    for number, change in enumerate((odd, {**odd, "algorithm": [], "seed": 1})):
        changed(
            Path(shutil.copytree(template, tmp_path / f"runs/a\x1b\n{number}")), lambda c, more=change: c.update(more)
        )
    with undrawn():
        report = write_report(tmp_path / "runs", tmp_path / "report")
    assert [run.path for group in report.groups for run in group.runs] == ["a\ufffd\ufffd0", "a\ufffd\ufffd1"]
    texts = [path.read_bytes().decode() for path in (tmp_path / "report/tables").iterdir()]
    assert not any("\x1b" in text for text in texts)


def test_values_that_are_no_numbers_are_left_out_and_counted(template: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(template, tmp_path / "runs/run"))
    lines = [json.loads(line) for line in (folder / METRICS).read_text().splitlines()]
    lines[1] |= {"eval/return": math.inf, "violation/proposed_count": None, "time/steps_per_second": 10**300}
    lines[2] |= {"step": lines[2]["step"], "actor/grad_proposed": [[1.0]]}
    (folder / METRICS).write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"step": 1}\n')
    runs = read_runs(find_runs(tmp_path / "runs"), tmp_path / "runs")
    assert [note.says for note in runs.notes] == [
        "has a metrics file that is damaged in line 4; only the lines before it are used",
        *(
            f"has 1 values of {name} that are no finite numbers and are not used"
            for name in ("eval/return", "violation/proposed_count", "actor/grad_proposed", "time/steps_per_second")
        ),
    ]
    assert runs.all[0].series["eval/return"].values.tolist() == [lines[0]["eval/return"], lines[2]["eval/return"]]


class TestPublished:
    @pytest.fixture
    def results(self, template: Path, tmp_path: Path) -> Path:
        publish(read_runs([template], template.parent).all, tmp_path / "results")
        return tmp_path / "results"

    @pytest.mark.parametrize(
        ("name", "contents", "said"),
        [
            ("paper.json", b"[" * 10**5, "nested too deeply"),
            ("paper.json", b"{}", "seeds is missing"),
            ("paper.json", b'{"seeds": {"0": 3}}', "seeds must describe seed '0', not be 3"),
            ("paper.json", b'{"seeds": {"0": {}}}', "task is missing"),
            ("paper.csv", b"", "its first columns are not seed and step"),
            ("paper.csv", b"seed,step,eval/return\n0,1\n", "its rows have not all the columns of the first"),
            ("paper.csv", b"seed,step,eval/return\n0,9223372036854775808,1\n", "its steps are not whole numbers"),
            ("paper.csv", b"seed,step,eval/return\n0,1,nan\n", "eval/return has values that are no finite numbers"),
            ("paper.csv", b"seed,step,eval/return\n0,one,1\n", "invalid literal"),
            ("paper.csv", b"seed,step,eval/return\n\xff,1,1\n", "codec"),
        ],
        ids=lambda value: value if isinstance(value, str) else "",
    )
    def test_a_bad_file_is_left_out(self, name: str, contents: bytes, said: str, results: Path) -> None:
        for form in ("csv", "json"):
            shutil.copy(results / f"reacher/nfwpo/paper.{form}", results / f"reacher/nfwpo/other.{form}")
        (results / "reacher/nfwpo" / name).write_bytes(contents)
        found = read_published(results)
        assert [run.path for run in found.all] == ["reacher/nfwpo/other/seed-0"]
        (note,) = found.notes
        assert (note.about, note.left_out) == ("reacher/nfwpo/paper.csv", True)
        assert said in note.says

    def test_names_that_no_files_can_have_are_refused(self, template: Path, tmp_path: Path) -> None:
        changed(Path(shutil.copytree(template, tmp_path / "runs/run")), lambda c: c.update(task="../../x"))
        with pytest.raises(ValueError, match=r"run: \.\./\.\./x/nfwpo cannot be published"):
            publish(read_runs(find_runs(tmp_path / "runs"), tmp_path / "runs").all, tmp_path / "results")
        assert not (tmp_path / "results").exists()


def test_one_seed_has_no_deviation_no_interval_and_no_probability(tmp_path: Path) -> None:
    """NFWPO has two seeds, the two others one each: nothing is said of the spread of those."""
    for algo, seeds in {"nfwpo": (0, 1), "ddpg-projection": (0,), "ddpg-shaping": (0,)}.items():
        for seed in seeds:
            write_run(tmp_path / "runs", made_up("reacher", algo, seed, 12, 2))
    report = write_report(tmp_path / "runs", tmp_path / "report")
    tables = {
        path.stem: list(csv.DictReader(io.StringIO(path.read_text())))
        for path in (tmp_path / "report/tables").glob("*.csv")
    }
    for row in tables["scores"]:
        assert all(bool(row[name]) == (row["method"] == "NFWPO") for name in ("std", "IQM low", "IQM high"))
        assert float(row["mean"]) == pytest.approx(float(row["IQM"]))
    assert [bool(row["reacher std"]) for row in tables["table-2"]] == [True, False, False]
    assert "improvement" not in tables
    notes = [f"{note.about} {note.says}" for note in report.notes]
    assert f"reacher has one finished seed of DDPG+Projection, DDPG+RewardShaping: {SINGLE}" in notes
    data = json.loads(report.page.read_text().split('id="data">')[1].split("</script>")[0])
    assert [score["std"] is None for score in data["scores"]] == [False, True, True]
    assert [score["iqm"][1:] == [None, None] for score in data["scores"]] == [False, True, True]
    (comparison,) = data["comparisons"]
    assert comparison["beats"] == [[None] * 3] * 3
    assert [profile["low"] is None for profile in comparison["profiles"]] == [False, True, True]
    assert all((line["s"] is None) == (len(line["seeds"]) == 1) for chart in data["charts"] for line in chart["lines"])
    assert "(a single seed has none)" in (tmp_path / "report/figures/reacher-statistics.svg").read_text()
