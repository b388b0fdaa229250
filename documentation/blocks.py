"""The kinds of generated parts of the pages (`documentation.marked`), each with what makes its tables."""

from collections.abc import Callable, Mapping

from documentation import benchmark_tables, field_tasks
from documentation.marked import remade
from documentation.metrics import every_run_table, metrics_table
from documentation.outcomes import outcome
from documentation.results import PRESETS, preset_runs, published, results_table
from documentation.settings import differences_table, presets_of, settings_table
from feasible.algorithms.stable_baselines3 import OTHERWISE, RENAMED
from feasible.catalogue.registry import METHODS, PAPERS
from feasible.paper.as_authors import DEPARTURES
from feasible.paper.items import ITEMS
from feasible.paper.printed import PRINTED


def regenerated(text: str) -> str:
    """A page with its generated parts made anew."""
    return remade(text, _MAKERS)


def departures_table(method: str) -> str:
    """What the authors' code of a method does otherwise, and on which tasks."""
    lines = ["| departure | what the authors' code does | tasks |", "|---|---|---|"]
    for name, departure in DEPARTURES.items():
        tasks = [f"`{task}`" for task in PAPERS if (task, method) in departure.of]
        if tasks:
            lines.append(f"| `{name}` | {departure.says} | {', '.join(tasks)} |")
    return "\n".join(lines)


def scores_table(method: str) -> str:
    """What a method has come to on each task: the paper's mean returns, and ours in both presets (`results/`)."""
    runs = published().all
    tasks = [task for task, algos in ITEMS["all"].items() if method in algos]
    tasks = tasks or [task for task in PAPERS if any((run.task, run.algo) == (task, method) for run in runs)]
    rows = {
        "the paper prints": [f"{PRINTED[task, method]:,.2f}" if (task, method) in PRINTED else "" for task in tasks]
    }
    for preset in PRESETS:
        found = [preset_runs([run for run in runs if run.task == task], method, preset) for task in tasks]
        rows[f"ours, {preset}"] = [str(outcome(own)) if own else "not run" for own in found]
    lines = ["| | " + " | ".join(f"`{task}`" for task in tasks) + " |", "|---|" + "---|" * len(tasks)]
    return "\n".join([*lines, *(f"| {name} | {' | '.join(cells)} |" for name, cells in rows.items())])


def methods_table(subject: str) -> str:
    """All methods with what they do and where they have settings."""
    del subject
    lines = ["| name | in papers | what it does | presets | tasks |", "|---|---|---|---|---|"]
    for method in METHODS.values():
        having = {task.name: presets_of(task, method.name) for task in PAPERS.values()}
        presets = dict.fromkeys(preset for found in having.values() for preset in found)
        tasks = ", ".join(f"`{task}`" for task, found in having.items() if found)
        row = [f"`{method.name}`", method.title, method.summary, ", ".join(presets), tasks]
        lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines)


def names_table(subject: str) -> str:
    """Settings of Stable-Baselines3 and how they are said here; a name of ours counts where an algorithm has it."""
    del subject
    rows = [(f"`{name}`", ", ".join(f"`{one}`" for one in ours)) for name, ours in RENAMED.items()]
    rows += [(f"`{name}`", instead) for name, instead in OTHERWISE.items()]
    return "\n".join(
        ["| Stable-Baselines3 | here |", "|---|---|", *(f"| {theirs} | {ours} |" for theirs, ours in rows)]
    )


_MAKERS: Mapping[str, Callable[[str], str]] = {
    "settings": settings_table,
    "differences": differences_table,
    "metrics": metrics_table,
    "every-run": lambda subject: every_run_table(),
    "departures": departures_table,
    "scores": scores_table,
    "benchmark": benchmark_tables.table,
    "results": lambda name: results_table(name, published()),
    "methods": methods_table,
    "stable-baselines3-names": names_table,
    "tasks": field_tasks.tasks_table,
    "task-scores": field_tasks.scores_table,
    "nsfnet-rules": field_tasks.rules_table,
}
