"""Searches whose number of steps differs from point to point: constants to derivatives, and in chunks on a CPU.

Under `vmap` a loop goes on for all points until the last is done. A core gains nothing from more points at once than
keep its vector units busy, so there a large batch is made of chunks, each as long as the slowest point of its own.
"""

from collections.abc import Callable
from typing import TypeVar

import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap
from jax.extend.core import ClosedJaxpr, jaxpr_as_fun
from jax.lax import stop_gradient
from jaxtyping import Array

Answer = TypeVar("Answer")

CHUNK = 32


def searched(search: Callable[[], Answer], chunk: int = CHUNK) -> Answer:
    """search(), whose answer has no derivative in anything that it closes over.

    Only the innermost `vmap` is made in chunks, and only on a CPU: other devices compute the whole batch at once. The
    less a step costs, the more points should share the launches of its kernels.
    """
    traced, shape = jax.make_jaxpr(search, return_shape=True)()

    def run(*given: Array) -> list[Array]:
        return jaxpr_as_fun(ClosedJaxpr(traced.jaxpr, given))()

    call = custom_vmap(run)

    @call.def_vmap
    def _(size: int, batched: list[bool], *given: Array) -> tuple[list[Array], list[bool]]:
        axes = [0 if moves else None for moves in batched]
        together = jax.vmap(run, in_axes=axes, axis_size=size)

        def chunked(*given: Array) -> list[Array]:
            count = -(-size // chunk)
            width = -(-size // count)
            places = jnp.minimum(jnp.arange(count * width), size - 1).reshape(count, width)

            def part(places: Array) -> list[Array]:
                own = [value[places] if moves else value for moves, value in zip(batched, given, strict=True)]
                return jax.vmap(run, in_axes=axes, axis_size=width)(*own)

            answers = jax.lax.map(part, places)
            return [answer.reshape(count * width, *answer.shape[2:])[:size] for answer in answers]

        if not isinstance(size, int) or size <= chunk:  # an exported program is for batches of any size
            answers = together(*given)
        else:
            answers = jax.lax.platform_dependent(*given, cpu=chunked, default=together)
        return answers, [True] * len(answers)

    answers = call(*stop_gradient(traced.consts))
    return jax.tree.unflatten(jax.tree.structure(shape), answers)
