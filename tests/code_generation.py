"""How programs are compiled in tests: as quickly as XLA can, but for those whose code is itself what is tested.

Nearly all time of the suite is XLA's, spent on making small programs fast that then run for milliseconds. Most tests
ask whether a program is right, within tolerances far above what another order of operations changes: they get plain
code. Tests of rounding in float32 and of runs bit for bit get the code that users get.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from jax._src import compiler

# On a CPU: no optimisation by LLVM, fused loops by the emitter that takes a fifth of the time, and a program in one
# piece: XLA cuts it up to compile on all cores, which costs a quarter more, and the cores are busy with other tests.
# Whether a program is well-formed after each pass is XLA's own affair.
PLAIN: Mapping[str, int | bool | str] = {
    "xla_backend_optimization_level": 0,
    "xla_cpu_use_fusion_emitters": False,
    "xla_cpu_parallel_codegen_split_count": 1,
    "xla_disable_hlo_passes": "hlo-verifier",
}
_options, _plain = compiler.get_compile_options, False


def _compile_options(*, env_options_overrides: Mapping[str, object] | None = None, **others: object) -> object:
    asked = {**(PLAIN if _plain else {}), **(env_options_overrides or {})}
    return _options(env_options_overrides=asked, **others)  # pyright: ignore


def make_plain_code() -> None:
    """From now on in this process; JAX has options of one program, but none for all.

    One thread runs the programs, here and in processes that tests start: a second one would wait for work in a busy
    loop, on a core that another test needs.
    """
    global _plain
    os.environ.setdefault("PJRT_NPROC", "1")
    compiler.get_compile_options, _plain = _compile_options, True  # pyright: ignore[reportAttributeAccessIssue]


def xla_flags() -> str:
    """The variable XLA_FLAGS of processes that are to compile as this one does now."""
    return " ".join(f"--{name}={str(value).lower()}" for name, value in PLAIN.items()) if _plain else ""


@contextmanager
def users_code() -> Iterator[None]:
    """What is compiled inside is compiled as for a user."""
    global _plain
    before, _plain = _plain, False
    try:
        yield
    finally:
        _plain = before
