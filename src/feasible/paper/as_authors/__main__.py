"""Prints every departure with the methods and tasks that it concerns, or trains methods with them, one by one."""

import argparse
import sys
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from feasible.paper.as_authors.departures import ALL, DEPARTURES, Departure, departures, run_config
from feasible.run.sweep.anywhere import bring_all


def print_departures() -> None:
    table = Table("departure", "what the authors' code does", "methods: tasks", show_lines=True)
    for name, departure in DEPARTURES.items():
        table.add_row(name, departure.says, concerns(departure))
    Console().print(table)


def concerns(departure: Departure) -> str:
    """The methods and tasks of a departure, tasks with the same methods in one line."""
    tasks: dict[str, list[str]] = {}
    for task in sorted({task for task, _ in departure.of}):
        methods = ", ".join(sorted(algo for where, algo in departure.of if where == task))
        tasks.setdefault(methods, []).append(task)
    return "\n".join(f"{methods}: {', '.join(where)}" for methods, where in tasks.items())


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--train", nargs="+", metavar="NAME", help="a task and the methods to train on it; without it, print all"
    )
    parser.add_argument(
        "--departures",
        nargs="+",
        metavar="NAME",
        help=f"those to train, one at a time (default: all); {ALL}: all together",
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--steps", type=int, help="of every run (default: the paper's)")
    parser.add_argument("--episodes", type=int, help="per evaluation (default: the paper's)")
    parser.add_argument(
        "--checkpoint-every",
        type=int,
        default=10_000,
        help="steps (default: 10,000; those of a large population hold gigabytes)",
    )
    parser.add_argument("--jobs", type=int, help="runs at a time (default: as many as there are cores)")
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu", help="gpu: all runs are one population")
    parser.add_argument("--out", default="runs")
    given = parser.parse_args(arguments)
    if not given.train:
        if given.departures:
            parser.error("--departures are of a method: say which with --train TASK ALGO.")
        print_departures()
        return 0
    task, *algos = given.train
    if not algos:
        parser.error("--train names a task and then methods: add one, --train TASK ALGO.")
    try:
        configs = [
            run_config(
                task,
                algo,
                seed,
                None if name == ALL else name,
                steps=given.steps,
                episodes=given.episodes,
                checkpoint_every=given.checkpoint_every,
            )
            for seed in given.seeds
            for algo in algos
            for name in given.departures or known_departures(task, algo)
        ]
        failures = bring_all(configs, given.out, Console(), given.jobs, device=given.device)
    except (ValueError, FileExistsError) as error:
        parser.error(str(error))
    for failure in failures:
        print(f"{failure.folder.path}: {failure.reason}", file=sys.stderr)
    return int(bool(failures))


def known_departures(task: str, algo: str) -> list[str]:
    """The names of all that there are, of which there must be one."""
    names = list(departures(task, algo))
    if not names:
        raise ValueError(f"Nothing is known of what the authors' code of {algo} does otherwise on {task}.")
    return names


if __name__ == "__main__":
    raise SystemExit(main())
