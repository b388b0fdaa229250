"""Trains the missing cells of the field's benchmark (docs/benchmark.md): those of its plan that `results/` lacks.

    python -m benchmarks.field --out runs [--tasks NAME ...] [--methods NAME ...] [--jobs N | --device gpu] [--list]
    python -m documentation --add runs --figures

On a GPU the methods of a task are one population. Those of one group share its kernels, every further group costs as
much as the first: TD3's methods are one group (two on `bss-5` and `portfolio`), all other methods a group each.
"""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence

from documentation.benchmark import METHODS, PRESET, REFUSED, SEEDS, STEPS, TASKS, VARIANTS, Benchmark, benchmark
from feasible.run.config import RunConfig
from feasible.run.launch import configure

EVAL_EVERY, EPISODES = 5_000, 5
MORE_EPISODES: Mapping[str, int] = {"reacher": 10, "bss-5": 10, "portfolio": 50}
"""Where episodes have fewer than 1,000 steps."""


def missing(found: Benchmark, tasks: Sequence[str] = TASKS, methods: Sequence[str] = METHODS) -> list[RunConfig]:
    """The runs of all cells that are not complete, task by task."""
    wanted = [(task, method) for task in tasks for method in methods if (task, method) not in REFUSED]
    return [
        configure(
            task,
            method,
            seed,
            steps=STEPS,
            preset=PRESET,
            variant=VARIANTS[0],
            eval_every=EVAL_EVERY,
            episodes=MORE_EPISODES.get(task, EPISODES),
        )
        for task, method in wanted
        if (task, method) not in found.complete
        for seed in SEEDS
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default="runs")
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=TASKS)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--jobs", type=int, help="runs at a time; as many as there are cores if not given")
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--list", action="store_true", help="name the missing runs only")
    arguments = parser.parse_args()
    configs = missing(benchmark(STEPS), arguments.tasks, arguments.methods)
    for config in configs:
        print(config.name)
    if configs and not arguments.list:
        from rich.console import Console

        from feasible.run.sweep.anywhere import bring_all

        for failure in bring_all(configs, arguments.out, Console(), arguments.jobs, device=arguments.device):
            print(failure.folder.path, failure.reason)


if __name__ == "__main__":
    if "gpu" not in sys.argv:
        from feasible.run.sweep.processes import use_one_thread

        os.environ.setdefault("JAX_PLATFORMS", "cpu")
        use_one_thread()
    main()
