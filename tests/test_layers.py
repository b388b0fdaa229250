"""The folder tree is the architecture: imports point down only, so that no two packages need each other."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import feasible

ROOT = Path(feasible.__file__).parent
# From the ground up; a package may import itself and what stands before it.
LAYERS = (
    "errors",
    "extras",
    "compiling",
    "program_cache",
    "solve",
    "sets",
    "constraints",
    "algorithms",
    "envs",
    "catalogue",
    "run",
    "agents",
    "paper",
    "report",
    "commands",
    "cli",
    "torch",
    "sb3",
)
FREE = {"envs": {"algorithms"}}
"""Neighbours that stand on one floor: algorithms know no environment, environments no algorithm."""
WITHIN = {
    "run": ("drive", "disk", "sweep"),
    "sets": ("cvxpy",),
}
"""Packages inside packages, from the ground up."""


def modules() -> Iterator[tuple[str, Path]]:
    """Every module below `feasible`, by its dotted name without the package's."""
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        name = ".".join(part for part in parts if part != "__init__")
        if name:
            yield name, path


def imported(path: Path) -> set[str]:
    """The modules below `feasible` that a file imports, also inside functions and for type checkers only."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "feasible":
            inner = node.module.split(".")[1:]
            names = [".".join([*inner, alias.name]) for alias in node.names]
            found |= {
                name if inner or (ROOT / name).exists() or (ROOT / f"{name}.py").exists() else "" for name in names
            }
        elif isinstance(node, ast.Import):
            found |= {
                alias.name.removeprefix("feasible.") for alias in node.names if alias.name.startswith("feasible.")
            }
    return found - {""}


MODULES = dict(modules())


def test_every_package_has_its_floor() -> None:
    assert {name.split(".")[0] for name in MODULES} == set(LAYERS)


@pytest.mark.parametrize("layer", LAYERS)
def test_imports_point_down(layer: str) -> None:
    allowed = set(LAYERS[: LAYERS.index(layer) + 1]) - FREE.get(layer, set())
    wrong = {
        (name, other)
        for name, path in MODULES.items()
        if name.split(".")[0] == layer
        for other in imported(path)
        if other.split(".")[0] not in allowed
    }
    assert not wrong


@pytest.mark.parametrize("package", WITHIN)
def test_packages_inside_a_package_point_down_too(package: str) -> None:
    floors = WITHIN[package]
    for name, path in MODULES.items():
        parts = name.split(".")
        if parts[0] != package or len(parts) < 3 or parts[1] not in floors:
            continue
        above = floors[floors.index(parts[1]) + 1 :]
        assert not {other for other in imported(path) if other.split(".")[:2] in [[package, up] for up in above]}, name


def test_the_rule_is_not_empty() -> None:
    """What is read is what is written: a file known to import from below and from another package does."""
    assert "sets.base.ActionSet" in imported(MODULES["constraints.wrappers"])
    assert any(other.startswith("solve.") for other in imported(MODULES["sets.polytope"]))
