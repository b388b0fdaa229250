"""On an accelerator: a million HalfCheetah projections against a copy of the same bytes.

A projection reads z and the weights and writes the action: three arrays of one size. The copy moves as many bytes in
all, half of them read, half written; the sum z + weights reads and writes exactly what the projection does. On a fast
device launching a program from Python takes longer than such a copy, so what is compared is the time of a pass within
one program of many, each fed with the answer of the last; calls one by one, launching included, are printed as well.
"""

import statistics
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from benchmarks.problems import halfcheetah, proposals
from feasible.sets.weighted_l1 import WeightedL1Box

POINTS = 1_000_000
TARGET = 5.0
CHAIN, ROUNDS = 20, 11

Pass = Callable[[Array, Array], Array]


def print_copying() -> None:
    problem = halfcheetah()
    points = proposals(problem, POINTS)
    z, weights = jnp.asarray(points.z, jnp.float32), jnp.asarray(points.weights, jnp.float32)
    total = 3 * z.nbytes
    block, one = jnp.ones(total // 2 // z.dtype.itemsize, jnp.float32), jnp.ones((), jnp.float32)

    def project(z: Float[Array, " n"], weights: Float[Array, " n"]) -> Float[Array, " n"]:
        return WeightedL1Box(weights, problem.budget or 0.0, problem.high or 0.0).project(z)

    passes: dict[str, tuple[Pass, Array, Array]] = {
        "projection": (jax.vmap(project), z, weights),
        "copy of the same bytes": (jnp.multiply, block, one),
        "z + weights": (jnp.add, z, weights),
    }
    chained = _in_turns(passes, CHAIN)
    alone = _in_turns(passes, 1)

    device = jax.devices()[0]
    print(f"{POINTS} HalfCheetah projections, float32, {device.device_kind}, JAX {jax.__version__}")
    for title, seconds in chained.items():
        print(
            f"  {title:24} {1e6 * seconds:9.1f} microseconds, {total / seconds / 1e9:5.0f} GB/s;"
            f" called alone {1e6 * alone[title]:9.1f}"
        )
    ratio = chained["projection"] / chained["copy of the same bytes"]
    verdict = ("reached" if ratio <= TARGET else "MISSED") if "H200" in device.device_kind else "not judged here"
    print(f"  projection / copy = {ratio:.2f}; target on an NVIDIA H200, at most {TARGET:.0f}: {verdict}")


def _in_turns(passes: dict[str, tuple[Pass, Array, Array]], length: int) -> dict[str, float]:
    """Median seconds per pass over rounds in which every program runs once."""
    programs = {title: _chain(step, length) for title, (step, *_) in passes.items()}
    samples: dict[str, list[float]] = {title: [] for title in passes}
    for attempt in range(ROUNDS + 1):
        for title, (_, x, other) in passes.items():
            start = time.perf_counter()
            programs[title](x, other).block_until_ready()
            if attempt:  # the first one compiles
                samples[title].append((time.perf_counter() - start) / length)
    return {title: statistics.median(values) for title, values in samples.items()}


def _chain(step: Pass, length: int) -> Pass:
    """The pass repeated in one program; the barrier keeps the compiler from merging one with the next."""

    def program(x: Array, other: Array) -> Array:
        for _ in range(length):
            x = jax.lax.optimization_barrier(step(x, other))
        return x

    return jax.jit(program)
