"""Tensors as arrays of JAX and back, on the CPU and on a GPU: the same memory wherever that is the faster way.

A tensor on a GPU crosses by DLPack both ways, without a copy and in the order of PyTorch's stream. On the CPU it
crosses as the NumPy view of its memory, without a copy too and at a tenth of what JAX's import of DLPack costs; answers
come back by DLPack where they are large, while few numbers are copied, which takes a fifth of the time. Answers are
fresh memory that nothing in JAX refers to, so PyTorch may write to them.
"""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
# The type checker also runs where PyTorch is not installed, and then takes this folder for it.

import collections
import contextlib
import functools
import threading
import weakref
from typing import Any, TypeAlias

import jax
import numpy as np
import torch
from jaxtyping import Array

Tensor: TypeAlias = torch.Tensor

FEW = 65_536  # numbers that are copied faster than they are handed over


def across(tensor: Tensor) -> Any:
    """A tensor as JAX takes it, without a copy."""
    if tensor.device.type == "cpu":
        return tensor.detach().numpy()
    return jax.dlpack.from_dlpack(tensor.detach().contiguous())


def back(arrays: tuple[Array, ...]) -> tuple[Tensor, ...]:
    """Arrays as tensors. On the CPU they are complete: what was read from may be written to again."""
    if next(iter(arrays[0].devices())).platform != "cpu":
        return tuple(_lent(array) for array in arrays)
    jax.block_until_ready(arrays)
    return tuple(
        torch.from_numpy(np.array(array)) if array.size <= FEW else torch.from_dlpack(array) for array in arrays
    )


_read: collections.deque[tuple[Array, torch.cuda.Event]] = collections.deque()
_taking = threading.Lock()


def _lent(array: Array) -> Tensor:
    """JAX's memory as a tensor. JAX has it back when the GPU has done what PyTorch had asked for by the tensor's end.

    Without that wait JAX could write there as soon as Python has dropped the tensor: its stream is not PyTorch's.
    """
    with _taking:
        while _read and _read[0][1].query():
            _read.popleft()
    tensor = torch.from_dlpack(array)
    weakref.finalize(tensor.untyped_storage(), _returned, array, tensor.device).atexit = False
    return tensor


def _returned(array: Array, device: torch.device) -> None:
    _read.append((array, torch.cuda.current_stream(device).record_event()))


def surroundings(tensor: Tensor) -> contextlib.AbstractContextManager:
    """JAX in the precision and on the device of the tensor, for this thread and while it is called only."""
    wide = tensor.dtype == torch.float64 and not jax.config.read("jax_enable_x64")
    device = _device(tensor.device)
    if device is None:
        return jax.enable_x64(True) if wide else contextlib.nullcontext()
    stack = contextlib.ExitStack()
    stack.enter_context(jax.default_device(device))
    if wide:
        stack.enter_context(jax.enable_x64(True))
    return stack


@functools.cache
def _device(device: torch.device) -> Any:
    """JAX's device of tensors on that one; None for the CPU where JAX computes there anyway."""
    if device.type not in ("cpu", "cuda"):
        raise RuntimeError(
            f"feasible.torch: tensors on {device.type!r} do not cross to JAX; move the tensor with .cpu()."
        )
    if device.type == jax.default_backend() == "cpu":
        return None
    try:
        every = jax.devices(device.type)
    except RuntimeError:
        every = []
    for found in every:
        if device.type == "cpu" or found.local_hardware_id == device.index:
            return found
    if device.type == "cpu":
        raise RuntimeError(
            "feasible.torch: the tensor is on the CPU, which JAX was told to leave out; start with "
            "JAX_PLATFORMS=cuda,cpu, or move the tensor with .cuda()."
        )
    raise RuntimeError(
        f"feasible.torch: the tensor is on {device}, but JAX has no such device here; install jax[cuda13] (or "
        "jax[cuda12], as PyTorch's), or move the tensor with .cpu()."
    )
