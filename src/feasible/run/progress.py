"""What a person sees of training: a bar with speed, return, violation, failures and end, and a table of evaluations."""

import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Self

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

from feasible.compiling import heard_by
from feasible.run.config import RunConfig
from feasible.run.sweep.overview import expected_end
from feasible.run.watch import Line, Watcher

NARROW = 100
"""Columns below which a run's name stands above its bar, not beside it."""


class ProgressBar(Watcher):
    """One live view, a bar for each run or population in turn; use as a context.

    A run alone is shown with its last return and violation and, at the end, with its evaluations.
    """

    def __init__(self, console: Console):
        self._console, self._narrow = console, console.width < NARROW
        about = [] if self._narrow else [TextColumn("{task.description}", markup=False)]
        self._progress = Progress(
            *about,
            BarColumn(10 if self._narrow else 40),
            MofNCompleteColumn(),
            TextColumn("{task.fields[news]}"),
            console=console,
            refresh_per_second=4,
        )
        self._evaluations: list[Line] = []
        self._hearing, self._compiling = ExitStack(), False

    def __enter__(self) -> Self:
        self._progress.start()
        self._hearing.enter_context(heard_by(self._tell_compiling))
        return self

    def __exit__(self, *error: object) -> None:
        self._hearing.close()
        self._progress.stop()
        if self._evaluations:
            self._console.print(evaluation_table(self._evaluations))

    def begin(self, configs: Sequence[RunConfig], step: int, memory: str) -> None:
        self._config, self._agents, self._failed = configs[0], len(configs), 0
        self._rate = self._seconds = 0.0
        self._together = bool(memory)
        failed = "0 failed" if self._together else ""
        self._news = {"speed": "", "return": "", "failed": failed, "end": "", "violation": ""}
        about = f"{self._config.task}, {self._agents} agents" if memory else self._config.name
        if memory:
            self._console.print(f"{self._config.task}: {memory}")
        if self._narrow:
            self._console.print(about, markup=False, highlight=False)
        self._bar = self._progress.add_task(about, total=self._config.steps, completed=step, news="compiling")

    def warned(self, says: str) -> None:
        self._console.print(says, markup=False)

    def advanced(self, step: int) -> None:
        # The bar's own clock draws it; a number is all it needs, and not at every step.
        if step % 64 == 0 or step == self._config.steps:
            self._progress.update(self._bar, completed=step)
            if self._compiling:
                self._tell_news()

    def logged(self, config: RunConfig, line: Line) -> None:
        rate, step = line.get("time/steps_per_second"), line["step"]
        if isinstance(rate, float) and isinstance(step, int):
            self._rate = rate
            self._news["speed"] = self._speed()
            self._news["end"] = self._end(step)
            self._progress.update(self._bar, completed=step)
        if not self._together:
            self._tell_return(line)
        self._tell_news()

    def evaluated(self, step: int, seconds: float) -> None:
        self._seconds = seconds

    def failed(self, config: RunConfig, reason: str) -> None:
        self._failed += 1
        self._news["failed"] = f"{self._failed} failed"
        self._console.print(f"{config.name} failed: {reason}", style="red", markup=False)

    def _tell_news(self) -> None:
        self._compiling = False
        self._progress.update(self._bar, news=", ".join(text for text in self._news.values() if text))

    def _tell_compiling(self, what: str) -> None:
        if self._progress.tasks:
            self._compiling = True
            self._progress.update(self._bar, news=f"compiling {what}")

    def _speed(self) -> str:
        living = self._agents - self._failed
        return f"{self._rate * living:,.0f} agent-steps/s" if self._together else f"{self._rate:.0f} steps/s"

    def _end(self, step: int) -> str:
        steps, every = self._config.steps, self._config.eval_every
        if step >= steps:
            return ""
        evaluations = -(-steps // every) - step // every
        return expected_end((steps - step) / self._rate + evaluations * self._seconds, time.time())

    def _tell_return(self, line: Line) -> None:
        if "violation/executed_max" in line:
            self._news["violation"] = f"violation {line['violation/executed_max']:.0e}"
        if "eval/return" in line:
            self._evaluations.append(line)
            self._news["return"] = f"return {line['eval/return']:.1f}"


def evaluation_table(lines: list[Line], last: int = 12) -> Table:
    """The last evaluations of a run, one a row."""
    title = "Evaluations" if len(lines) <= last else f"The last {last} of {len(lines)} evaluations"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name in ("step", "mean return", "lowest", "highest", "violation"):
        table.add_column(name, justify="right")
    for line in lines[-last:]:
        returns = line["eval/returns"]
        assert isinstance(returns, list)
        cells = (line["eval/return"], min(returns), max(returns))
        table.add_row(str(line["step"]), *(f"{value:.1f}" for value in cells), f"{line['eval/executed_violation']:.1e}")
    return table
