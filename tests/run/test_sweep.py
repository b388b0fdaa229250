"""Many runs at once: other settings are refused, and each has a core. How they end is in `test_compare.py`."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from feasible.run.folder import RunFolder
from feasible.run.sweep.processes import Processes, RunProcess
from feasible.run.sweep.sweep import prepare
from tests.run.runs import small_run

pytestmark = pytest.mark.xdist_group("processes")


def test_a_folder_with_other_settings_is_refused(tmp_path: Path) -> None:
    folder = small_run(tmp_path, variant="one", steps=200)
    config = folder.config()
    assert [known.path for known in prepare(tmp_path, [config])] == [folder.path]
    other = small_run(tmp_path / "elsewhere", variant="one", steps=300).config()
    with pytest.raises(FileExistsError, match="holds a run with other settings"):
        prepare(tmp_path, [other])


@pytest.fixture
def idle(tmp_path: Path) -> Iterator[Path]:
    """A program that does nothing until it is ended, or until the test is over."""
    program, never = tmp_path / "idle", tmp_path / "never"
    os.mkfifo(never)
    program.write_text(f"#!/bin/sh\nexec cat '{never}'\n")
    program.chmod(0o755)
    with never.open("r+b", buffering=0):
        yield program


def test_runs_that_fill_the_machine_have_a_core_each(
    idle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(idle))
    here = sorted(os.sched_getaffinity(0))
    folder = RunFolder(tmp_path)

    def core_of(run: RunProcess) -> set[int]:
        return os.sched_getaffinity(run._process.pid)

    crew = Processes(len(here))
    runs = [crew.start(folder) for _ in here]
    assert [core_of(run) for run in runs] == [{core} for core in here]
    runs[-1].stop()
    runs[-1].wait()
    runs.append(crew.start(folder))
    assert core_of(runs[-1]) == {here[-1]}  # that of the one that has ended
    runs.append(Processes(len(here) + 1).start(folder))
    assert core_of(runs[-1]) == set(here)  # there is no core for each: the system deals them out
    for run in runs:
        run.stop()
        run.wait()
