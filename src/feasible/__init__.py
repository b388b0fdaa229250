"""Action-constrained reinforcement learning: every executed action lies in the feasible set of its state.

Importing the package registers its environments with Gymnasium and loads little else: JAX, simulators and
drawing come with the first name that needs them. The public names are written once, in `__init__.pyi`.
"""

import ast
from importlib import import_module
from pathlib import Path

from feasible import envs as envs

_HOMES = {
    alias.name: node.module
    for node in ast.parse(Path(__file__).with_suffix(".pyi").read_text()).body
    if isinstance(node, ast.ImportFrom) and node.module
    for alias in node.names
}
"""The module of every public name; a subpackage's is the package's own."""


def __getattr__(name: str) -> object:
    if name == "__version__":
        value = import_module("importlib.metadata").version("feasible")
    elif name not in _HOMES:
        raise AttributeError(f"module 'feasible' has no attribute {name!r}")
    else:
        home = _HOMES[name]
        value = import_module(f"{home}.{name}") if home == "feasible" else getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES, "__version__"})
