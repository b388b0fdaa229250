"""What a person sees of a training run: a bar with speed, last return and violation, and a table of evaluations."""

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from feasible.run.config import RunConfig
from feasible.run.training import Line, Watcher


class ProgressBar(Watcher):
    """A live bar below the lines of the evaluations; use as a context."""

    def __init__(self, console: Console):
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[news]}"),
            TimeRemainingColumn(),
            console=console,
            refresh_per_second=4,
        )
        self._console = console
        self._evaluations: list[Line] = []
        self._news = {"speed": "", "return": "", "violation": ""}

    def __enter__(self) -> "ProgressBar":
        self._progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._progress.stop()
        if self._evaluations:
            self._console.print(evaluation_table(self._evaluations))

    def begin(self, config: RunConfig, step: int) -> None:
        self._bar = self._progress.add_task(config.name, total=config.steps, completed=step, news="compiling")

    def advanced(self, step: int) -> None:
        # The bar's own clock draws it; a number is all it needs, and not at every step.
        if step % 64 == 0:
            self._progress.update(self._bar, completed=step)

    def logged(self, line: Line) -> None:
        if "time/steps_per_second" in line:
            self._news["speed"] = f"{line['time/steps_per_second']:.0f} steps/s"
            self._news["violation"] = f"violation {line['violation/executed_max']:.0e}"
        if "eval/return" in line:
            self._evaluations.append(line)
            self._news["return"] = f"return {line['eval/return']:.1f}"
        news = "  ".join(text for text in self._news.values() if text)
        self._progress.update(self._bar, news=news)


def evaluation_table(lines: list[Line], last: int = 12) -> Table:
    """The last evaluations of a run, one a row."""
    table = Table(title="Evaluations" if len(lines) <= last else f"The last {last} of {len(lines)} evaluations")
    for name in ("step", "mean return", "lowest", "highest", "executed violation"):
        table.add_column(name, justify="right")
    for line in lines[-last:]:
        returns = line["eval/returns"]
        assert isinstance(returns, list)
        cells = (line["eval/return"], min(returns), max(returns))
        table.add_row(str(line["step"]), *(f"{value:.1f}" for value in cells), f"{line['eval/executed_violation']:.1e}")
    return table
