"""Prints every departure with the methods and tasks that it concerns, or trains a method with them, one by one."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from feasible.paper.as_authors.departures import ALL, DEPARTURES, Departure, departures, run_config
from feasible.run.sweep.processes import Processes
from feasible.run.sweep.sweep import prepare, run_all


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
    parser.add_argument("--train", nargs=2, metavar=("TASK", "ALGO"), help="train this method; without it, print all")
    parser.add_argument(
        "--departures",
        nargs="+",
        metavar="NAME",
        help=f"those to train, one at a time (default: all); {ALL}: all together",
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--steps", type=int, help="of every run (default: the paper's)")
    parser.add_argument("--jobs", type=int, help="runs at a time (default: as many as there are cores)")
    parser.add_argument("--out", type=Path, default=Path("runs"))
    given = parser.parse_args(arguments)
    if not given.train:
        if given.departures:
            parser.error("--departures are of a method: say which with --train TASK ALGO.")
        print_departures()
        return 0
    task, algo = given.train
    try:
        crew = Processes(given.jobs)
        names = given.departures or list(departures(task, algo))
        if not names:
            raise ValueError(f"Nothing is known of what the authors' code of {algo} does otherwise on {task}.")
        alone = [None if name == ALL else name for name in names]
        configs = [run_config(task, algo, seed, name, given.steps) for seed in given.seeds for name in alone]
        folders = prepare(given.out, configs)
    except (ValueError, FileExistsError) as error:
        parser.error(str(error))
    return int(bool(run_all(folders, Console(), crew)))


if __name__ == "__main__":
    raise SystemExit(main())
