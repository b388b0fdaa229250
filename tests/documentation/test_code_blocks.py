"""Every code block of the front page and of the site does what it says; long ones in the short form that they state."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import cast

import gymnasium as gym
import jax
import pytest

from documentation.code_blocks import (
    Block,
    blocks_of,
    check_command,
    commands,
    exchanges,
    run_command,
    run_python,
)
from documentation.marked import ROOT, pages
from documentation.metrics import EVERY_RUN, reported
from feasible.catalogue.registry import TASKS
from tests.run.runs import as_a_user

WITH_CODE = [page for page in pages() if blocks_of(page)]
DONE: set[str] = set()


@contextmanager
def programs_compiled_in_haste() -> Iterator[None]:
    """XLA without its optimisations: these programs run for a moment, and most of the time is their compilation."""
    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", True)
    try:
        yield
    finally:
        jax.config.update("jax_disable_most_optimizations", before)


@pytest.fixture
def workshop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder, JAX as a user has it, and nothing left registered afterwards."""
    monkeypatch.setenv("XLA_FLAGS", os.environ.get("XLA_FLAGS", ""))
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.chdir(tmp_path)
    registries = cast(list[dict[str, object]], [gym.registry, TASKS])
    before, modules = [dict(registry) for registry in registries], set(sys.modules)
    with as_a_user(), programs_compiled_in_haste():
        yield tmp_path
    for name in sys.modules.keys() - modules:
        if isinstance(sys.modules[name], ModuleType) and sys.modules[name].__spec__ is None:  # a page's own
            del sys.modules[name]
    for registry, held in zip(registries, before, strict=True):
        registry.clear()
        registry.update(held)


def run(block: Block, namespace: dict[str, object]) -> None:
    if block.language == "python":
        run_python(block, block.short, namespace)
        if block.module:
            made = sys.modules.setdefault(block.module, ModuleType(block.module))
            vars(made).update({name: value for name, value in namespace.items() if not name.startswith("__")})
    elif block.language == "console":
        for words, printed in exchanges(block.code):
            assert run_command(words) == printed
    elif block.long:
        for words in commands(block.code):
            check_command(words)
    else:
        for words in commands(block.short):
            run_command(words)


# One worker runs them all, so that what they have in common is imported and compiled once.
@pytest.mark.xdist_group("code_blocks")
@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: str(page.relative_to(ROOT)))
def test_blocks(page: Path, workshop: Path) -> None:
    namespace: dict[str, object] = {"__name__": "page"}
    blocks = blocks_of(page)
    for block in blocks:
        alone = sum(other.language == block.language for other in blocks) == 1
        if alone and block.short in DONE:
            continue  # the same as one of another page, and nothing here rests on it
        run(block, namespace)
        DONE.add(block.short)
    if page.stem == "tasks":
        assert_metrics_are_documented(workshop / "runs")


def assert_metrics_are_documented(runs: Path) -> None:
    lines = [json.loads(line) for path in runs.rglob("metrics.jsonl") for line in path.read_text().splitlines()]
    seen = {name for line in lines for name in line}
    assert {"eval/return", "violation/proposed_count"} <= seen <= {*EVERY_RUN, *reported("nfwpo")}


def test_what_a_block_promises_is_checked(tmp_path: Path) -> None:
    page = ROOT / "docs" / "made-up.md"  # never written
    raises = Block(page, 1, "python", "raise ValueError('one')\n", "raises", "ValueError: one\n")
    run_python(raises, raises.code, {})
    with pytest.raises(AssertionError, match="but it says"):
        run_python(Block(page, 1, "python", raises.code, "raises", "ValueError: two\n"), raises.code, {})
    with pytest.raises(AssertionError, match="raises nothing"):
        run_python(Block(page, 1, "python", "", "raises", ""), "", {})
    with pytest.raises(ValueError, match="there is no '100' to shorten"):
        _ = Block(page, 1, "python", "200", "short: 100 -> 1", "").short
    for wrong in (
        ["make", "nothing"],
        ["python", "-m", "benchmarks.projection", "--nothing"],
        ["pip", "install", "feasible[nothing]"],
        ["curl", "somewhere"],
    ):
        with pytest.raises(AssertionError):
            check_command(wrong)
    with pytest.raises(ValueError, match="There is no task 'nothing'"):
        check_command(["feasible", "train", "--task", "nothing", "--algo", "nfwpo"])


def test_no_command_hides_in_a_block_without_a_language() -> None:
    for page in pages():
        fenced = [line for line in page.read_text().splitlines() if line.startswith("```")]
        assert all(len(line) > 3 for line in fenced[::2]), page
