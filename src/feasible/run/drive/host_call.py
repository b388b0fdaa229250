"""A call from a running program to the host, with NumPy arrays and nothing in between.

`jax.experimental.io_callback` makes JAX arrays of what a program hands over, on the processor, and checks what comes
back: 50 to 75 microseconds of Python per call, where the call itself takes 2.5 (measured on one core). A population
makes one or two calls per step, and the device waits for them.
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
    """Return the host's answer to `handed` when a program comes here; `asked` must not raise.

    What `asked` does with JAX happens on the processor: the device is busy with the program that waits. Programs with
    such a call cannot be mapped.
    """
    return _primitive.bind(handed, asked=asked, answer=answer)


def _abstract(handed: ShapedArray, *, asked: Asked, answer: jax.ShapeDtypeStruct) -> ShapedArray:
    del handed, asked
    return ShapedArray(answer.shape, answer.dtype)


def _lowered(context: Any, handed: Any, *, asked: Asked, answer: jax.ShapeDtypeStruct) -> Any:
    module, processor = context.module_context, jax.local_devices(backend="cpu")[0]

    def call(handed: Any) -> tuple[Shaped[np.ndarray, "..."]]:
        with jax.default_device(processor):
            return (asked(np.array(handed)),)  # what is handed over is the program's memory, and goes with the call

    target = TARGETS.get(module.platforms[0])
    if target is None or not all(hasattr(module, name) for name in ("add_host_callback", "host_callbacks")):
        # Another platform, or another JAX.
        lower = mlir.lower_fun(lambda handed: io_callback(call, (answer,), handed), multiple_results=True)
        return lower(context, handed)
    module.add_host_callback(call)
    number = np.uint64(len(module.host_callbacks) - 1)
    return jax.ffi.ffi_lowering(target, has_side_effect=True)(context, handed, index=number)


_primitive.def_abstract_eval(_abstract)
mlir.register_lowering(_primitive, _lowered, cacheable=False)
