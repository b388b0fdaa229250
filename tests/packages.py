"""Tests that need PyTorch or Stable-Baselines3. They are slow ones, for one reason: `.ci/run` has no room to install
PyTorch (a wheel of 200 MB, more than half a minute) beside its ten minutes. `make test-slow` installs both and runs
them; there a missing package is an error, while a run of the default tests does not look at these files. The tests
of tensors on a GPU (`tests/torch/test_cuda.py`) are collected where PyTorch and JAX both find one: CI's machine has
none."""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
# The type checker also runs where PyTorch is not installed, and then takes a folder of tests for it.

from importlib.util import find_spec
from pathlib import Path

import pytest

EXTRAS = {"torch": "torch", "stable_baselines3": "sb3"}


def left_out(package: str, config: pytest.Config) -> bool | None:
    """Whether a folder's files are not collected, for `pytest_ignore_collect`."""
    if find_spec(package) is not None:
        return None
    if config.getoption("markexpr") == "not slow":
        return True
    raise pytest.UsageError(f"These tests need {package}: pip install -e '.[{EXTRAS[package]}]', or make test-slow.")


def without_a_gpu() -> bool:
    """Whether PyTorch or JAX finds no GPU. What is said of tensors on one can be tried only where both have it."""
    import jax
    import torch  # pyright: ignore[reportMissingImports]

    return not torch.cuda.is_available() or jax.default_backend() != "gpu"


def marked(items: list[pytest.Item], folder: Path) -> None:
    """Mark the folder's tests as slow."""
    for item in items:
        if item.path.is_relative_to(folder):
            item.add_marker(pytest.mark.slow)


def one_thread() -> None:
    """Keep PyTorch's threads from waiting busily for cores that other workers have."""
    import torch  # pyright: ignore[reportMissingImports]

    torch.set_num_threads(1)
