"""Runs in tests have a user's settings and share compiled programs: most of them train the same small agents."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.code_generation import users_code
from tests.run.runs import as_a_user, programs_shared


@pytest.fixture(scope="package", autouse=True)
def _as_a_user(cache: Path) -> Iterator[None]:
    with as_a_user(cache):
        yield


@pytest.fixture(scope="module")
def as_compiled_for_users() -> Iterator[None]:
    """For what holds bit for bit, which is said of the code that users get."""
    with users_code():
        yield


@pytest.fixture(scope="module")
def shared_programs() -> Iterator[None]:
    with programs_shared():
        yield
