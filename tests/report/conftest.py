"""Made-up runs: two tasks, three methods, two seeds, short."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import pytest

from benchmarks.report import made_up, write_run
from feasible.report.writing import Report, write_report

KINDS = (("bss-3", "fwpo"), ("bss-3", "tabular-projection"), ("reacher", "nfwpo"), ("reacher", "ddpg-optlayer"))
SEEDS = (0, 1)
EVALUATIONS = 12


def write_runs(out: Path) -> Path:
    for task, algo in KINDS:
        for seed in SEEDS:
            write_run(out, made_up(task, algo, seed, EVALUATIONS, logs=2))
    return out


@contextmanager
def undrawn() -> Iterator[None]:
    """Reports have no figures, which take most of the time: for tests of what else is in them."""
    with mock.patch("feasible.report.writing.all_figures", return_value=()):
        yield


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """A report of all of them."""
    folder = tmp_path_factory.mktemp("report")
    return write_report(write_runs(folder / "runs"), folder / "report", title="Two tasks & <three> methods")
