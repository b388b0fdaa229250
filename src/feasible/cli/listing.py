"""Tables of what there is, for people: the tasks with their constraints, and the methods."""

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from feasible.catalogue.registry import METHODS, TASKS
from feasible.catalogue.task import DEFAULT


def print_tasks(console: Console | None = None) -> None:
    """Print the table of the tasks."""
    table = Table(title="Tasks: --task, feasible.make(name)", title_justify="left", box=SIMPLE_HEAD)
    table.add_column("task", style="bold", no_wrap=True)
    table.add_column("what it is, and the constraint on its action a", ratio=1)
    for heading in ("obs", "action", "episode", "training"):
        table.add_column(heading, justify="right", no_wrap=True)
    for task in TASKS.values():
        sizes = (task.observation_size, task.action_size, task.episode_length, task.steps)
        presets = f"presets: {', '.join([*task.presets, DEFAULT])}"
        about = f"{task.title}\n[cyan]{task.words}[/cyan]\n[dim]{presets}[/dim]"
        table.add_row(task.name, about, *(f"{size:,}" for size in sizes))
    table.caption = "Sizes are numbers of entries, lengths are steps. The first preset is the one that --preset omits."
    table.caption_justify = "left"
    (console or Console()).print(table)


def print_algos(console: Console | None = None) -> None:
    """Print the table of the methods."""
    table = Table(title="Methods: --algo", title_justify="left", box=SIMPLE_HEAD)
    table.add_column("method", style="bold", no_wrap=True)
    table.add_column("in papers", no_wrap=True)
    table.add_column("what it does", ratio=1)
    table.add_column("sets")
    for method in METHODS.values():
        table.add_row(method.name, method.title, method.summary, method.sets)
    table.caption = "--algo recommended: the one of them that our comparison recommends on the task (docs/beyond.md)."
    table.caption_justify = "left"
    (console or Console()).print(table)
