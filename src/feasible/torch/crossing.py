"""The crossing from PyTorch to JAX and back: a pure JAX function of a feasible set as an autograd function of tensors.

A function f(set, x_1, ..., x_k) of one state becomes two compiled programs of batches, its value and its pullback. The
pullback computes the value again: a projection keeps some 60 small arrays for its derivative, and to hand them over
costs more than to compute them. Programs are compiled once per function, structure of the set, shapes and dtype.
How tensors become arrays is said in `feasible.torch.memory`.
"""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
# The type checker also runs where PyTorch is not installed, and then takes this folder for it.

import functools
import os
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import jax
import torch
from jax._src import xla_bridge  # JAX has no public way to ask whether it has started
from jaxtyping import Array
from torch.autograd import forward_ad

from feasible.algorithms.base import in_precision
from feasible.constraints import Constraint
from feasible.sets.base import ActionSet
from feasible.solve.precision import full_precision
from feasible.torch.memory import Tensor, across, back, surroundings

Observations: TypeAlias = Any
"""A tensor, or a dict or tuple of them, one row per state."""
SetFunction: TypeAlias = Callable[..., Array | tuple[Array, ...]]
"""Of a set and of arrays, all of one state."""

DTYPES = (torch.float32, torch.float64)


class Program:
    """A function of sets, compiled for batches; `constraint` gives the sets, None where the set is an argument."""

    def __init__(self, function: SetFunction, constraint: Constraint | None):
        @full_precision
        def value(region: ActionSet | None, obs: Any, *arrays: Array) -> tuple[Array, ...]:
            def one(obs: Any, *points: Array) -> tuple[Array, ...]:
                found = constraint(obs) if constraint is not None else region
                if not isinstance(found, ActionSet):
                    raise ValueError(f"The constraint must return an ActionSet, got {type(found).__name__}.")
                answer = function(in_precision(found, points[0].dtype), *points)
                return answer if isinstance(answer, tuple) else (answer,)

            return jax.vmap(one)(obs, *arrays)

        @full_precision
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

            return _fresh(jax.vjp(of_wanted, *(given[place] for place in wanted))[1](cotangents))

        def flat_value(structure: Any, region: ActionSet | None, given: Sequence[Array]) -> tuple[Array, ...]:
            return _fresh(value(region, *split(structure, given)))

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


_fresh = jax.lax.optimization_barrier
"""Answers in memory of their own: JAX hands an argument that a program returns unchanged back as it came."""


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
    def backward(ctx: Any, *cotangents: Tensor) -> tuple[Tensor | None, ...]:
        needs, tensors = ctx.needs_input_grad[3:], ctx.saved_tensors
        wanted = tuple(place for place, need in enumerate(needs) if need)
        answers = ctx.program.pullback(wanted, ctx.structure, ctx.region, tensors, cotangents)
        if torch.is_grad_enabled():  # create_graph=True
            answers = FirstOrder.apply(len(answers), *answers, *tensors, *cotangents)
        found = iter(answers)
        return None, None, None, *(next(found) if need else None for need in needs)


class FirstOrder(torch.autograd.Function):
    """Gradients as they are, which depend on the tensors after them in a way that is not known here.

    Projections on polytopes, ellipsoids and intersections are linearised at their answer: the first derivative is
    exact, and the derivative of it is not the second.
    """

    @staticmethod
    def forward(ctx: Any, count: int, *tensors: Tensor) -> tuple[Tensor, ...]:
        return tuple(tensor.view_as(tensor) for tensor in tensors[:count])

    @staticmethod
    def backward(ctx: Any, *cotangents: Tensor) -> None:
        raise RuntimeError(
            "feasible.torch: derivatives are of first order only, and this asks for the gradient of a gradient "
            "(create_graph=True); keep the layer out of what is differentiated twice, with .detach() for example."
        )


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
    check_transforms(who)
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
    differentiated = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in every)
    if differentiated or forward_ad._current_level >= 0:  # PyTorch says that the latter has no rule here
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
        raise ValueError(f"{who}: expected a tensor of torch.float32 or torch.float64, as .float() gives, got {found}.")
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


def check_transforms(who: str) -> None:
    """Refuse tensors that stand for others inside `torch.func.vmap` and its like: JAX cannot see behind them."""
    if torch._C._functorch.peek_interpreter_stack() is not None:
        raise RuntimeError(
            f"{who}: torch.func's transforms (vmap, grad, jacrev) do not reach into JAX; pass the whole batch, and "
            "differentiate with torch.autograd."
        )
