"""A report from run folders: the page, the figures and the tables, each file written whole or not at all."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from feasible.report.aggregates import comparisons
from feasible.report.charts import all_charts
from feasible.report.figures import all_figures
from feasible.report.groups import Group, group_runs, unevenness
from feasible.report.page import Words, page
from feasible.report.published import is_published, read_published
from feasible.report.runs import Note, find_runs, read_runs
from feasible.report.style import looks
from feasible.report.tables import all_tables
from feasible.run.disk.archive import write_atomically


@dataclass(frozen=True, repr=False)
class Report:
    """Where a report is, what it is of, and what was left out of it or must be known."""

    page: Path
    groups: tuple[Group, ...]
    notes: tuple[Note, ...]

    @property
    def runs(self) -> int:
        return sum(len(group.runs) for group in self.groups)

    def __repr__(self) -> str:
        """Such as `Report of 8 runs, 2 notes: report/index.html`."""
        notes = f", {len(self.notes)} note{'s' * (len(self.notes) != 1)}" if self.notes else ""
        return f"Report of {self.runs} run{'s' * (self.runs != 1)}{notes}: {self.page}"


def write_report(
    root: Path, out: Path, folders: Sequence[Path] | None = None, title: str = "", *, trial: str = "", ahead: str = ""
) -> Report:
    """Report on the runs below `root`, or on some of them, or on published results, in the folder `out`.

    `trial` says why runs compare nothing: the page begins with it and leaves out who is best. `ahead` says what to do
    next, at its end.
    """
    if folders is None and root.is_dir() and is_published(root):
        runs = read_published(root)
    else:
        runs = read_runs(find_runs(root) if folders is None else folders, root)
    groups = group_runs(runs)
    notes = (*runs.notes, *unevenness(groups))
    charts, found = all_charts(groups), comparisons(groups)
    tables = all_tables(groups, found, notes)
    appearance, titles = looks(groups), {group.method: group.title for group in groups}
    for name in ("figures", "tables"):
        (out / name).mkdir(parents=True, exist_ok=True)
    files = []
    for name, contents in all_figures(charts, found, appearance, titles):
        write_atomically(out / "figures" / name, contents)
        files.append(f"figures/{name}")
    for table in tables:
        for form, text in (("csv", table.csv()), ("md", table.markdown())):
            write_atomically(out / "tables" / f"{table.name}.{form}", text.encode())
            files.append(f"tables/{table.name}.{form}")
    said = Words(title or "Comparison", trial, ahead)
    html = page(said, groups, charts, found, notes, appearance, files)
    write_atomically(out / "index.html", html.encode())
    return Report(out / "index.html", tuple(groups), notes)
