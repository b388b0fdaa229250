"""Algorithms as plain data and back: what run folders and policy files say of the algorithm that made them."""

import ast
import functools
import importlib
import inspect
import math
import pkgutil
import re
import reprlib
import sys
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from itertools import pairwise
from types import UnionType
from typing import Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from feasible.algorithms.actor_rules import ActorRule
from feasible.algorithms.base import Algorithm
from feasible.algorithms.stable_baselines3 import our_way
from feasible.errors import unknown

Plain = None | bool | int | float | str | list["Plain"] | dict[str, "Plain"]


Kind = type[Algorithm] | type[ActorRule]


def known() -> dict[str, Kind | None]:
    """Every algorithm and actor rule that has been imported, by the name of its class; None where two have a name."""
    found: dict[str, Kind | None] = {}
    classes: list[Kind] = [Algorithm, ActorRule]
    while classes:
        kind = classes.pop()
        classes += kind.__subclasses__()
        if not inspect.isabstract(kind):
            found[kind.__name__] = None if kind.__name__ in found else kind
    return found


@functools.cache
def _import_ours() -> None:
    """Import all algorithms of the library: a run that is read in a new process may be of any."""
    package = __package__ or ""
    for module in pkgutil.iter_modules(importlib.import_module(package).__path__):
        importlib.import_module(f"{package}.{module.name}")


def describe(value: object) -> Plain:
    """The value as JSON can hold it; a module is its fields and, under `kind`, its class's name."""
    if is_dataclass(value) and not isinstance(value, type):
        return {"kind": type(value).__name__} | {f.name: describe(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, tuple | list):
        return [describe(item) for item in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"{value!r} is not a setting that a file can hold.")


def build(description: Plain) -> object:
    """The value that `describe` described: of ours, or of algorithms and rules that have been imported."""
    if isinstance(description, Mapping):
        settings = dict(description)
        kind = settings.pop("kind", None)
        kinds = known()
        if kind not in kinds:
            _import_ours()
            kinds = known()
        if not isinstance(kind, str) or kind not in kinds:
            raise unknown("algorithm or rule", kind, sorted(kinds))
        make = kinds[kind]
        if make is None:
            raise ValueError(f"There are two kinds {kind!r} in this process: a file cannot tell which it means.")
        try:
            return make(**{name: build(value) for name, value in settings.items()})  # pyright: ignore[reportArgumentType]
        except TypeError as cause:
            raise ValueError(f"The settings of {kind} are not those of this version of feasible: {cause}.") from cause
    if isinstance(description, list):
        return tuple(build(item) for item in description)
    return description


def build_algorithm(description: Plain) -> Algorithm:
    """The algorithm that was described, its settings refused where `changed` would refuse them."""
    algorithm = build(description)
    if not isinstance(algorithm, Algorithm):
        raise ValueError(f"{reprlib.repr(description)} describes no algorithm.")
    owner, hints = type(algorithm).__name__, get_type_hints(type(algorithm))
    if "rule" in hints and not isinstance(getattr(algorithm, "rule", None), ActorRule):
        raise ValueError(f"{owner}: rule must be an actor rule, not {reprlib.repr(getattr(algorithm, 'rule', None))}.")
    hints = setting_types(algorithm)
    for name, value in settings_of(algorithm).items():
        _check_setting(name, value, hints[name], owner)
    return algorithm


Changed = TypeVar("Changed", bound=Algorithm)


def changed(algorithm: Changed, changes: Mapping[str, object], owner: str) -> Changed:
    """The algorithm with other settings; one that does not exist or does not fit is named, with `owner`'s name."""
    hints = setting_types(algorithm)
    values = {name: _as_kept(without_numpy(value), hints.get(name)) for name, value in changes.items()}
    for name, value in values.items():
        if name not in hints:
            raise unknown("hyper-parameter", name, hints, f"{owner}: ", our_way(name, hints))
        _check_setting(name, value, hints[name], owner)
    rule = getattr(algorithm, "rule", None)
    of_rule = {field: values.pop(name) for name, field in rule_settings(rule).items() if name in values}
    return replace(algorithm, **values, **({"rule": replace(rule, **of_rule)} if of_rule else {}))  # pyright: ignore[reportCallIssue, reportArgumentType]


def settings_of(algorithm: Algorithm) -> dict[str, object]:
    """The settings by the names that `changed` knows them by."""
    rule = getattr(algorithm, "rule", None)
    own = {f.name: getattr(algorithm, f.name) for f in fields(algorithm) if f.name != "rule"}
    return own | {name: getattr(rule, field) for name, field in rule_settings(rule).items()}


def rule_settings(rule: object) -> dict[str, str]:
    """Fields of an actor rule by the names of the settings: `frank_wolfe_step` is `step` of `FrankWolfe`."""
    if not isinstance(rule, ActorRule):
        return {}
    prefix = re.sub(r"(?<!^)(?=[A-Z])", "_", type(rule).__name__).lower()
    return {f"{prefix}_{f.name}": f.name for f in fields(rule)}


def setting_types(algorithm: Algorithm) -> dict[str, object]:
    """The types of the settings, by the names that `changed` knows them by."""
    rule = getattr(algorithm, "rule", None)
    own, of_rule = get_type_hints(type(algorithm)), get_type_hints(type(rule))
    named = rule_settings(rule)
    return {name: of_rule[named[name]] if name in named else own[name] for name in settings_of(algorithm)}


def meanings(algorithm: Algorithm) -> dict[str, str]:
    """What each setting is: the docstring under its field, in the nearest class that has one."""
    rule = getattr(algorithm, "rule", None)
    own, of_rule, named = _under_fields(type(algorithm)), _under_fields(type(rule)), rule_settings(rule)
    found = {
        name: of_rule.get(named[name], "") if name in named else own.get(name, "") for name in settings_of(algorithm)
    }
    return {name: text for name, text in found.items() if text}


@functools.cache
def _under_fields(kind: type) -> dict[str, str]:
    """The docstrings under the fields of a class and of those that it derives from, as their sources have them."""
    found: dict[str, str] = {}
    for cls in reversed(kind.__mro__):
        body = _classes(cls.__module__).get(cls.__name__, []) if is_dataclass(cls) else []
        for field, under in pairwise(body):
            match field, under:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    found[name] = " ".join(text.split())
    return found


@functools.cache
def _classes(module: str) -> dict[str, list[ast.stmt]]:
    """What the classes of a module are made of; nothing where its source is not at hand."""
    try:
        tree = ast.parse(inspect.getsource(sys.modules[module]))
    except (KeyError, OSError, SyntaxError, TypeError):
        return {}
    return {node.name: node.body for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}


def _check_setting(name: str, value: object, hint: object, owner: str) -> None:
    if not _fits(value, hint):
        raise ValueError(f"{owner}: {name} must be {_words(hint)}, not {reprlib.repr(value)}.")
    # Every whole number but these counts something that there must be one of.
    if hint is int and isinstance(value, int) and value < (name not in FROM_ZERO):
        raise ValueError(f"{owner}: {name} must be at least {int(name not in FROM_ZERO)}, not {value}.")
    _check_range(name, value, owner)
    if not isinstance(value, tuple) or name != "hidden_layers":
        return
    if not (value and all(units > 0 for units in value)):
        raise ValueError(f"{owner}: hidden_layers must have at least one layer, each of at least 1 unit.")
    if len(value) > DEEPEST:
        raise ValueError(f"{owner}: hidden_layers must have at most {DEEPEST} layers, not {len(value)}.")


FROM_ZERO = ("warmup", "critic_joined", "snapshots")
LARGEST = 2**31 - 1  # of whole numbers: what the programs count with
DEEPEST = 100
SHARES = (
    "discount",
    "target_ratio",
    "trace",
    "epsilon",
    "frank_wolfe_step",
    "augmented_share",
    "augmented_decay",
    "preference",
)
BELOW_ONE = ("projected_gradient_margin",)
DIVISORS = ("temperature",)
ANY_SIGN = ("entropy_target", "log_std", "reward_shift")


def _check_range(name: str, value: object, owner: str) -> None:
    """Numbers are finite; shares are between 0 and 1, and all others but ranges and a few at least 0."""
    for number in value if isinstance(value, tuple) else (value,):
        if not isinstance(number, float | int):
            continue
        if isinstance(number, int) and abs(number) > LARGEST:
            raise ValueError(f"{owner}: {name} must be at most {LARGEST}, not {reprlib.repr(number)}.")
        if not math.isfinite(number):
            raise ValueError(f"{owner}: {name} must be finite, not {number}.")
        if name in SHARES and not 0 <= number <= 1:
            raise ValueError(f"{owner}: {name} must be between 0 and 1, not {number}.")
        if name in BELOW_ONE and number >= 1:
            raise ValueError(f"{owner}: {name} must be below 1, not {number}.")
        if name in DIVISORS and number == 0:
            raise ValueError(f"{owner}: {name} must be above 0, not {number}: it divides.")
        if name not in ANY_SIGN and not name.endswith("_range") and number < 0:
            raise ValueError(f"{owner}: {name} must be at least 0, not {number}.")


def without_numpy(value: object) -> object:
    """The same with Python's numbers and lists instead of NumPy's, also within lists."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, list | tuple):
        return type(value)(without_numpy(item) for item in value)  # pyright: ignore[reportCallIssue]
    return value


def _as_kept(value: object, hint: object) -> object:
    """Lists as tuples, whole numbers as the floats that settings are: algorithms are compared and merged by them."""
    if isinstance(value, list):
        return tuple(value)
    return float(value) if type(value) is int and hint is float and abs(value) <= LARGEST else value


def _fits(value: object, hint: object) -> bool:
    if get_origin(hint) in (Union, UnionType):
        return any(_fits(value, option) for option in get_args(hint))
    if get_origin(hint) is Literal:
        return value in get_args(hint)
    if get_origin(hint) is tuple:
        first, *others = get_args(hint)
        length = None if others == [...] else 1 + len(others)
        return isinstance(value, tuple) and len(value) == (length or len(value)) and all(_fits(v, first) for v in value)
    if isinstance(value, bool):
        return hint is bool
    return isinstance(value, int | float) if hint is float else isinstance(value, hint)  # pyright: ignore[reportArgumentType]


def _words(hint: object) -> str:
    if get_origin(hint) in (Union, UnionType):
        return " or ".join(_words(option) for option in get_args(hint))
    if get_origin(hint) is Literal:
        options = [repr(option) for option in get_args(hint)]
        return options[0] if len(options) == 1 else "one of " + ", ".join(options)
    if get_origin(hint) is tuple:
        return f"a list, each {_words(get_args(hint)[0])}"
    words = {int: "a whole number", float: "a number", bool: "true or false", str: "text", type(None): "null"}
    return words.get(hint, str(hint))  # pyright: ignore[reportArgumentType, reportCallIssue]
