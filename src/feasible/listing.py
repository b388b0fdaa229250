"""Tables of what there is, for people: the tasks with their constraints, and the paper's settings for each."""

from collections.abc import Callable, Mapping

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from feasible.methods import METHODS
from feasible.tasks import TASKS, Settings

Cell = Callable[[Settings], str]


def print_tasks(console: Console | None = None) -> None:
    """Print both tables of the tasks."""
    console = console or Console()
    console.print(_task_table(), _settings_table())


def print_algos(console: Console | None = None) -> None:
    """Print the table of the algorithms."""
    table = Table(title="Algorithms: --algo", title_justify="left", box=SIMPLE_HEAD)
    table.add_column("algorithm", style="bold", no_wrap=True)
    table.add_column("in the paper", no_wrap=True)
    table.add_column("what it does", ratio=1)
    table.add_column("tasks")
    for method in METHODS.values():
        names = ", ".join(task.name for task in TASKS.values() if method.name in task.paper.batch_size)
        table.add_row(method.name, method.title, method.summary, names)
    table.caption = "--algo recommended: the one of them that our comparison recommends on the task (docs/beyond.md)."
    table.caption_justify = "left"
    (console or Console()).print(table)


def _task_table() -> Table:
    table = Table(title="Tasks: feasible.make(name)", title_justify="left", box=SIMPLE_HEAD, show_lines=False)
    table.add_column("task", style="bold", no_wrap=True)
    table.add_column("what it is, and the constraint on its action a", ratio=1)
    for heading in ("obs", "action", "steps"):
        table.add_column(heading, justify="right", no_wrap=True)
    for task in TASKS.values():
        sizes = (str(task.observation_size), str(task.action_size), str(task.episode_length))
        table.add_row(task.name, f"{task.title}\n[cyan]{task.constraint}[/cyan]", *sizes)
    return table


def _settings_table() -> Table:
    table = Table(
        title="The paper's settings", title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False
    )
    table.caption = "Two values or a range: they differ by method; feasible.tasks.TASKS has them all."
    table.caption_justify = "left"
    table.add_column("", no_wrap=True)
    for name in TASKS:
        table.add_column(name.replace("-box", "\n-box"), justify="right", no_wrap=True)
    for label, cell in _ROWS.items():
        table.add_row(label, *(cell(task.paper) for task in TASKS.values()))
    return table


def _count(value: int) -> str:
    """1,000,000 as 1M and 5,000 as 5k, so that six tasks fit beside each other."""
    for unit, letter in ((1_000_000, "M"), (1_000, "k")):
        if value % unit == 0:
            return f"{value // unit}{letter}"
    return str(value)


def _by_method(values: Mapping[str, int]) -> str:
    known = sorted(set(values.values()))
    return "/".join(str(value) for value in known) if len(known) < 3 else f"{known[0]}-{known[-1]}"


_ROWS: dict[str, Cell] = {
    "training steps": lambda paper: _count(paper.training_steps),
    "warm-up steps": lambda paper: _count(paper.warmup_steps),
    "evaluated every": lambda paper: _count(paper.evaluation_interval),
    "episodes each": lambda paper: _count(paper.evaluation_episodes),
    "replay size": lambda paper: _count(paper.replay_size),
    "batch size": lambda paper: _by_method(paper.batch_size),
    "actor every": lambda paper: _by_method(paper.actor_interval),
    "critic every": lambda paper: _count(paper.critic_interval),
    "Frank-Wolfe step": lambda paper: f"{paper.frank_wolfe_step:g}",
    "actor rate": lambda paper: f"{paper.actor_learning_rate:g}",
    "critic rate": lambda paper: f"{paper.critic_learning_rate:g}",
    "target ratio": lambda paper: f"{paper.target_ratio:g}",
    "discount": lambda paper: f"{paper.discount:g}",
    "exploration": lambda paper: f"eps {paper.epsilon:g}" if paper.noise is None else f"std {paper.noise:g}",
    "shaping weight": lambda paper: f"{paper.shaping_weight:.3g}",
    "hidden layers": lambda paper: "-".join(str(units) for units in paper.hidden_layers),
    "actor's output": lambda paper: paper.actor_output,
}
