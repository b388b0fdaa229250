"""The start of a run: from the beginning of its process to the end of its first update, on one core.

    python -m benchmarks.start [--task halfcheetah] [--algo nfwpo] [--rounds 1]

The first start finds an empty cache of compiled programs, the second one what the first has kept. Each is a process of
its own that does what `feasible train` does, with a warm-up of two steps. Seconds of the clock count when the machine
is idle; those of the processor, also where other programs are at work, are close to them.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

WARMUP = 2


def start(task: str, algo: str, out: Path, begun: float) -> None:
    """Train to the end of the first update, print the seconds that it took, and end the process."""
    from feasible.cli.running import one_thread

    one_thread()
    from feasible.run.launch import configure, new_run
    from feasible.run.train import train
    from feasible.run.watch import Watcher

    class FirstUpdate(Watcher):
        def advanced(self, step: int) -> None:
            if step > WARMUP:
                print(time.time() - begun, time.process_time(), flush=True)
                os._exit(0)

    train(new_run(out, configure(task, algo, 0, changes={"warmup": WARMUP})), FirstUpdate())


def timed(task: str, algo: str, cache: Path) -> tuple[float, float]:
    """Seconds of the clock and of the processor that a start takes with this cache."""
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, "-m", "benchmarks.start", "--task", task, "--algo", algo, "--timed", out]
        environment = {**os.environ, "FEASIBLE_CACHE": str(cache)}
        environment.pop("JAX_COMPILATION_CACHE_DIR", None)
        finished = subprocess.run(
            [*command, str(time.time())], env=environment, stdout=subprocess.PIPE, text=True, check=True
        )
    wall, processor = map(float, finished.stdout.split())
    return wall, processor


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--task", default="halfcheetah")
    parser.add_argument("--algo", default="nfwpo")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--timed", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    if options.timed:
        start(options.task, options.algo, Path(options.timed[0]), float(options.timed[1]))
    table = Table(title=f"To the first update: {options.algo} on {options.task}, one core")
    for column in ("", "seconds", "of the processor"):
        table.add_column(column, justify="left" if not column else "right")
    for _ in range(options.rounds):
        with tempfile.TemporaryDirectory() as cache:
            for title in ("first start", "second start"):
                table.add_row(title, *(f"{seconds:.1f}" for seconds in timed(options.task, options.algo, Path(cache))))
    Console().print(table)


if __name__ == "__main__":
    main()
