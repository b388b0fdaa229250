"""Tests of runs share compiled programs: most of them train the same small agent."""

from collections.abc import Iterator
from pathlib import Path

import jax
import pytest
from jax.experimental.compilation_cache import compilation_cache

from tests.run.runs import CACHE_SETTINGS


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("compiled")


@pytest.fixture(scope="package", autouse=True)
def _compile_once(cache: Path) -> Iterator[None]:
    settings: dict[str, object] = {**CACHE_SETTINGS, "jax_compilation_cache_dir": str(cache)}
    before = {name: getattr(jax.config, name) for name in settings}
    for name, value in settings.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()
    yield
    for name, value in before.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()
