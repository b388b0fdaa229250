"""Trains the missing cells of the field's benchmark (docs/benchmark.md): those of its plan that `results/` lacks.

    python -m benchmarks.field --out runs [--stage NAME] [--tasks NAME ...] [--methods NAME ...]
                               [--jobs N | --device gpu] [--list]
    python -m documentation --add runs --figures

Stages come from `documentation/plan.py`: `selection` if none is named, `choice` with the candidates, `study`, `final`,
`relative`, `raw`, `scaled`, `smoke`, `base` and `units`. A cell whose runs have diverged is trained anew only
if its method is named. On a GPU the methods of a task are one population. Those of one group share its kernels, every
further group costs as much as the first: TD3's methods in one setting are one group (two on `bss-5` and `portfolio`),
all other methods a group each.
"""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence

from documentation.benchmark import Benchmark, benchmark
from documentation.plan import DIVERGED, PRESET, STAGES
from feasible.run.config import RunConfig
from feasible.run.launch import configure

EPISODES = 5
MORE_EPISODES: Mapping[str, int] = {"reacher": 10, "bss-5": 10, "portfolio": 50}
"""Where episodes have fewer than 1,000 steps."""


def eval_every(steps: int) -> int:
    """Steps between evaluations; fewer evaluations of long runs, since an episode may be as long as 1,000 steps."""
    return 5_000 if steps <= 300_000 else 10_000


def missing(
    found: Benchmark, tasks: Sequence[str] | None = None, methods: Sequence[str] | None = None
) -> list[RunConfig]:
    """The runs of all cells that are not complete, task by task."""
    stage, left_out = found.stage, () if methods else DIVERGED
    wanted = [
        (task, method)
        for task in stage.tasks
        for method in stage.entries
        if (tasks is None or task in tasks)
        and (methods is None or method in methods)
        and (task, method) not in left_out
        and not stage.refused(task, method)
    ]
    return [
        configure(
            task,
            stage.entries[method].algo,
            seed,
            steps=stage.steps[task],
            preset=PRESET,
            variant=stage.entries[method].variants[0],
            eval_every=eval_every(stage.steps[task]),
            episodes=MORE_EPISODES.get(task, EPISODES),
            changes=stage.entries[method].settings,
        )
        for task, method in wanted
        if (task, method) not in found.complete
        for seed in stage.seeds
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default="runs")
    parser.add_argument("--stage", choices=STAGES, default="selection")
    parser.add_argument("--tasks", nargs="+", metavar="NAME", help="of the stage; all if not given")
    parser.add_argument("--methods", nargs="+", metavar="NAME", help="rows of the stage; all if not given")
    parser.add_argument("--jobs", type=int, help="runs at a time; as many as there are cores if not given")
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--list", action="store_true", help="name the missing runs only")
    arguments = parser.parse_args()
    stage = STAGES[arguments.stage]
    for option, known in (("tasks", stage.tasks), ("methods", stage.entries)):
        if unknown := set(getattr(arguments, option) or ()) - set(known):
            parser.error(f"--{option}: the stage {arguments.stage} has no {min(unknown)!r}, but {', '.join(known)}.")
    configs = missing(benchmark(arguments.stage), arguments.tasks, arguments.methods)
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
