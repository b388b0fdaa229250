"""Colours and lines of the methods, the same in every figure and on the page, on a light and on a dark ground."""

from collections.abc import Sequence
from dataclasses import dataclass

from feasible.catalogue.registry import METHODS
from feasible.report.groups import Group

# Pairs for a light and a dark ground, each with a contrast of at least 3 to its ground.
_PALETTE = (
    ("#0b62c4", "#5cb2ff"),
    ("#cf4a0c", "#ff9a4d"),
    ("#23803a", "#6fdc85"),
    ("#8f2fad", "#dd8bf5"),
    ("#8a6500", "#f2cc3d"),
    ("#0a7285", "#4fd3e6"),
    ("#b8265e", "#ff8db3"),
    ("#5a6068", "#b6bec7"),
    ("#5b3fd1", "#aa9bff"),
    ("#7a4a21", "#d9a679"),
)
_DASHES = ((), (6, 3), (2, 2), (8, 3, 2, 3), (10, 4))


@dataclass(frozen=True)
class Look:
    """How a method is drawn; an empty dash is a solid line."""

    light: str
    dark: str
    dash: tuple[int, ...]


def looks(groups: Sequence[Group]) -> dict[str, Look]:
    """By method. Variants of one algorithm have its colour and dashes of their own."""
    variants: dict[str, list[str]] = {}
    for group in groups:
        known = variants.setdefault(group.algo, [])
        if group.method not in known:
            known.append(group.method)
    own = [method.name for method in METHODS.values() if not method.like]
    own += [algo for algo in variants if algo not in METHODS]
    found = {}
    for algo, methods in variants.items():
        place = own.index(METHODS[algo].like or algo if algo in METHODS else algo)
        light, dark = _PALETTE[place % len(_PALETTE)]
        for number, method in enumerate(sorted(methods)):
            found[method] = Look(light, dark, _DASHES[number % len(_DASHES)])
    return dict(sorted(found.items(), key=lambda item: _order(item[0])))


def _order(method: str) -> tuple[int, str]:
    algo = method.partition("+")[0]
    return (list(METHODS).index(algo) if algo in METHODS else len(METHODS)), method
