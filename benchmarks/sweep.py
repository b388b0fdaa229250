"""Sweeps: throughput of two runs at a time against one, and what the sweep costs beside its runs.

    python -m benchmarks.sweep [--runs 4] [--steps 5000] [--rounds 3] [--task reacher] [--algo nfwpo]

Every round trains the same runs three times: one after another without a sweep, by a sweep with one job, and by one
with two. Each run is a process that imports, compiles and trains. On an idle machine of two cores or more.
"""

import argparse
import io
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from feasible.run.folder import RunFolder
from feasible.run.launch import grid
from feasible.run.sweep.processes import Processes
from feasible.run.sweep.sweep import prepare, run_all

SPEEDUP, OVERHEAD = 1.8, 0.02


def by_hand(folders: list[RunFolder]) -> None:
    """The same processes, one after another."""
    for folder in folders:
        command = [sys.executable, "-m", "feasible.cli", "resume", str(folder.path)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def by_sweep(jobs: int) -> Callable[[list[RunFolder]], None]:
    def sweep(folders: list[RunFolder]) -> None:
        failures = run_all(folders, Console(file=io.StringIO(), width=160, force_terminal=True), Processes(jobs))
        assert not failures, failures

    return sweep


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--steps", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--task", default="reacher")
    parser.add_argument("--algo", default="nfwpo")
    options = parser.parse_args()
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    configs = grid([options.task], [options.algo], range(options.runs), steps=options.steps)
    ways = {"by hand": by_hand, "1 job": by_sweep(1), "2 jobs": by_sweep(2)}
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    with tempfile.TemporaryDirectory() as temporary:
        for number in range(options.rounds):
            for way, train in ways.items():
                folders = prepare(Path(temporary) / f"{number}-{way}", configs)
                begun = time.perf_counter()
                train(folders)
                seconds[way].append(time.perf_counter() - begun)
    for way, times in seconds.items():
        print(f"{way:8} {statistics.median(times):7.1f} s  ({', '.join(f'{one:.1f}' for one in times)})")
    speedup = statistics.median(one / two for one, two in zip(seconds["1 job"], seconds["2 jobs"], strict=True))
    overhead = statistics.median(one / hand - 1 for one, hand in zip(seconds["1 job"], seconds["by hand"], strict=True))
    judged = {True: "reached", False: "missed"}
    print(f"2 jobs against 1: {speedup:.2f}x, to reach {SPEEDUP}x: {judged[speedup >= SPEEDUP]}")
    print(f"sweep against its runs: {overhead:+.1%}, at most {OVERHEAD:.0%}: {judged[overhead <= OVERHEAD]}")


if __name__ == "__main__":
    main()
