"""`feasible tasks` and `feasible algos`: tables of what there is, for people."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table


def tasks() -> None:
    """List the tasks and their constraints."""
    from feasible.catalogue.registry import TASKS
    from feasible.catalogue.task import DEFAULT

    table = _table("Tasks: --task, feasible.make(name)")
    table.add_column("task", style="bold", no_wrap=True)
    table.add_column("what it is, and the constraint on its action a", ratio=1)
    for heading in ("obs", "action", "episode", "training"):
        table.add_column(heading, justify="right", no_wrap=True)
    for task in TASKS.values():
        sizes = (task.observation_size, task.action_size, task.episode_length, task.steps)
        presets = f"presets: {', '.join([*task.presets, DEFAULT])}"
        about = f"{task.title}\n[cyan]{task.words}[/cyan]\n[dim]{presets}[/dim]"
        table.add_row(task.name, about, *(f"{size:,}" for size in sizes))
    _print(table, "Sizes are numbers of entries, lengths are steps. The first preset is the one that --preset omits.")


def algos() -> None:
    """List the algorithms and what they do."""
    from feasible.catalogue.registry import METHODS

    table = _table("Methods: --algo")
    table.add_column("method", style="bold", no_wrap=True)
    table.add_column("in papers", no_wrap=True)
    table.add_column("what it does", ratio=1)
    table.add_column("sets")
    for method in METHODS.values():
        table.add_row(method.name, method.title, method.summary, method.sets)
    _print(table, "--algo recommended: the one of them that our comparison recommends on the task (docs/beyond.md).")


def _table(title: str) -> "Table":
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    return Table(title=title, title_justify="left", box=SIMPLE_HEAD)


def _print(table: "Table", caption: str) -> None:
    from rich.console import Console

    table.caption, table.caption_justify = caption, "left"
    Console().print(table)
