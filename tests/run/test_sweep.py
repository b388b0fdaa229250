"""Many runs at once: all end, none is repeated, one that fails stops no other, other settings are refused."""

import io
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from feasible.run.disk import checkpoint
from feasible.run.folder import RunFolder
from feasible.run.sweep.processes import Processes, RunProcess
from feasible.run.sweep.sweep import prepare, run_all
from tests.run.runs import environment, files, small_run

pytestmark = pytest.mark.xdist_group("processes")


@pytest.fixture
def console(cache: Path) -> Iterator[Console]:
    """A place to print to; processes started meanwhile find the code under test and share compiled programs."""
    with environment(cache):
        yield Console(file=io.StringIO(), width=160)


def test_a_failure_stops_no_other_and_nothing_is_repeated(tmp_path: Path, console: Console) -> None:
    good = small_run(tmp_path, variant="good", steps=200)
    bad = small_run(tmp_path, variant="bad", steps=200)
    bad.checkpoint.mkdir()
    (bad.checkpoint / checkpoint.STATE).write_bytes(b"no archive")
    failures = run_all([bad, good], console)
    assert [failure.folder.path for failure in failures] == [bad.path]
    assert "damaged" in failures[0].reason
    finished = checkpoint.read(good.checkpoint)
    assert finished is not None
    assert finished.finished
    before = files(good.path)
    assert run_all([good], console) == []
    assert files(good.path) == before
    assert "1 of 2 done" in console.file.getvalue()  # pyright: ignore[reportAttributeAccessIssue]


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
