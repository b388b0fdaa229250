"""First calls compile, which may take many seconds: whoever waits is told what for.

The message goes to the logger `feasible`, which is silent unless the program that uses the library asks for it:
`logging.basicConfig(level=logging.INFO)`. A progress bar hears it and shows it by itself.
"""

import functools
import logging
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

import jax
from jax.extend.core import get_opaque_trace_state

Answer = TypeVar("Answer")

LOG = logging.getLogger("feasible")
PATIENCE = 1.0
"""Seconds after which a first call says what is compiled."""
SOON: Mapping[str, bool | int | str] = {
    "xla_backend_optimization_level": 1,
    "xla_cpu_use_fusion_emitters": False,
    "xla_cpu_parallel_codegen_split_count": 1,
}
"""Options of XLA for little time of compiling on a CPU."""
_HEARERS: list[Callable[[str], None]] = []


@contextmanager
def heard_by(hearer: Callable[[str], None]) -> Iterator[None]:
    """Let a function hear, from another thread, what is being compiled for long."""
    _HEARERS.append(hearer)
    try:
        yield
    finally:
        _HEARERS.remove(hearer)


@contextmanager
def said_if_long(what: str) -> Iterator[None]:
    """Say that `what` is being compiled, if the block takes long; while it does, not afterwards."""
    if not (_HEARERS or LOG.isEnabledFor(logging.INFO)):
        yield
        return
    timer = threading.Timer(PATIENCE, _say, (what,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _say(what: str) -> None:
    LOG.info("Compiling %s; only the first call of its kind takes that long.", what)
    for hearer in _HEARERS:
        hearer(what)


def soon() -> dict[str, bool | int | str]:
    """Compiler options of a program that runs once or for a short while: it is to be there soon.

    On a CPU XLA then takes half the time or less, for code that is as fast on programs without an update and rounds
    alike: fused loops by its older emitter, little optimisation by LLVM, and nothing cut up to be compiled on many
    cores. Elsewhere nothing changes, what XLA_FLAGS say holds, and options that this XLA does not have are left out.
    """
    if jax.default_backend() != "cpu":
        return {}
    said = os.environ.get("XLA_FLAGS", "")
    return {name: value for name, value in SOON.items() if name not in said and _known(name)}


@functools.cache
def _known(option: str) -> bool:
    """Whether XLA has an option: options come and go with its versions. Costs the compilation of a constant, once."""
    try:
        jax.jit(lambda: 0, compiler_options={option: SOON[option]}).lower().compile()
    except jax.errors.JaxRuntimeError:
        return False
    return True


def inlined_or_soon(function: Callable[..., Answer], **options: Any) -> Callable[..., Answer]:
    """`jax.jit(function)`, inlined in programs that call it; called by itself, as at a prompt, it is there `soon`."""
    inlined = jax.jit(function, inline=True, **options)
    alone: list[Callable[..., Answer]] = []

    @functools.wraps(function)
    def call(*given: Any) -> Answer:
        if get_opaque_trace_state(convention="flax") != _untraced():
            return inlined(*given)
        if not alone:  # now and not before: asking for the backend starts it
            alone.append(jax.jit(function, compiler_options=soon(), **options))
        return alone[0](*given)

    return call


@functools.cache
def _untraced() -> object:
    """The state in which nothing is being traced: that of a new thread, wherever the first question is asked."""
    with ThreadPoolExecutor(1) as fresh:
        return fresh.submit(get_opaque_trace_state, convention="flax").result()


class ToldOnce:
    """A compiled function whose first call says what is compiled, if it takes long; all others cost nothing more.

    >>> step = ToldOnce("the update", jax.jit(update))
    >>> step.call(state)
    """

    def __init__(self, what: str, function: Callable[..., Any]):
        self.call: Callable[..., Any] = self._first
        self._what, self._function = what, function

    def _first(self, *given: Any) -> Any:
        with said_if_long(self._what):
            result = self._function(*given)
        self.call = self._function
        return result
