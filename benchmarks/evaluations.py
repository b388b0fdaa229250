"""What evaluations cost a population: seconds of the same steps with them and without.

    python -m benchmarks.evaluations [--task halfcheetah] [--methods nfwpo ...] [--seeds 5] [--every 5000]

Evaluations are played by another thread while training goes on. Their share is by how much training takes longer with
them, from the first one on. The last one of a run, which has nothing to overlap with, is not in it.
"""

import argparse
import math
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.population import METHODS
from feasible.program_cache import keep_programs
from feasible.run.config import RunConfig
from feasible.run.launch import configure
from feasible.run.sweep.accelerator import train_together
from feasible.run.sweep.sweep import prepare
from feasible.run.watch import Watcher


class Clock(Watcher):
    """When a population made two of its steps, and how long it waited for evaluations between them."""

    def __init__(self, first: int, last: int) -> None:
        self.first, self.last = first, last
        self.times: list[float] = []
        self.waits: list[float] = []

    def advanced(self, step: int) -> None:
        if step >= (self.first, self.last, math.inf)[len(self.times)]:
            self.times.append(time.perf_counter())

    def evaluated(self, step: int, seconds: float) -> None:
        if self.first < step < self.last:
            self.waits.append(seconds)


def configs(options: argparse.Namespace, eval_every: int) -> list[RunConfig]:
    """The runs; all make the same steps, evaluations or not."""
    return [
        configure(
            options.task,
            method,
            seed,
            preset=options.preset,
            changes={"warmup": 1_000},
            steps=options.steps,
            eval_every=eval_every,
            episodes=options.episodes,
            checkpoint_every=options.steps,
        )
        for method in options.methods
        for seed in range(options.seeds)
    ]


def timed(runs: Sequence[RunConfig], first: int) -> Clock:
    """Train them and say when."""
    clock = Clock(first, runs[0].steps - 1_000)
    with tempfile.TemporaryDirectory() as out:
        failures = train_together(prepare(Path(out), runs), clock)
    if failures:
        raise RuntimeError(failures[0].reason)
    return clock


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--task", default="halfcheetah")
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    parser.add_argument("--preset", default="fair")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=31_000)
    parser.add_argument("--every", type=int, default=5_000)
    parser.add_argument("--episodes", type=int, default=10)
    options = parser.parse_args()
    keep_programs()
    seconds = {}
    for every in (options.steps, options.every):
        clock = timed(configs(options, every), options.every)
        seconds[every] = clock.times[1] - clock.times[0]
        steps = clock.last - clock.first
        waited = f", waited {sum(clock.waits):.1f} s for {len(clock.waits)} evaluations" if clock.waits else ""
        print(f"evaluations every {every:,}: {steps:,} steps in {seconds[every]:.1f} s{waited}", flush=True)
    share = 1 - seconds[options.steps] / seconds[options.every]
    print(f"share of evaluations: {100 * share:.1f}%")


if __name__ == "__main__":
    main()
