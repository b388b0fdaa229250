"""The demonstration, shortened: it trains, compares and writes a report."""

import json
import re
from pathlib import Path

import pytest

from feasible.cli import main
from feasible.cli.demo import ALGOS, BUDGETS


@pytest.mark.slow
def test_the_demonstration_writes_a_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["demo", "--out", str(tmp_path), "--steps", "80"])
    page = (tmp_path / "index.html").read_text()
    held = re.search(r'<script type="application/json" id="data">(.*?)</script>', page)
    assert held is not None
    data = json.loads(held[1])
    shown = {(score["task"], score["method"]) for score in data["scores"]}
    assert shown == {(budget.task, algo) for budget in BUDGETS for algo in ALGOS}
    assert {method["title"] for method in data["methods"]} == {"NFWPO", "DDPG+Projection"}
    runs = list(tmp_path.glob("runs/*/*/seed-0/policy.feasible"))
    assert len(runs) == len(BUDGETS) * len(ALGOS)
    assert (tmp_path / "figures" / "reacher-return.png").read_bytes().startswith(b"\x89PNG")
    assert len(list(tmp_path.glob("runs/*/*/seed-0/film.gif"))) == len(runs)
    assert {medium["address"][:15] for medium in data["media"]} == {"data:image/gif;"}
    printed = capsys.readouterr().out
    assert "The page:" in printed
    assert "too short to compare" in " ".join(printed.split())
    assert "last return" not in printed
    assert data["ahead"].startswith("Try next: ")
