"""Runs in tests are as a user's, bit for bit, and share compiled programs: most of them train the same small agents."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.code_generation import users_code
from tests.run.runs import as_a_user, programs_shared


@pytest.fixture(scope="package", autouse=True)
def _as_a_user(cache: Path) -> Iterator[None]:
    with as_a_user(cache), users_code():
        yield


@pytest.fixture(scope="module")
def shared_programs() -> Iterator[None]:
    with programs_shared():
        yield
