"""A method: a combination of factors with a name, and its defaults on any task."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from feasible.algorithms.base import Algorithm, Spec


@dataclass(frozen=True)
class Method:
    """A method under the name by which people and runs know it."""

    name: str
    title: str
    summary: str
    make: "Callable[[Spec], Algorithm]"
    """The algorithm with the method's defaults: the one place for what depends on the action box."""
    sets: str = "any"
    """The feasible sets that it takes."""
    like: str = ""
    """The method whose colour it shares in figures; the two never appear on the same task."""
