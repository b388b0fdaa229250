"""Tables of a report, each as CSV for programs and as Markdown for people; values are ours beside the paper's."""

import csv
import html
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from feasible.paper.printed import PRINTED, TABLES, PrintedTable
from feasible.report.aggregates import Comparison
from feasible.report.groups import Group
from feasible.report.runs import Note
from feasible.report.statistics import interquartile_mean_interval
from feasible.run.plain_json import printable

Cell = str | int | float | None


@dataclass(frozen=True)
class Table:
    """A table under a name for its files; None is an empty cell."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def csv(self) -> str:
        """Numbers in full precision; no text is a formula to a spreadsheet."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        for row in (self.columns, *self.rows):
            writer.writerow([_unformulated(cell) if isinstance(cell, str) else cell for cell in row])
        return text.getvalue()

    def markdown(self) -> str:
        numeric = [any(isinstance(row[i], int | float) for row in self.rows) for i in range(len(self.columns))]
        rule = tuple("--:" if right else "---" for right in numeric)
        headings, *others = (tuple(_unmarked(shown(cell)) for cell in row) for row in (self.columns, *self.rows))
        lines = [headings, rule, *others]
        return f"## {self.title}\n\n" + "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _unformulated(text: str) -> str:
    """Text on one line that no spreadsheet computes: an apostrophe stands before what would begin a formula."""
    text = printable(text, len(text))
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text


def _unmarked(text: str) -> str:
    """Text in a Markdown table that is no markup and no HTML."""
    text = html.escape(printable(text, len(text)), quote=False)
    return re.sub(r"([\\`*\[\]|])", r"\\\1", text)


def shown(cell: Cell) -> str:
    """A cell for people: two decimals, fewer for large numbers, more for small ones."""
    if cell is None:
        return ""
    if isinstance(cell, str | int):
        return str(cell)
    size = abs(cell)
    if size != 0 and size < 0.01:
        return f"{cell:.1e}"
    return f"{cell:,.0f}" if size >= 100_000 else f"{cell:,.1f}" if size >= 1_000 else f"{cell:.2f}"


def all_tables(groups: Sequence[Group], found: Sequence[Comparison], notes: Sequence[Note]) -> list[Table]:
    """Every table that has something to say."""
    titles = {group.method: group.title for group in groups}
    tables = [_scores(groups), *(_printed(table, groups) for table in TABLES), *_over_tasks(found, titles)]
    tables += [_improvements(found, titles), _health(groups), _notes(notes)]
    return [table for table in tables if table.rows]


PAPER = 8  # the column of what the paper prints


def _scores(groups: Sequence[Group]) -> Table:
    rows = []
    for group in groups:
        scores = group.scores
        estimate = interquartile_mean_interval([scores]) if len(scores) else None
        shares = [run.infeasible_share for run in group.runs if run.infeasible_share is not None]
        rows.append(
            (
                group.task,
                group.title,
                len(scores),
                group.mean,
                group.std,
                *((estimate.value, estimate.low, estimate.high) if estimate else (None, None, None)),
                PRINTED.get((group.task, group.algo)),
                100.0 * float(np.mean(shares)) if shares else None,
            )
        )
    columns = [
        "task",
        "method",
        "seeds",
        "mean",
        "std",
        "IQM",
        "IQM low",
        "IQM high",
        "paper",
        "infeasible proposals %",
    ]
    if all(row[PAPER] is None for row in rows):  # none of them is in the paper
        columns.pop(PAPER)
        rows = [(*row[:PAPER], *row[PAPER + 1 :]) for row in rows]
    return Table(
        "scores", "Scores: mean return of each run's last 10 evaluations, over seeds", tuple(columns), tuple(rows)
    )


def _printed(table: PrintedTable, groups: Sequence[Group]) -> Table:
    """The paper's own layout. Its rows first, then variants of the same methods."""
    algos = {algo for row in table.rows.values() for algo, _ in row.values()}
    tasks = [task for task in table.tasks if any(g.task == task and g.algo in algos for g in groups)]
    variants = list(dict.fromkeys(_variant(group) for group in groups if group.algo in algos and group.task in tasks))
    rows = []
    for title, row in table.rows.items():
        for variant in variants:
            cells: list[Cell] = []
            for task in tasks:
                algo, printed = row.get(task, ("", None))
                own = [g for g in groups if (g.task, g.algo, _variant(g)) == (task, algo, variant) and len(g.scores)]
                cells += [own[0].mean, own[0].std, printed] if own else [None, None, printed]
            if any(cell is not None for i, cell in enumerate(cells) if i % 3 == 0):
                rows.append((f"{title} ({variant})" if variant else title, *cells))
    columns = [f"{task}{what}" for task in tasks for what in ("", " std", " paper")]
    return Table(table.name, table.title, ("method", *columns), tuple(rows))


def _variant(group: Group) -> str:
    return group.method.partition("+")[2]


def _over_tasks(found: Sequence[Comparison], titles: dict[str, str]) -> list[Table]:
    columns = ("tasks", "method", "IQM", "low", "high")
    rows = [
        (", ".join(one.tasks), titles[method], estimate.value, estimate.low, estimate.high)
        for one in found
        if len(one.tasks) > 1
        for method, estimate in one.interquartile_means.items()
    ]
    title = "Over tasks: inter-quartile means with 95% intervals; the paper's DDPG+Projection is 0, its NFWPO 1"
    return [Table("over-tasks", title, columns, tuple(rows))]


def _improvements(found: Sequence[Comparison], titles: dict[str, str]) -> Table:
    rows = [
        (", ".join(one.tasks), titles[first], titles[second], estimate.value, estimate.low, estimate.high)
        for one in found
        for (first, second), estimate in one.improvements.items()
    ]
    columns = ("tasks", "method", "beats", "probability", "low", "high")
    title = "Probability of improvement: that a run of one method scores higher than one of another, with 95% intervals"
    return Table("improvement", title, columns, tuple(rows))


def _health(groups: Sequence[Group]) -> Table:
    rows = []
    for group in groups:
        for run in group.runs:
            versions = run.versions()
            rows.append(
                (
                    run.path,
                    "finished" if run.finished else "not finished",
                    run.reached,
                    run.steps,
                    run.score,
                    run.executed_violation,
                    run.speed,
                    versions.get("feasible"),
                    versions.get("jax"),
                    run.machine().get("device"),
                )
            )
    columns = ("run", "state", "step", "of", "score", "executed violation", "steps/s", "feasible", "jax", "device")
    return Table("health", "Runs", columns, tuple(rows))


def _notes(notes: Sequence[Note]) -> Table:
    rows = tuple((note.about, note.says, "left out" if note.left_out else "") for note in notes)
    return Table("notes", "What to know before comparing", ("about", "what", ""), rows)
