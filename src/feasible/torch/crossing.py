"""The crossing from PyTorch to JAX and back: a pure JAX function of a feasible set as an autograd function of tensors.

A function f(set, x_1, ..., x_k) of one state becomes two compiled programs of batches, its value and its pullback. The
pullback computes the value again: a projection keeps some 60 small arrays for its derivative, and to hand them over
costs more than to compute them. Programs are compiled once per function, structure of the set, shapes and dtype.

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
import os
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import jax
import numpy as np
import torch
from jax._src import xla_bridge  # JAX has no public way to ask whether it has started
from jaxtyping import Array

from feasible.algorithms.base import in_precision
from feasible.constraints import Constraint
from feasible.sets.base import ActionSet

Tensor: TypeAlias = torch.Tensor
Observations: TypeAlias = Any
"""A tensor, or a dict or tuple of them, one row per state."""
SetFunction: TypeAlias = Callable[..., Array | tuple[Array, ...]]
"""Of a set and of arrays, all of one state."""

DTYPES = (torch.float32, torch.float64)
FEW = 65_536  # numbers that are copied faster than they are handed over


class Program:
    """A function of sets, compiled for batches; `constraint` gives the sets, None where the set is an argument."""

    def __init__(self, function: SetFunction, constraint: Constraint | None):
        def value(region: ActionSet | None, obs: Any, *arrays: Array) -> tuple[Array, ...]:
            def one(obs: Any, *points: Array) -> tuple[Array, ...]:
                found = constraint(obs) if constraint is not None else region
                if not isinstance(found, ActionSet):
                    raise ValueError(f"The constraint must return an ActionSet, got {type(found).__name__}.")
                answer = function(in_precision(found, points[0].dtype), *points)
                return answer if isinstance(answer, tuple) else (answer,)

            return jax.vmap(one)(obs, *arrays)

        def pullback(
            wanted: tuple[int, ...],
            structure: Any,
            region: ActionSet | None,
            given: Sequence[Array],
            cotangents: tuple[Array, ...],
        ) -> tuple[Array, ...]:
            def of_wanted(*some: Array) -> tuple[Array, ...]:
                every = list(given)
                for place, array in zip(wanted, some, strict=True):
                    every[place] = array
                return value(region, *split(structure, every))

            return jax.vjp(of_wanted, *(given[place] for place in wanted))[1](cotangents)

        def flat_value(structure: Any, region: ActionSet | None, given: Sequence[Array]) -> tuple[Array, ...]:
            return value(region, *split(structure, given))

        self._value = jax.jit(flat_value, static_argnums=0)
        self._pullback = jax.jit(pullback, static_argnums=(0, 1))

    def value(self, structure: Any, region: ActionSet | None, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
        with surroundings(tensors[-1]):
            given = [across(tensor) for tensor in tensors]  # held until PyTorch's stream waits for who reads them
            return back(self._value(structure, region, given))

    def pullback(
        self,
        wanted: tuple[int, ...],
        structure: Any,
        region: ActionSet | None,
        tensors: Sequence[Tensor],
        cotangents: Sequence[Tensor],
    ) -> tuple[Tensor, ...]:
        """Cotangents of the tensors whose places are wanted."""
        with surroundings(tensors[-1]):
            given, cotangent = [across(t) for t in tensors], tuple(across(t) for t in cotangents)
            return back(self._pullback(wanted, structure, region, given, cotangent))


def split(structure: Any, given: Sequence[Array]) -> tuple[Any, ...]:
    """The observation, which has that structure, and the other arrays."""
    count = structure.num_leaves
    return jax.tree.unflatten(structure, given[:count]), *given[count:]


class Crossing(torch.autograd.Function):
    """A program's value with its derivative. Inputs are kept for the pullback, so PyTorch sees what is overwritten."""

    @staticmethod
    def forward(ctx: Any, program: Program, structure: Any, region: ActionSet | None, *tensors: Tensor) -> Any:
        ctx.program, ctx.structure, ctx.region = program, structure, region
        ctx.save_for_backward(*tensors)
        return program.value(structure, region, tensors)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *cotangents: Tensor) -> tuple[Tensor | None, ...]:
        needs = ctx.needs_input_grad[3:]
        wanted = tuple(place for place, need in enumerate(needs) if need)
        found = iter(ctx.program.pullback(wanted, ctx.structure, ctx.region, ctx.saved_tensors, cotangents))
        return None, None, None, *(next(found) if need else None for need in needs)


@functools.lru_cache(maxsize=256)
def program(function: SetFunction, constraint: Constraint | None) -> Program:
    return Program(function, constraint)


def crossed(
    who: str, function: SetFunction, constraint: ActionSet | Constraint, obs: Observations, *tensors: Tensor
) -> tuple[Tensor, ...]:
    """The function's answers for tensors whose last axis is the function's own and whose other axes are the batch."""
    if torch.compiler.is_compiling():
        return _opaque(who, function, constraint, obs, *tensors)
    check_process()
    fixed = constraint if isinstance(constraint, ActionSet) else None
    if fixed is None and not callable(constraint):
        raise ValueError(f"{who}: expected a feasible set or a constraint, got {type(constraint).__name__}.")
    if fixed is None and obs is None:
        raise ValueError(f"{who}: the constraint is a function of the observation, so pass obs=..., one row per row.")
    first = tensors[0]
    _check(who, first)
    lead = first.shape[:-1]
    leaves, structure = jax.tree.flatten(None if fixed is not None else obs)
    seen = [_observed(who, leaf, first, lead) for leaf in leaves]
    rest = [tensor if tensor.shape[:-1] == lead else tensor.expand(*lead, tensor.shape[-1]) for tensor in tensors]
    every = [*seen, *rest]
    if len(lead) != 1:
        every = [tensor.reshape((-1, *tensor.shape[len(lead) :])) for tensor in every]
    called = _program(function, None if fixed is not None else constraint)
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in every):
        answers = Crossing.apply(called, structure, fixed, *every)
    else:
        answers = called.value(structure, fixed, every)
    return answers if len(lead) == 1 else tuple(answer.reshape((*lead, *answer.shape[1:])) for answer in answers)


@torch.compiler.disable
def _opaque(*arguments: Any) -> tuple[Tensor, ...]:
    """The same as a call into which `torch.compile` does not look."""
    return crossed(*arguments)


def _program(function: SetFunction, constraint: Any) -> Program:
    try:
        return program(function, constraint)
    except TypeError as cause:
        if "unhashable" not in str(cause):
            raise
        raise ValueError(
            f"The constraint, a {type(constraint).__name__}, has no hash, by which its compiled program is kept: "
            "pass a function of the observation that calls it."
        ) from cause


def _check(who: str, tensor: Tensor) -> None:
    if not isinstance(tensor, torch.Tensor) or tensor.dtype not in DTYPES:
        found = tensor.dtype if isinstance(tensor, torch.Tensor) else type(tensor).__name__
        raise ValueError(f"{who}: expected a tensor of torch.float32 or torch.float64, got {found}.")
    if tensor.dim() == 0:
        raise ValueError(f"{who}: expected a tensor of shape (..., n), got a scalar.")


def _observed(who: str, leaf: Any, like: Tensor, lead: Sequence[int]) -> Tensor:
    """A part of the observation in the precision of the computation, where it is no integer."""
    if not isinstance(leaf, torch.Tensor):
        raise ValueError(f"{who}: obs must be a tensor, or a dict or tuple of them, got {type(leaf).__name__}.")
    if leaf.shape[: len(lead)] != lead:
        raise ValueError(
            f"{who}: obs must have one row per row of the actions, whose batch is {tuple(lead)}, but has shape "
            f"{tuple(leaf.shape)}."
        )
    if leaf.device != like.device:
        raise ValueError(f"{who}: obs is on {leaf.device} and the actions on {like.device}; move one to the other.")
    return leaf.to(like.dtype) if leaf.is_floating_point() else leaf


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


_forked = False


def _note_fork() -> None:
    global _forked
    _forked = _forked or xla_bridge.backends_are_initialized()


os.register_at_fork(after_in_child=_note_fork)


def check_process() -> None:
    """Refuse to wait forever: JAX's threads do not survive a fork."""
    if _forked:
        raise RuntimeError(
            "feasible.torch: this process was forked after JAX had started, whose threads a fork does not copy; start "
            "workers with DataLoader(..., multiprocessing_context='spawn')."
        )
