"""Runs in tests are as a user's, and share compiled programs: most of them train the same small agents."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.run.runs import as_a_user


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("compiled")


@pytest.fixture(scope="package", autouse=True)
def _as_a_user(cache: Path) -> Iterator[None]:
    with as_a_user(cache):
        yield
