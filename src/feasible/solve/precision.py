"""Products in full float32: recent GPUs round the factors of a float32 product to 10 bits unless they are told not to.

A direction within a plane then leads off it by a thousandth of its length, and a set finds no way to go along it.
"""

from collections.abc import Callable
from functools import wraps
from typing import TypeVar, cast

import jax

Traced = TypeVar("Traced", bound=Callable)


def full_precision(function: Traced) -> Traced:
    """Trace a function with products in the precision of their factors; a CPU knows no other."""

    @wraps(function)
    def traced(*args: object, **kwargs: object) -> object:
        with jax.default_matmul_precision("highest"):
            return function(*args, **kwargs)

    return cast(Traced, traced)
