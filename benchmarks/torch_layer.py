"""A projection as a layer of PyTorch: ours beside the layers a user would otherwise pick.

    python -m benchmarks.torch_layer [--batches 16 256 4096] [--device cuda] [--dtype float64] [--quick]

The set is HalfCheetah's, sum |w_i a_i| <= 20 in the unit box, its weights w another vector for every row. RAYEN has
fixed sets and no projection: it stands in a table of its own, one vector w for all rows, beside our map of the same
idea (`alpha`) and our projection. The backward pass is the gradient of sum a^2 in z. Layers get tensors and answer with
tensors. On the CPU all have one thread. With `--device cuda` ours, RAYEN, qpth and, where its package for CUDA is
installed, Moreau compute on the GPU, and the cvxpylayers of diffcp, which cannot, on the CPU. Times are medians of
calls taken in turns, models and compilation made before. Ours and RAYEN compute in float32 unless `--dtype float64` is
given, the others in float64, each with the tolerances it comes with. Calls that would take too long are made on fewer
rows; their time per row is marked with ~. The error is the largest distance in an entry from a bisection in NumPy, over
the first 64 rows.

The crossing alone is the same call around a function that does nothing: tensors to JAX, an empty program, and back.
"""

import argparse
import importlib
import importlib.metadata
import os
from collections.abc import Sequence

import numpy as np

from benchmarks.projection import processor, use_one_thread

BATCHES = (16, 256, 4096)
TARGET_BATCH, TARGET = 256, 20.0
OUR_PATIENCE, PEER_PATIENCE = 1.0, 0.3  # seconds of a call
PACKAGES = ("jax", "torch", "cvxpylayers", "moreau", "diffcp", "qpth", "rayen")
OURS, CROSSING = "feasible.torch.project", "  of it the crossing alone"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.torch_layer", description="A projection in PyTorch.")
    parser.add_argument("--batches", nargs="+", type=int, default=BATCHES, help="rows per call")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="of tensors")
    parser.add_argument("--dtype", choices=("float32", "float64"), default="float32", help="of ours and of RAYEN")
    parser.add_argument("--quick", action="store_true", help="few repetitions")
    options = parser.parse_args(arguments)
    if options.device == "cpu":
        use_one_thread()
    _measure(options)


def _measure(options: argparse.Namespace) -> None:
    # Imported here and not above: the number of threads must be settled first.
    import torch  # pyright: ignore[reportMissingImports]

    from benchmarks.measurement import Trials, compare
    from benchmarks.problems import Points, halfcheetah, proposals

    if options.device == "cpu":
        torch.set_num_threads(1)
    problem, load, missing = halfcheetah(), os.getloadavg()[0], []
    for title, fixed in (("HalfCheetah, weights by state", False), ("HalfCheetah, one vector of weights", True)):
        solvers, missing_here = _solvers(fixed, options)
        trials: Trials = {}
        missing += missing_here
        patience = [
            OUR_PATIENCE if "feasible" in one.title or one.title == CROSSING else PEER_PATIENCE for one in solvers
        ]
        print(f"{title + ', microseconds per row':60s}{'forward':>10s}{'both passes':>13s}{'ratio':>8s}{'error':>8s}")
        for batch in sorted(options.batches):
            points = proposals(problem, batch)
            if fixed:
                points = Points(points.z, np.repeat(points.weights[:1], batch, axis=0))  # pyright: ignore[reportOptionalSubscript]
            answers = _bisected(points.first(64))
            rounds = 5 if options.quick else 25
            results = compare(solvers, problem, points, answers, rounds=rounds, patience=patience, trials=trials)
            _print(batch, results, judged=not fixed)
    for sentence in missing:
        print(sentence)
    where = processor() if options.device == "cpu" else torch.cuda.get_device_name()
    print(f"{options.dtype} for feasible and RAYEN; {where}; {_versions()};")
    print(f"load of the machine (this program is 1 of it): {load:.1f} before, {os.getloadavg()[0]:.1f} after.")


def _print(batch: int, results: Sequence, *, judged: bool) -> None:
    ours = results[0]
    for result in results:
        if result.failure:
            print(f"{batch:6d}  {result.title}: fails, {result.failure}")
            continue
        peer = "feasible" not in result.title and result.title != CROSSING
        both, mark = result.backward.seconds, "~" if result.backward.extrapolated else ""
        ratio = f"{both / ours.backward.seconds:.1f}x" if peer else ""
        # RAYEN, alpha and the empty program are no projections.
        error = f"{result.error:.0e}" if "project" in result.title or (peer and judged) else "-"
        times = f"{1e6 * result.forward.seconds:10.2f}{mark + format(1e6 * both, '.2f'):>13s}"
        print(f"{batch:6d}  {result.title:52s}{times}{ratio:>8s}{error:>8s}", flush=True)
    peers = [r for r in results if "feasible" not in r.title and r.title != CROSSING and not r.failure]
    if batch == TARGET_BATCH and judged and peers:
        fastest = min(peers, key=lambda one: one.backward.seconds)
        ratio = fastest.backward.seconds / ours.backward.seconds
        verdict = "reached" if ratio >= TARGET else "MISSED"
        print(f"target at batch {batch}: {TARGET:.0f}x the fastest, {fastest.title}: {ratio:.1f}x, {verdict}.")


def _solvers(fixed: bool, options: argparse.Namespace) -> tuple[list, list[str]]:
    """Ours first, then every peer that can be imported, and a sentence for each other one."""
    from benchmarks.peers import torch_layers as layers

    def ours(title: str, make, who: str):
        return layers.TorchLayer(title, make, who, options.dtype, options.device)

    missing: list[str] = []
    if fixed:
        found = [
            ours("feasible.torch.alpha", layers.of_one_set, "alpha"),
            ours("feasible.torch.project", layers.of_one_set, "project"),
        ]
        if _there("rayen", missing):
            found.append(ours("RAYEN", layers.rayen, "rayen"))
        return found, missing
    found = [ours(OURS, layers.of_the_state, "project"), ours(CROSSING, layers.of_the_state, "nothing")]
    if _there("moreau", missing) and _there("cvxpylayers.torch", missing):
        found.append(_moreau(options.device, missing))
    if _there("benchmarks.peers.cvxpylayers", missing):
        found += importlib.import_module("benchmarks.peers.cvxpylayers").solvers("float64")
    if _there("benchmarks.peers.qpth", missing):
        found.append(importlib.import_module("benchmarks.peers.qpth").Qpth(options.device))
    return found, missing


def _moreau(device: str, missing: list[str]):
    import moreau  # pyright: ignore[reportMissingImports]

    from benchmarks.peers import torch_layers as layers

    if device == "cuda" and not moreau.device_available("cuda"):
        missing.append("moreau computes on the CPU: its package for CUDA (moreau[cuda13]) is not installed.")
        device = "cpu"
    title = "cvxpylayers, Moreau" + (" (CUDA)" if device == "cuda" else "")
    return layers.TorchLayer(title, layers.moreau, "", "float64", device)


def _there(module: str, missing: list[str]) -> bool:
    try:
        importlib.import_module(module)
    except ImportError as cause:
        missing.append(f"{module} is left out: {cause}.")
        return False
    return True


def _bisected(points) -> np.ndarray:
    """a = sign(z) clip(|z| - t |w|, 0, 1) with the least t >= 0 that meets the budget of 20."""
    z, w = np.abs(points.z), np.abs(points.weights)
    low, high = np.zeros((len(z), 1)), np.max(z / np.maximum(w, 1e-12), axis=1, keepdims=True)
    for _ in range(200):
        middle = 0.5 * (low + high)
        over = np.sum(w * np.clip(z - middle * w, 0.0, 1.0), axis=1, keepdims=True) > 20.0
        low, high = np.where(over, middle, low), np.where(over, high, middle)
    return np.sign(points.z) * np.clip(z - np.where(low > 1e-15, high, 0.0) * w, 0.0, 1.0)


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
