"""A call from a running program to the host, with NumPy arrays and nothing in between.

`jax.experimental.io_callback` makes JAX arrays of what a program hands over, on the processor, and checks what comes
back: 50 to 75 microseconds of Python a call, where the call itself takes 2.5 (measured on one core). A population
makes one call a step, and the device waits for it.
"""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.core import ShapedArray
from jax.experimental import io_callback
from jax.extend.core import Primitive
from jax.interpreters import mlir
from jaxtyping import Array, Shaped

Asked = Callable[[Shaped[np.ndarray, "..."]], Shaped[np.ndarray, "..."]]
"""From what a program hands over, which is its own to keep, to an array of the shape and kind that was agreed upon."""
TARGETS = {"cpu": "xla_ffi_python_cpu_callback", "cuda": "xla_ffi_python_gpu_callback"}
"""By platform: what JAX calls Python by. On others `io_callback` does it."""

_primitive = Primitive("host_call")


def host_call(asked: Asked, answer: jax.ShapeDtypeStruct, handed: Shaped[Array, "..."]) -> Shaped[Array, "..."]:
    """What the host answers when a program comes here; `asked` must not raise. Programs with it cannot be mapped."""
    return _primitive.bind(handed, asked=asked, answer=answer)


def _abstract(handed: ShapedArray, *, asked: Asked, answer: jax.ShapeDtypeStruct) -> ShapedArray:
    del handed, asked
    return ShapedArray(answer.shape, answer.dtype)


def _lowered(context: Any, handed: Any, *, asked: Asked, answer: jax.ShapeDtypeStruct) -> Any:
    module = context.module_context
    target = TARGETS.get(module.platforms[0])
    if target is None or not hasattr(module, "add_host_callback"):  # another platform, or another JAX
        lower = mlir.lower_fun(lambda handed: io_callback(asked, answer, handed), multiple_results=False)
        return lower(context, handed)
    # What is handed over is the program's memory, and goes with the call.
    module.add_host_callback(lambda handed: (asked(np.array(handed)),))
    number = np.uint64(len(module.host_callbacks) - 1)
    return jax.ffi.ffi_lowering(target, has_side_effect=True)(context, handed, index=number)


_primitive.def_abstract_eval(_abstract)
mlir.register_lowering(_primitive, _lowered, cacheable=False)
