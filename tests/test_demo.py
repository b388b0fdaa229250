"""The demonstration, shortened: it trains, compares and writes a page that needs no other file."""

import re
from pathlib import Path

import pytest

from feasible.cli import main
from feasible.demo import ALGOS, BUDGETS


@pytest.mark.slow
def test_the_demonstration_writes_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["demo", "--out", str(tmp_path), "--steps", "80"])
    page = (tmp_path / "index.html").read_text()
    assert len(re.findall(r'<img alt="[\w-]+" src="data:image/png;base64,iVBOR', page)) == len(BUDGETS)
    assert not re.search(r'(src|href)="(?!data:)', page)
    rows = re.findall(r"<tr><td>([\w-]+)</td><td>([\w+]+)</td>", page)
    assert sorted(rows) == sorted((budget.task, title) for budget in BUDGETS for title in ("NFWPO", "DDPG+Projection"))
    runs = list(tmp_path.glob("runs/*/*/seed-0/policy.feasible"))
    assert len(runs) == len(BUDGETS) * len(ALGOS)
    assert "The page:" in capsys.readouterr().out
