"""How programs are compiled in tests: as quickly as XLA can, but for those whose code is itself what is tested.

Nearly all time of the suite is XLA's, spent on making small programs fast that then run for milliseconds. Most tests
ask whether a program is right, within tolerances far above what another order of operations changes: they get plain
code. Tests of rounding in float32 and of runs bit for bit get the code that users get.
"""

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import cast

import jax
from jax._src import cache_key, compiler
from jax._src.interpreters import mlir

from feasible.compiling import SOON

# On a CPU: no optimisation by LLVM, fused loops by the emitter that takes a fifth of the time, and a program in one
# piece: XLA cuts it up to compile on all cores, which costs a quarter more, and the cores are busy with other tests.
# Whether a program is well-formed after each pass is XLA's own affair. The other passes left out look for what makes
# loops faster, again and again until they find no more: a tenth of the time.
LEFT_OUT = (
    "hlo-verifier",
    "simplify-while-loops",
    "while-loop-invariant-code-motion",
    "simplify-conditional",
    "constant_folding",
    "reshape-mover",
    "tree_reduction_rewriter",
)
PLAIN: Mapping[str, int | bool | str] = {
    "xla_backend_optimization_level": 0,
    "xla_cpu_use_fusion_emitters": False,
    "xla_cpu_parallel_codegen_split_count": 1,
    "xla_disable_hlo_passes": ",".join(LEFT_OUT),
}
# A user's code to the bit, a seventh sooner: the verifier changes no program.
UNVERIFIED: Mapping[str, int | bool | str] = {"xla_disable_hlo_passes": "hlo-verifier"}
_options, _forced = compiler.get_compile_options, cast(Mapping[str, int | bool | str], {})
_compiled, _programs = compiler.compile_or_get_cached, cast(dict[str, object], {})
_context, _contexts = mlir.make_ir_context, threading.local()


def _compile_options(*, env_options_overrides: Mapping[str, object] | None = None, **others: object) -> object:
    asked = {**UNVERIFIED, **(env_options_overrides or {}), **_forced}
    return _options(env_options_overrides=asked, **others)  # pyright: ignore


def make_plain_code() -> None:
    """From now on in this process; JAX has options of one program, but none for all.

    Also in processes that tests start: one thread runs the programs, as a second one would wait for work in a busy
    loop, on a core that another test needs. And operations do not carry the hundred lines that they came from.
    """
    global _forced
    os.environ.setdefault("PJRT_NPROC", "1")
    os.environ.setdefault("JAX_TRACEBACK_IN_LOCATIONS_LIMIT", "0")
    jax.config.update("jax_traceback_in_locations_limit", 0)
    compiler.get_compile_options, _forced = _compile_options, PLAIN  # pyright: ignore[reportAttributeAccessIssue]


def xla_flags() -> str:
    """The variable XLA_FLAGS of processes that are to compile as this one does now."""
    return " ".join(f"--{name}={str(value).lower()}" for name, value in _forced.items())


@contextmanager
def _forcing(options: Mapping[str, int | bool | str]) -> Iterator[None]:
    global _forced
    before, _forced = _forced, options
    try:
        yield
    finally:
        _forced = before


def users_code() -> AbstractContextManager[None]:
    """What is compiled inside is compiled as for a user's program."""
    return _forcing({})


def code_at_a_prompt() -> AbstractContextManager[None]:
    """What is compiled inside is compiled as for a user who asks a set by itself: in a third of the time."""
    return _forcing(SOON)


def _compile(backend: object, computation: object, devices: object, options: object, callbacks: list, *rest: object):
    asked = backend, computation, devices, options, callbacks, *rest
    if callbacks:  # functions of this process, which are not in the key
        return _compiled(*asked)  # pyright: ignore[reportArgumentType]
    key = cache_key.get(computation, devices, options, backend)  # pyright: ignore[reportArgumentType]
    if key not in _programs:
        _programs[key] = _compiled(*asked)  # pyright: ignore[reportArgumentType]
    return _programs[key]


def _same_context() -> object:
    """A fourth of the time that it takes to make a program of one operation is spent on a new context."""
    if not hasattr(_contexts, "context"):
        _contexts.context = _context()
    return _contexts.context


def compile_equal_programs_once() -> None:
    """From now on in this process, until they are forgotten: many tests trace anew what another has compiled."""
    compiler.compile_or_get_cached = _compile  # pyright: ignore[reportAttributeAccessIssue]
    mlir.make_ir_context = _same_context  # pyright: ignore[reportAttributeAccessIssue]


def forget_programs() -> None:
    """Those compiled so far, and the names and constants of their texts."""
    _programs.clear()
    vars(_contexts).clear()
