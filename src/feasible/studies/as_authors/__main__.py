"""Prints every departure with the methods and tasks that it concerns."""

from rich.console import Console
from rich.table import Table

from feasible.studies.as_authors.departures import DEPARTURES, Departure


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


if __name__ == "__main__":
    print_departures()
