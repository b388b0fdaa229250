"""Populations of toys: all tests train the same three small agents with one set of programs."""

from collections.abc import Iterator

import pytest

from feasible.catalogue.registry import TASKS
from feasible.run.folder import RunFolder
from feasible.run.sweep.accelerator import train_together
from tests.run.population.toy_runs import Recorder, toy_runs
from tests.run.runs import programs_shared
from tests.run.toys import toy_task


@pytest.fixture(scope="package", autouse=True)
def _toy(_as_a_user: None) -> Iterator[None]:
    with programs_shared(), pytest.MonkeyPatch.context() as patch:
        patch.setitem(TASKS, "toy", toy_task())  # pyright: ignore[reportArgumentType]
        yield


@pytest.fixture(scope="package")
def heard() -> Recorder:
    """What was said while the uninterrupted runs were trained."""
    return Recorder()


@pytest.fixture(scope="package")
def uninterrupted(_toy: None, heard: Recorder, tmp_path_factory: pytest.TempPathFactory) -> list[RunFolder]:
    folders = toy_runs(tmp_path_factory.mktemp("uninterrupted"))
    assert train_together(folders, heard) == []
    return folders
