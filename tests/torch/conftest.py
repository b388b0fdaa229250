"""What torch is needed for; why these are slow tests is said in `tests/packages.py`."""

from pathlib import Path

import pytest

from tests.packages import left_out, marked, one_thread, without_a_gpu


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    return left_out("torch", config) or (collection_path.name == "test_cuda.py" and without_a_gpu()) or None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    marked(items, Path(__file__).parent)


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> None:
    one_thread()
