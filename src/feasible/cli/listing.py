"""`feasible tasks` and `feasible algos`: tables of what there is, for people; lists where the terminal is narrow."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console
    from rich.table import Table


NARROW = 100
"""Columns below which a table would be all gaps and broken lines."""


def tasks() -> None:
    """List the tasks and their constraints."""
    from rich.markup import escape

    from feasible.catalogue.registry import TASKS
    from feasible.catalogue.task import DEFAULT

    headings = ("obs", "action", "episode", "training")
    rows = []
    for task in TASKS.values():
        sizes = (task.observation_size, task.action_size, task.episode_length, task.steps)
        presets = f"presets: {', '.join([*task.presets, DEFAULT])}"
        words = f"[cyan]{escape(task.words)}[/cyan]" if task.words else ""
        about = "\n".join(filter(None, (escape(task.title), words, f"[dim]{escape(presets)}[/dim]")))
        rows.append((task.name, about, *("open" if size is None else f"{size:,}" for size in sizes)))
    caption = "Sizes are numbers of entries, lengths are steps. The first preset is the one that --preset omits."
    title, console = "Tasks: --task, feasible.make(name)", _console()
    if console.width < NARROW:
        named = [
            (name, about, ", ".join(map(" ".join, zip(headings, sizes, strict=True)))) for name, about, *sizes in rows
        ]
        _print_list(console, title, named, caption)
        return
    table = _table(title)
    table.add_column("task", style="bold", no_wrap=True)
    table.add_column("what it is, and the constraint on its action a", ratio=1)
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    _print_table(console, table, rows, caption)


def algos() -> None:
    """List the algorithms and what they do."""
    from feasible.catalogue.registry import METHODS

    rows = [(method.name, method.title, method.summary, method.sets) for method in METHODS.values()]
    caption = "--algo recommended: the one of them that our comparison recommends on the task (docs/beyond.md)."
    title, console = "Methods: --algo", _console()
    if console.width < NARROW:
        named = [(name, f"{shown}: {summary}", f"sets: {sets}") for name, shown, summary, sets in rows]
        _print_list(console, title, named, caption)
        return
    table = _table(title)
    table.add_column("method", style="bold", no_wrap=True)
    table.add_column("in papers", no_wrap=True)
    table.add_column("what it does", ratio=1)
    table.add_column("sets")
    _print_table(console, table, rows, caption)


def _console() -> "Console":
    from rich.console import Console

    return Console()


def _table(title: str) -> "Table":
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    return Table(title=title, title_justify="left", box=SIMPLE_HEAD)


def _print_table(console: "Console", table: "Table", rows: "Sequence[Sequence[str]]", caption: str) -> None:
    for row in rows:
        table.add_row(*row)
    table.caption, table.caption_justify = caption, "left"
    console.print(table)


def _print_list(console: "Console", title: str, rows: "Sequence[tuple[str, str, str]]", caption: str) -> None:
    """Each name with what is said of it below, indented."""
    from rich.padding import Padding

    console.print(f"[italic]{title}[/italic]", highlight=False)
    for name, about, more in rows:
        console.print(f"\n[bold]{name}[/bold]", highlight=False)
        console.print(Padding(f"{about}\n[dim]{more}[/dim]", (0, 0, 0, 2)), highlight=False)
    console.print(f"\n[dim italic]{caption}[/dim italic]", highlight=False)
