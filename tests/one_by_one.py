"""A question about one set asked of many: one after the other, by one program."""

import functools
from collections.abc import Callable
from typing import TypeVar

import jax
from jaxtyping import PyTree

Answer = TypeVar("Answer")


def one_by_one(answer: Callable[..., Answer]) -> Callable[..., Answer]:
    """Like `jax.vmap` over all arguments, but by a loop.

    `jax.vmap` of a loop within a loop traces the inner one many times, and what it makes of them takes longer to
    compile. A loop around them all does neither.
    """

    @functools.wraps(answer)
    def answers(*asked: PyTree) -> Answer:
        return jax.lax.map(lambda one: answer(*one), asked)

    return answers
