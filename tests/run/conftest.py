"""Runs in tests have a user's settings, and processes share compiled programs: most train the same small agents."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from feasible.catalogue.registry import TASKS
from feasible.run.folder import RunFolder
from feasible.run.train import Outcome, train
from tests.code_generation import users_code
from tests.run.gate import Gates
from tests.run.runs import METHODS, as_a_user, programs_shared, short_run
from tests.run.toys import toy_task


@pytest.fixture(scope="package", autouse=True)
def _as_a_user() -> Iterator[None]:
    with as_a_user():
        yield


@pytest.fixture(scope="module")
def as_compiled_for_users() -> Iterator[None]:
    """For what holds bit for bit, which is said of the code that users get."""
    with users_code():
        yield


@pytest.fixture(scope="module")
def shared_programs() -> Iterator[None]:
    """Most tests that train the toy alike are in the group `toy`, on one worker."""
    with programs_shared():
        yield


@pytest.fixture(scope="module")
def toy() -> Iterator[None]:
    """The task `toy`, for as long as a module is tested."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(TASKS, "toy", toy_task())  # pyright: ignore[reportArgumentType]
        yield


@pytest.fixture
def gates(tmp_path: Path) -> Gates:
    return Gates(tmp_path / "gates")


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, RunFolder]:
    """The short run of each method, trained here and by nothing disturbed: once for all that compare with it.

    What asks for it is in the group `processes`, on one worker.
    """
    runs = {algo: short_run(tmp_path_factory.mktemp("undisturbed"), algo) for algo in METHODS}
    with as_a_user(), programs_shared():
        assert [train(run) for run in runs.values()] == [Outcome(400, finished=True)] * len(METHODS)
    return runs
