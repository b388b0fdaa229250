"""Algorithms as plain data and back: what run folders and policy files say of the algorithm that made them."""

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass

from feasible.algorithms.actor_rules import FrankWolfe, PolicyGradient, ThroughProjection
from feasible.algorithms.base import Algorithm
from feasible.algorithms.ddpg import DDPG
from feasible.algorithms.table import BikeTable

Plain = None | bool | int | float | str | list["Plain"] | dict[str, "Plain"]
_KNOWN: dict[str, Callable[..., object]] = {
    kind.__name__: kind for kind in (DDPG, BikeTable, FrankWolfe, PolicyGradient, ThroughProjection)
}


def register(*kinds: type) -> None:
    """Let files name further algorithms and rules: modules above this one call it for their own."""
    for kind in kinds:
        if _KNOWN.setdefault(kind.__name__, kind) is not kind:
            raise ValueError(f"There is another kind {kind.__name__!r} already.")


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
    """The value that `describe` described. Only the library's own algorithms and rules can come out of it."""
    if isinstance(description, Mapping):
        settings = dict(description)
        kind = settings.pop("kind", None)
        if not isinstance(kind, str) or kind not in _KNOWN:
            raise ValueError(f"There is no algorithm or rule {kind!r} here; known are {', '.join(sorted(_KNOWN))}.")
        return _KNOWN[kind](**{name: build(value) for name, value in settings.items()})
    if isinstance(description, list):
        return tuple(build(item) for item in description)
    return description


def build_algorithm(description: Plain) -> Algorithm:
    algorithm = build(description)
    if not isinstance(algorithm, Algorithm):
        raise ValueError(f"{description!r} describes no algorithm.")
    return algorithm
