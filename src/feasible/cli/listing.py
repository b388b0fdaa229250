"""`feasible tasks` and `feasible algos`: tables of what there is, for people; lists where the terminal is narrow."""

from typing import TYPE_CHECKING, Annotated

import tyro

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console
    from rich.table import Table

    from feasible.catalogue.task import Task


NARROW = 100
"""Columns below which a table would be all gaps and broken lines."""


def tasks(names: Annotated[tuple[str, ...], tyro.conf.Positional] = ()) -> None:
    """List the tasks and their constraints.

    Args:
        names: Tasks to list; write your own as module:name. If omitted: all built-in tasks and those of packages.
    """
    from rich.markup import escape

    from feasible.catalogue.elsewhere import announced
    from feasible.catalogue.registry import TASKS, find_task

    headings = ("obs", "action", "episode", "training")
    listed = {name: find_task(name) for name in names} if names else TASKS
    rows = [(name, *_about(task)) for name, task in listed.items()]
    if not names:
        others = {name: place for name, place in announced().items() if name not in TASKS}
        rows += [(escape(name), f"{escape(place)}, of a package", *[""] * 4) for name, place in others.items()]
    caption = "Sizes are numbers of entries, lengths are steps. Without --preset a run takes the first preset."
    title, console = "Tasks: --task, feasible.make(name)", _console()
    if console.width < NARROW:
        named = [
            (name, about, _sizes(headings[:3], sizes[:3]) + "\n" + _sizes(headings[3:], sizes[3:]))
            for name, about, *sizes in rows
        ]
        _print_list(console, title, named, caption)
        return
    table = _table(title)
    table.add_column("task", style="bold", no_wrap=True)
    table.add_column("what it is, and the constraint on its action a", ratio=1)
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    _print_table(console, table, rows, caption)


def _sizes(headings: "Sequence[str]", sizes: "Sequence[str]") -> str:
    return ", ".join(f"{heading} {size}" for heading, size in zip(headings, sizes, strict=True) if size)


def _about(task: "Task") -> tuple[str, ...]:
    """What is said of a task, and its sizes and lengths."""
    from rich.markup import escape

    from feasible.catalogue.task import DEFAULT
    from feasible.extras import installed

    sizes = (task.observation_size, task.action_size, task.episode_length, task.steps)
    presets = f"presets: {', '.join([*task.presets, DEFAULT])}"
    if task.extra is not None and not installed(task.extra):
        presets += f"\nneeds: pip install 'feasible[{task.extra}]'"
    words = f"[cyan]{escape(task.words)}[/cyan]" if task.words else ""
    about = "\n".join(filter(None, (escape(task.title), words, f"[dim]{escape(presets)}[/dim]")))
    return about, *("open" if size is None else f"{size:,}" for size in sizes)


def algos(task: str | None = None) -> None:
    """List the algorithms and what they do.

    Args:
        task: Show the recommended algorithm for this task, which may be your own (module:name).
    """
    from feasible.catalogue.registry import METHODS

    rows = [(method.name, method.title, method.summary, method.sets) for method in METHODS.values()]
    caption = "--algo recommended: the method that our comparison recommends for the task (docs/recommended.md)."
    if task is not None:
        caption = _recommended(task)
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


def _recommended(task: str) -> str:
    from feasible.catalogue.recommended import choice_on
    from feasible.catalogue.registry import find_task

    find_task(task)
    choice = choice_on(task)
    changes = "".join(f", {name}={value}" for name, value in choice.changes.items())
    return f"--algo recommended on {task}: {choice.algo}{changes}, preset {choice.preset} (docs/recommended.md)."


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
        said = f"{about}\n[dim]{more.strip()}[/dim]" if more.strip() else about
        console.print(Padding(said, (0, 0, 0, 2), expand=False), highlight=False)
    console.print(f"\n[dim italic]{caption}[/dim italic]", highlight=False)
