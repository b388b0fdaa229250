"""The settings of a method as its keywords, with types, defaults and meanings: what `help` shows of an agent."""

import inspect
import textwrap
from typing import cast

import numpy as np
from jaxtyping import Array

from feasible.algorithms.base import Algorithm, Spec
from feasible.algorithms.description import meanings, setting_types, settings_of
from feasible.catalogue.method import Method
from feasible.constraints import Observation
from feasible.sets.base import ActionSet


class ByTheBox:
    """The default of a setting that depends on the action box."""

    def __repr__(self) -> str:
        return "<by the action box>"


def parameters(method: Method) -> list[inspect.Parameter]:
    """The settings of a method, as keywords. Where two action boxes give two defaults, these depend on the box."""
    algorithm, other = _on_box(method, 1.0), _on_box(method, 2.0)
    hints, others = setting_types(algorithm), settings_of(other)
    return [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=value if value == others[name] else ByTheBox(),
            annotation=hints[name],
        )
        for name, value in settings_of(algorithm).items()
    ]


class Documented:
    """The docstring of a method's class: what it says, then every setting. Made when it is asked for, from sources."""

    def __init__(self, method: Method, says: str):
        self._method, self._says = method, inspect.cleandoc(says)

    def __get__(self, instance: object, owner: type | None = None) -> str:
        known = meanings(_on_box(self._method, 1.0))
        settings = [f"{one}\n    {known.get(one.name, '')}".rstrip() for one in parameters(self._method)]
        listed = textwrap.indent("\n".join(settings), "    ")
        return f"{self._says}\n\nSettings, all by keyword, with their defaults:\n\n{listed}\n"


def _on_box(method: Method, half: float) -> Algorithm:
    """The method's defaults on an action box, in plain numbers: nothing is computed by JAX."""
    low, high = (cast(Array, np.array([bound], np.float32)) for bound in (-half, half))
    return method.make(Spec(1, low, high, _unknown))


def _unknown(obs: Observation) -> ActionSet:
    raise AssertionError("defaults do not depend on the constraint")
