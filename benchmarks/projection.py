"""How fast and how exact projections are, side by side with the solvers a user would otherwise pick.

    python -m benchmarks.projection [--rows reacher ...] [--batches 16 ...] [--dtype float64] [--quick]
    python -m benchmarks.projection --on-device [--rows ...] [--batches ...]
    python -m benchmarks.projection --accelerator

Everyone runs on one CPU thread: the process is bound to one core, the libraries' thread pools are of size one, and
JAX computes in the calling thread. Times are medians of calls taken in turns, models and compilation made before.
Ours, qpax and jaxopt compute in float32 unless `--dtype float64` is given, the others always in float64. The gradient
is that of sum ||project(z)||^2 in z. The error is the largest distance in a coordinate from cvxpy with Clarabel at
tolerance 1e-12, as a share of the set's scale, over the batch's first 64 points. Calls that would take too long are
made on fewer points; their time a point is marked with ~. Every peer keeps the tolerances it comes with. `--on-device`
compares on JAX's default device instead, an accelerator, with the peers that compute there. A peer that is not
installed, or does not work on the machine, is named under the table with the reason.
"""

import argparse
import importlib.metadata
import os
import platform
import sys
import timeit
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchmarks.problems import Floats, Points, Problem

ROWS = (
    "reacher",
    "halfcheetah",
    "walker-power",
    "halfcheetah-ma",
    "hopper-os",
    "bss-5",
    "nsfnet",
    "nsfnet-20",
    "intersection",
)
BATCHES = (16, 1024, 65536)
PACKAGES = (
    "jax",
    "clarabel",
    "cvxpy",
    "cvxpylayers",
    "diffcp",
    "jaxopt",
    "moreau",
    "osqp",
    "pinet-hcnn",
    "qpax",
    "rayen",
    "scs",
    "torch",
)
# Longest call in seconds: ours is measured in full whenever it is not hopeless, peers on fewer points.
OUR_PATIENCE, PEER_PATIENCE = 1.0, 0.1
# An accelerator takes about as long for a few points as for many, so that few say little about many.
PATIENCE_ON_DEVICE = 2.0
REFERENCE_POINTS = 64


def main(arguments: Sequence[str] | None = None) -> None:
    options = _options(arguments)
    if options.accelerator:
        from benchmarks.copying import print_copying

        print_copying()
        return
    if options.on_device:
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # leaves memory to the peers in PyTorch
    else:
        use_one_thread()
    if options.dtype == "float64":
        os.environ["JAX_ENABLE_X64"] = "1"
    _print_comparison(options)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.projection", description="Projections side by side with other solvers."
    )
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=ROWS, help="sets to project on")
    parser.add_argument("--batches", nargs="+", type=int, default=BATCHES, help="points per call")
    parser.add_argument("--dtype", choices=("float32", "float64"), default="float32", help="of JAX's solvers")
    parser.add_argument("--quick", action="store_true", help="batch 16 alone, few repetitions")
    parser.add_argument("--width", type=int, default=118, help="columns of the table")
    parser.add_argument(
        "--on-device", action="store_true", help="on JAX's default device, with the peers that run there"
    )
    parser.add_argument(
        "--accelerator",
        action="store_true",
        help="only ours, on JAX's default device: a million projections against a copy of the same bytes",
    )
    options = parser.parse_args(arguments)
    if min(options.batches) < 1:
        parser.error("--batches must be positive numbers of points")
    return options


def use_one_thread() -> None:
    """Before numpy, torch and JAX are loaded: they read these settings once."""
    for pool in ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "RAYON"):
        os.environ[f"{pool}_NUM_THREADS"] = "1"
    os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_cpu_multi_thread_eigen=false"
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    os.environ["JAX_CPU_ENABLE_ASYNC_DISPATCH"] = "false"
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def _print_comparison(options: argparse.Namespace) -> None:
    # Imported here and not above: the number of threads must be settled first, and --accelerator needs none of it.
    from benchmarks.measurement import Trials, compare
    from benchmarks.peers import EVERY, ON_DEVICE, available
    from benchmarks.peers.ours import Feasible
    from benchmarks.problems import problems, proposals
    from benchmarks.table import Section, fastest_rows, print_table

    peers, missing = available(options.dtype, ON_DEVICE if options.on_device else EVERY)
    solvers = [Feasible(options.dtype), *peers]
    patience = [PATIENCE_ON_DEVICE if options.on_device else OUR_PATIENCE]
    patience += [PATIENCE_ON_DEVICE if options.on_device else PEER_PATIENCE] * len(peers)
    batches = (16,) if options.quick else sorted(options.batches)
    sections: list[Section] = []
    trials: Trials = {}
    every = problems()
    load_before = os.getloadavg()[0]
    for name in options.rows:
        problem = every[name]
        points = proposals(problem, max(batches))
        answers = _reference(problem, points.first(REFERENCE_POINTS))
        for batch in batches:
            print(f"measuring {name}, batch {batch}", file=sys.stderr, flush=True)
            rounds = 5 if options.quick or batch > 16 else 15
            given = points.first(batch)
            results = compare(solvers, problem, given, answers, rounds=rounds, patience=patience, trials=trials)
            sections.append(Section(problem, batch, results))
            print(*fastest_rows(sections[-1]), sep="\n", file=sys.stderr, flush=True)
    where = _device() if options.on_device else "one CPU thread"
    print_table(sections, where, options.width)
    for sentence in missing:
        print(sentence)
    print(
        f"floor: a JAX call that computes next to nothing takes {1e6 * _seconds_of_an_empty_call():.1f} microseconds."
    )
    print(f"{options.dtype} for feasible, qpax, jaxopt and Pi-net; {processor()}; {_versions()};")
    print(f"load of the machine (this program is 1 of it): {load_before:.1f} before, {os.getloadavg()[0]:.1f} after.")


def _reference(problem: "Problem", points: "Points") -> "Floats | None":
    """Answers to trust, or none where there is no cvxpy: a machine with an accelerator need not have it."""
    try:
        from benchmarks.reference import reference
    except ImportError:
        return None
    return reference(problem, points)


def _seconds_of_an_empty_call() -> float:
    """What calling a compiled function costs by itself: no batched projection in JAX can take less."""
    import jax
    import jax.numpy as jnp

    add, one = jax.jit(jnp.add), jnp.ones(16)
    add(one, one).block_until_ready()
    return min(timeit.repeat(lambda: add(one, one).block_until_ready(), number=100, repeat=20)) / 100


def _device() -> str:
    import jax

    return jax.devices()[0].device_kind


def processor() -> str:
    try:
        with open("/proc/cpuinfo") as lines:
            return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def _versions() -> str:
    found = []
    for package in PACKAGES:
        try:
            found.append(f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return ", ".join(found)


if __name__ == "__main__":
    main()
