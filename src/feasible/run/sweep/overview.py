"""The live overview of many runs: where they are, how fast, and when the last will be done.

Metrics files are followed, not read again: a look costs one `stat` a run and the bytes that are new.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Literal

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from feasible.catalogue.registry import METHODS
from feasible.run.config import RunConfig
from feasible.run.folder import RunFolder
from feasible.run.plain_json import parse_object

State = Literal["waiting", "running", "done", "failed"]
YEAR = 365 * 24 * 3600.0  # seconds beyond which no end is foretold
ROWS = 16  # with more runs than this, only those that run or failed have a line


class Follower:
    """The newest value of every metric of a run, kept up to date."""

    def __init__(self, folder: RunFolder):
        self._path = folder.metrics
        self._offset = 0
        self.newest: dict[str, object] = {}

    @property
    def step(self) -> int:
        return int(self.number("step") or 0)

    def number(self, name: str) -> float | None:
        """The newest value, if it is a number that there can be: files may be damaged."""
        value = self.newest.get(name)
        return float(value) if isinstance(value, int | float) and abs(value) < 1e100 else None

    def look(self) -> None:
        """Read what was added; a file that was cut back by a resumed run is read again."""
        size = self._path.stat().st_size if self._path.exists() else 0
        if size < self._offset:
            self._offset, self.newest = 0, {}
        if size == self._offset:
            return
        with self._path.open("rb") as file:
            file.seek(self._offset)
            added = file.read()
        complete = added[: added.rfind(b"\n") + 1]
        self._offset += len(complete)
        for line in complete.splitlines():
            try:
                self.newest |= parse_object(line, "the line")
            except ValueError:  # cut back and grown past us between two looks, or damaged: its own process says
                continue


class Overview:
    """One table of all runs and one line that sums them up."""

    def __init__(self, folders: Sequence[RunFolder], slots: int | None, clock: Callable[[], float] = time.time) -> None:
        self._runs = [(folder, folder.config(), Follower(folder)) for folder in folders]
        self._slots, self._clock = slots, clock

    def drawn(self, states: Mapping[RunFolder, State], failures: Mapping[RunFolder, str]) -> Group:
        """The present state; `failures` are the reasons of the runs that failed."""
        rows: list[Row] = [
            (config, follower, states[folder], failures.get(folder, "")) for folder, config, follower in self._runs
        ]
        for _, follower, state, _ in rows:
            if state != "waiting":
                follower.look()
        parts: list[RenderableType] = [_Shown(rows)]
        parts += [Text(f"{config.name} failed: {reason}", style="red") for config, _, _, reason in rows if reason]
        return Group(*parts, Text(self.summary(rows)))

    def summary(self, rows: "Sequence[Row]") -> str:
        counts = {state: sum(row[2] == state for row in rows) for state in ("done", "running", "failed")}
        speed = sum(
            follower.number("time/steps_per_second") or 0.0 for _, follower, state, _ in rows if state == "running"
        )
        news = f"{counts['done']} of {len(rows)} done, {counts['running']} running, {counts['failed']} failed"
        if speed:
            news += f", {speed:,.0f} steps/s"
        seconds = self._seconds_to_go(rows)
        if seconds is not None and seconds < YEAR:
            news += f", {expected_end(seconds, self._clock())}"
        return news

    def _seconds_to_go(self, rows: "Sequence[Row]") -> float | None:
        """Each run's steps at its own speed, or that of its like, or of all; shared by those that train at a time."""
        open_runs = [(config, follower) for config, follower, state, _ in rows if state in ("running", "waiting")]
        speeds: dict[tuple[str, str], list[float]] = {}
        for config, follower, _, _ in rows:
            rate = follower.number("time/steps_per_second")
            if rate and rate > 0:
                speeds.setdefault((config.task, config.algo), []).append(rate)
        if not open_runs or not speeds:
            return None
        everyone = [rate for rates in speeds.values() for rate in rates]
        longest = total = 0.0
        for config, follower in open_runs:
            like = speeds.get((config.task, config.algo), everyone)
            own = follower.number("time/steps_per_second") or 0.0
            seconds = (config.steps - follower.step) / (own if own > 0 else sum(like) / len(like))
            longest, total = max(longest, seconds), total + seconds
        return max(longest, total / min(len(open_runs), self._slots or len(open_runs)))


def expected_end(seconds: float, now: float) -> str:
    """The time of day when so many seconds will have passed, with the day where it is not near."""
    end = datetime.fromtimestamp(now) + timedelta(seconds=seconds)
    day = "" if seconds < 18 * 3600 else f"{end:%a %d %b} "
    return f"expected end {day}{end:%H:%M} (in {_duration(seconds)})"


Row = tuple[RunConfig, Follower, State, str]


NARROW = 90
"""Columns below which a table would be all gaps and broken words."""


class _Shown:
    """The runs as a table, or, where the terminal is narrow, as a list."""

    def __init__(self, rows: Sequence[Row]):
        kinds = {(config.task, config.algo, config.variant) for config, *_ in rows}
        alike = len({(task, algo) for task, algo, _ in kinds}) == len(kinds)
        shown = [row for row in rows if len(rows) <= ROWS or row[2] not in ("waiting", "done")]
        self._cells = [(_name(row[0], variant=not alike), *_cells(*row)) for row in shown]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if options.max_width < NARROW:
            yield Text("Training", style="italic")
            for name, state, step, score, violation, speed in self._cells:
                told = [state, step, score and f"return {score}", violation and f"violation {violation}"]
                yield Text(name)
                yield Padding(Text(", ".join(filter(None, [*told, speed and f"{speed} steps/s"]))), (0, 0, 0, 2))
            return
        table = Table(title="Training", title_justify="left")
        for name in ("run", "state", "step", "return", "violation", "steps/s"):
            table.add_column(name, justify="left" if name in ("run", "state") else "right")
        for name, *cells in self._cells:
            table.add_row(Text(name), *cells)
        yield table


def _name(config: RunConfig, *, variant: bool) -> str:
    method = METHODS[config.algo].title if config.algo in METHODS else config.algo
    told = f" ({config.variant})" if config.variant and variant else ""
    return f"{config.task}  {method}{told}  seed {config.seed}"


def _cells(config: RunConfig, follower: Follower, state: State, reason: str) -> tuple[str, ...]:
    del reason
    return (
        state,
        f"{follower.step:,} of {config.steps:,}",
        _number(follower.number("eval/return"), ".1f"),
        _number(follower.number("violation/executed_max"), ".0e"),
        _number(follower.number("time/steps_per_second"), ".0f") if state == "running" else "",
    )


def _number(value: float | None, form: str) -> str:
    return "" if value is None else f"{value:{form}}"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d} min"
