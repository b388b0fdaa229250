"""Strict numerics for every test: float64 available, no silent promotion of ranks or dtypes."""

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import jax
import pytest

from tests.browser import browser as browser
from tests.code_generation import compile_equal_programs_once, forget_programs, make_plain_code, xla_flags

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")


def pytest_configure(config: pytest.Config) -> None:
    """Long tests, and all where those are not left out, are of the code that users get."""
    os.environ["FEASIBLE_CACHE"] = "off"  # tests neither use nor fill the cache of whoever runs them
    if config.getoption("markexpr") == "not slow":
        make_plain_code()
    compile_equal_programs_once()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of a module share fixtures and compiled programs: they run on one worker, unless they name their group."""
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))


def pytest_collection_finish() -> None:
    """Imports and traced programs stay to the end: the collector need not search them every few moments."""
    gc.freeze()
    gc.set_threshold(100_000, 20, 100)


@pytest.fixture(scope="module", autouse=True)
def _programs_of_a_module() -> Iterator[None]:
    """Equal programs are rare beyond a module; to keep them all takes memory."""
    yield
    forget_programs()


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where processes keep compiled programs for those that train the same agent again, on this worker or another."""
    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "compiled"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


@pytest.fixture
def plain_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let processes that the test starts compile as this one, which reads its flags when it first compiles."""
    jax.jit(lambda: 0)()
    monkeypatch.setenv("XLA_FLAGS", xla_flags())
