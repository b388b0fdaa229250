"""The tables and figures of results: they follow from the published results (`results/`), and from nothing else."""

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from documentation import family
from documentation.marked import ROOT
from documentation.outcomes import number, outcome
from feasible.catalogue.registry import METHODS, PAPERS, TASKS, algorithm_of
from feasible.paper.items import ITEMS
from feasible.paper.printed import PRINTED, REFERENCES
from feasible.report.charts import all_charts
from feasible.report.figures import all_figures
from feasible.report.groups import group_runs
from feasible.report.published import publish, read_published
from feasible.report.runs import Run, Runs, find_runs, in_order, read_runs
from feasible.report.style import looks
from feasible.run.disk.archive import write_atomically

RESULTS, FIGURES = ROOT / "results", ROOT / "docs" / "figures" / "reproduction"
PRESETS: tuple[str, ...] = ("paper", "fair")


@cache
def published() -> Runs:
    """The published results; none of them may be left out."""
    runs = read_published(RESULTS)
    for note in runs.notes:
        raise ValueError(f"{RESULTS}: {note.about} {note.says}.")
    return runs


def add_results(folder: Path) -> None:
    """Publish the results of a folder of runs."""
    for path in publish(read_runs(find_runs(folder), folder).all, RESULTS):
        print(f"{path}")


def write_figures() -> None:
    """Draw every figure of the published results anew."""
    FIGURES.mkdir(parents=True, exist_ok=True)
    for name, contents in figures(published()):
        write_atomically(FIGURES / name, contents)


def task_table(task: str, runs: Runs) -> str:
    """Rows are methods; columns what the paper prints, and our score and infeasible proposals in each preset."""
    own = [run for run in runs.all if run.task == task]
    rows = []
    for algo in [algo for algo in METHODS if algo in ITEMS["all"][task]]:
        cells = [METHODS[algo].title, number(PRINTED[task, algo]) if (task, algo) in PRINTED else ""]
        for preset in PRESETS:
            found = outcome(members) if (members := preset_runs(own, algo, preset)) else None
            cells += [str(found), f"{found.infeasible:.1%}"] if found else ["not run", ""]
        rows.append(cells)
    rows += [[label, "", number(level), "", number(level), ""] for label, level in REFERENCES.get(task, ())]
    columns = ["method", "paper prints", "ours, paper", "infeasible", "ours, fair", "infeasible"]
    return markdown(columns, rows)


def variants_table(task: str, algo: str, variants: Sequence[str], runs: Runs) -> str:
    """Rows are variants of one method on one task: at the step that all have reached, and at their ends."""
    own = [run for run in runs.all if (run.task, run.algo) == (task, algo)]
    groups = {name: [run for run in own if (run.variant or "paper") == name] for name in variants}
    common, rows = min(run.reached for members in groups.values() for run in members), []
    for name, members in groups.items():
        then = outcome(members, common)
        rows.append([name, then.score, f"{then.infeasible:.1%}", str(outcome(members))])
    return markdown(["variant", f"at {common:,} steps", "infeasible", "at its end"], rows)


def family_table(task: str, runs: Runs, least: int | None = None) -> str:
    """Rows are the DDPG family, the best first, at the step that all who reached the least have reached."""
    found = family.members(task, runs.all, least)
    columns = ["method", f"score at {found[0].outcome.reached:,} steps", "infeasible", "without exploration"]
    return markdown(columns, family.rows(found))


def results_table(name: str, runs: Runs) -> str:
    """The table that a page asks for by name.

    TASK has the paper's values beside ours in both presets; TASK/ALGO/VARIANT,VARIANT... variants of one method, where
    `paper` is the one without a name; TASK/family the DDPG family in the fair settings, TASK/family/STEP those of it
    who reached the step.
    """
    match name.split("/"):
        case [task, "family"]:
            return family_table(task, runs)
        case [task, "family", least]:
            return family_table(task, runs, int(least))
        case [task, algo, variants]:
            return variants_table(task, algo, variants.split(","), runs)
        case [task]:
            return task_table(task, runs)
        case _:
            raise ValueError(f"{name!r} names no table.")


def figures(runs: Runs) -> Iterator[tuple[str, bytes]]:
    """The SVG files of every task and preset, by name, and those of the DDPG family."""
    of_paper = [run for run in runs.all if run.algo in ITEMS["all"].get(run.task, ())]
    for preset in PRESETS:
        groups = group_runs(Runs(tuple(_of_preset(of_paper, preset)), ()))
        titles = {group.method: group.title for group in groups}
        for name, contents in all_figures(all_charts(groups), (), looks(groups), titles, ("svg",)):
            yield f"{preset}-{name}", contents
    for task in PAPERS:
        yield from family.figures(task, family.members(task, runs.all))


def _of_preset(runs: Sequence[Run], preset: str) -> list[Run]:
    """The runs of a preset without other changes; of a method whose settings are the same in both, those of either."""
    variant, other = {"paper": ("", "fair"), "fair": ("fair", "")}[preset]
    own = [run for run in runs if run.variant == variant]
    known = {(run.task, run.algo) for run in own}
    lent = [run for run in runs if run.variant == other and (run.task, run.algo) not in known]
    return in_order([*own, *(run for run in lent if _same_in_both(run.task, run.algo))])


@cache
def _same_in_both(task: str, algo: str) -> bool:
    one, other = (algorithm_of(TASKS[task], algo, preset) for preset in PRESETS)
    return one == other


def preset_runs(runs: Sequence[Run], algo: str, preset: str) -> list[Run]:
    """Those of one method among a task's runs, in one preset and without other changes."""
    return [run for run in _of_preset(runs, preset) if run.algo == algo]


def markdown(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table whose first column is text, and the others numbers."""
    lines = [columns, ["---"] + ["--:"] * (len(columns) - 1), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
