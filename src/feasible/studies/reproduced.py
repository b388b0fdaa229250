"""The page of the reproduction: its tables and figures follow from the published results, and from nothing else.

    python -m feasible.studies.reproduced                    # results/ to docs/reproduction.md and its figures
    python -m feasible.studies.reproduced --add RUNS ...     # the results of run folders first into results/

A table stands in the page between `<!-- table: NAME -->` and `<!-- end -->`, where NAME is a task (the paper's values
beside ours in both presets) or TASK/ALGO (variants of one method, one departure each).
"""

import argparse
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float64

from feasible.methods import METHODS
from feasible.report.charts import all_charts
from feasible.report.figures import all_figures
from feasible.report.groups import group_runs
from feasible.report.paper import PRINTED, REFERENCES
from feasible.report.published import publish, read_published
from feasible.report.runs import SCORED, Run, Runs, find_runs, read_runs
from feasible.report.style import looks
from feasible.run.archive import write_atomically
from feasible.tasks import TASKS

RESULTS, PAGE, FIGURES = Path("results"), Path("docs/reproduction.md"), Path("docs/figures/reproduction")
PRESETS = ("paper", "fair")
_BLOCK = re.compile(r"(<!-- table: (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)


@dataclass(frozen=True)
class Outcome:
    """What the seeds of one method have come to."""

    scores: Float64[np.ndarray, " n"]
    """Mean return of each seed's last evaluations, at the step that it has reached."""
    share: float
    """Of proposals that were infeasible, the mean over seeds."""
    violation: float
    """The largest of an executed action, in training and evaluation."""
    reached: int
    steps: int

    def __str__(self) -> str:
        seeds = "" if len(self.scores) == 5 else f"; {len(self.scores)} seed{'s' if len(self.scores) > 1 else ''}"
        steps = "" if self.reached >= self.steps else f"; {self.reached:,} of {self.steps:,} steps"
        return f"{_number(self.scores.mean())} ± {_number(self.scores.std())}{seeds}{steps}"


def outcome(runs: Sequence[Run]) -> Outcome:
    """Of the runs of one method, all seeds at the step that the slowest has reached."""
    reached = min(run.reached for run in runs)
    scores = []
    for run in runs:
        returns = run.series["eval/return"]
        scores.append(returns.values[returns.steps <= reached][-SCORED:].mean())
    shares = [share for run in runs if (share := run.infeasible_share) is not None]
    violation = max((run.executed_violation or 0.0) for run in runs)
    return Outcome(np.array(scores), float(np.mean(shares)), violation, reached, runs[0].steps)


def task_table(task: str, runs: Runs) -> str:
    """Rows are methods; columns what the paper prints, and our score and infeasible proposals in each preset."""
    own = [run for run in runs.all if run.task == task]
    rows = []
    for algo in [algo for algo in METHODS if (task, algo) in PRINTED or any(run.algo == algo for run in own)]:
        cells = [METHODS[algo].title, _number(PRINTED[task, algo]) if (task, algo) in PRINTED else ""]
        for preset in PRESETS:
            found = outcome(members) if (members := _preset_runs(own, algo, preset)) else None
            cells += [str(found), f"{found.share:.1%}"] if found else ["not run", ""]
        rows.append(cells)
    rows += [[label, "", _number(level), "", _number(level), ""] for label, level in REFERENCES.get(task, ())]
    columns = ["method", "paper prints", "ours, paper", "infeasible", "ours, fair", "infeasible"]
    return _markdown(columns, rows)


def variants_table(task: str, algo: str, runs: Runs) -> str:
    """Rows are the variants of one method on one task."""
    own = [run for run in runs.all if (run.task, run.algo) == (task, algo)]
    rows = []
    for variant in dict.fromkeys(run.variant for run in own):
        found = outcome([run for run in own if run.variant == variant])
        rows.append([variant or "paper", str(found), f"{found.share:.1%}"])
    return _markdown(["variant", "score", "infeasible"], rows)


def rewritten(page: str, runs: Runs) -> str:
    """The page with its tables made anew."""

    def table(block: re.Match[str]) -> str:
        task, _, algo = block[2].partition("/")
        return block[1] + (variants_table(task, algo, runs) if algo else task_table(task, runs)) + block[3]

    return _BLOCK.sub(table, page)


def figures(runs: Runs) -> Iterator[tuple[str, bytes]]:
    """The SVG files of every task and preset, by name."""
    for preset in PRESETS:
        groups = group_runs(Runs(tuple(_of_preset(runs.all, preset)), ()))
        titles = {group.method: group.title for group in groups}
        for name, contents in all_figures(all_charts(groups), (), looks(groups), titles):
            if name.endswith(".svg"):
                yield f"{preset}-{name}", contents


def _of_preset(runs: Sequence[Run], preset: str) -> list[Run]:
    """The runs of a preset without other changes; a task whose methods the paper treats alike has one for both."""
    same = {name for name, task in TASKS.items() if task.fair == task.paper}
    variants = {"paper": ("",), "fair": ("fair",)}[preset]
    return [run for run in runs if run.variant in variants or (run.task in same and not run.variant)]


def _preset_runs(runs: Sequence[Run], algo: str, preset: str) -> list[Run]:
    return [run for run in _of_preset(runs, preset) if run.algo == algo]


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2f}"


def _markdown(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [columns, ["---"] + ["--:"] * (len(columns) - 1), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--add", type=Path, nargs="+", default=[], metavar="RUNS", help="folders of runs to publish")
    for folder in parser.parse_args().add:
        for path in publish(read_runs(find_runs(folder), folder).all, RESULTS):
            print(f"{path}")
    runs = read_published(RESULTS)
    write_atomically(PAGE, rewritten(PAGE.read_text(), runs).encode())
    FIGURES.mkdir(parents=True, exist_ok=True)
    for name, contents in figures(runs):
        write_atomically(FIGURES / name, contents)
    print(f"{len(runs.all)} runs: {PAGE}, {FIGURES}")


if __name__ == "__main__":
    main()
