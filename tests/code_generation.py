"""How programs are compiled in tests: as quickly as XLA can, but for those whose code is itself what is tested.

Nearly all time of the suite is XLA's, spent on making small programs fast that then run for milliseconds. Most tests
ask whether a program is right, within tolerances far above what another order of operations changes: they get plain
code. Tests of rounding in float32 and of runs bit for bit get the code that users get.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from jax._src import compiler

# On a CPU: no optimisation by LLVM, fused loops by the emitter that takes a fifth of the time, and a program in one
# piece: XLA cuts it up to compile on all cores, which costs a quarter more, and the cores are busy with other tests.
PLAIN: Mapping[str, int | bool] = {
    "xla_backend_optimization_level": 0,
    "xla_cpu_use_fusion_emitters": False,
    "xla_cpu_parallel_codegen_split_count": 1,
}
_options, _plain = compiler.get_compile_options, False


def _compile_options(*, env_options_overrides: Mapping[str, object] | None = None, **others: object) -> object:
    asked = {**(PLAIN if _plain else {}), **(env_options_overrides or {})}
    return _options(env_options_overrides=asked, **others)  # pyright: ignore


def make_plain_code() -> None:
    """From now on in this process; JAX has options of one program, but none for all."""
    global _plain
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
