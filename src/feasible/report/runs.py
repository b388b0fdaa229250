"""Run folders as a report reads them: whatever can be used is used, and what is left out is said with its reason.

A metrics file is parsed as one JSON array, and only if that fails line by line. Of a long one all evaluations are read,
but of the lines between them only as many as a figure can show.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import numpy as np
from jaxtyping import Float, Int

from feasible.catalogue.registry import METHODS, TASKS
from feasible.report.media import Medium, media_of
from feasible.run.config import read_config
from feasible.run.plain_json import printable
from feasible.run.validity import check_run

METRICS = (
    "eval/return",
    "eval/executed_violation",
    "violation/proposed_count",
    "violation/intended_count",
    "violation/executed_max",
    "actor/grad_proposed",
    "actor/grad_executed",
    "policy/distance_to_optimal",
    "time/steps_per_second",
)
LARGEST = 1e100  # of values: beyond it their squares are no numbers any more
LAST = 2**53  # of steps: beyond it not every whole number is a float
LINES = 500  # between evaluations that are read of a run; each costs about 10 microseconds
SCORED = 10  # a run's score is the mean return of its last so many evaluations

Setting = str | int | float | bool | None | Sequence["Setting"] | Mapping[str, "Setting"]


@dataclass(frozen=True)
class Series:
    """One metric of one run."""

    steps: Int[np.ndarray, " k"]
    values: Float[np.ndarray, " k"]


@dataclass(frozen=True)
class Run:
    """One run: what its config.json says, and its metrics."""

    path: str
    task: str
    algo: str
    variant: str
    seed: int
    preset: str
    steps: int
    reached: int
    described: Mapping[str, Setting]
    series: Mapping[str, Series]
    media: tuple[Medium, ...] = ()

    @property
    def finished(self) -> bool:
        return self.reached >= self.steps

    @property
    def score(self) -> float | None:
        """Mean return of the last evaluations, as in the paper; None for a run that has not ended."""
        returns = self.series.get("eval/return")
        return float(returns.values[-SCORED:].mean()) if returns is not None and self.finished else None

    @property
    def infeasible_share(self) -> float | None:
        """Share of the proposals after the warm-up that were infeasible, the one after the last step included."""
        return self.share("violation/proposed_count", self.reached)

    def share(self, counter: str, step: int) -> float | None:
        """What a counter of proposals had come to after so many steps, as a share of all since the warm-up."""
        counted, algorithm = self.series.get(counter), self.described.get("algorithm")
        warmup = algorithm.get("warmup", 0) if isinstance(algorithm, Mapping) else 0
        proposals = step + 1 - (warmup if isinstance(warmup, int) and warmup > 0 else 0)
        if counted is None or proposals <= 1:
            return None
        return float(counted.values[counted.steps <= step][-1]) / proposals

    @property
    def executed_violation(self) -> float | None:
        """The largest violation of an executed action, in training and in evaluations."""
        found = [
            self.series[name] for name in ("violation/executed_max", "eval/executed_violation") if name in self.series
        ]
        return max(float(series.values.max()) for series in found) if found else None

    @property
    def speed(self) -> float | None:
        """Steps a second: the median over the run."""
        rates = self.series.get("time/steps_per_second")
        return float(np.median(rates.values)) if rates is not None else None

    @property
    def episodes(self) -> int | None:
        """Per evaluation, where config.json says so."""
        said = self.described.get("episodes")
        return said if isinstance(said, int) and not isinstance(said, bool) else None

    def about(self, name: str) -> str:
        """What config.json says for people; nothing where it says nothing readable."""
        said = self.described.get(name)
        return printable(said, 400) if isinstance(said, str) else ""

    def versions(self) -> Mapping[str, str]:
        return _texts(self.described.get("versions"))

    def machine(self) -> Mapping[str, str]:
        return _texts(self.described.get("machine"))


@dataclass(frozen=True)
class Note:
    """Something that a reader must know: which runs it concerns, and what is the matter with them."""

    about: str
    says: str
    left_out: bool = False


@dataclass(frozen=True)
class Runs:
    """All runs of a report, in the order of tasks, methods and seeds, and what is to be said of them."""

    all: tuple[Run, ...]
    notes: tuple[Note, ...]


def find_runs(root: Path) -> list[Path]:
    """The run folders below a folder."""
    if not root.is_dir():
        raise FileNotFoundError(f"{root} is no folder: name the folder of the runs, the --out of `feasible compare`.")
    found = sorted(path.parent for path in root.rglob("config.json"))
    if not found:
        raise ValueError(f"{root} holds no runs: there is no config.json below it.")
    return found


def read_runs(folders: Iterable[Path], root: Path) -> Runs:
    """Everything readable in the folders; paths are named from `root`."""
    runs: dict[tuple[str, str, str, int], Run] = {}
    notes: list[Note] = []
    for folder in folders:
        name = folder.relative_to(root).as_posix() if folder.is_relative_to(root) else str(folder)
        read, said = _read_run(folder, printable(name))
        notes += said
        if read is None:
            continue
        key = read.task, read.algo, read.variant, read.seed
        if key in runs:
            longer, shorter = sorted((runs[key], read), key=lambda run: run.reached, reverse=True)
            notes.append(Note(shorter.path, f"is the same run as {longer.path}, which is used", left_out=True))
            read = longer
        runs[key] = read
    if not runs:
        first = f"{notes[0].about} {notes[0].says}" if notes else "there are no folders"
        raise ValueError(f"{root} holds no run that can be read: {first}.")
    return Runs(tuple(in_order(runs.values())), tuple(notes))


def in_order(runs: Iterable[Run]) -> list[Run]:
    """By task, method and seed."""
    return sorted(runs, key=_order)


def described_run(path: str, described: Mapping[str, Setting], series: Mapping[str, Series]) -> Run:
    """The run that a config.json describes, with its metrics; a `ValueError` names the field that is none of a run."""
    check_run(described)
    return Run(
        path=path,
        task=str(described["task"]),
        algo=str(described["algo"]),
        variant=str(described["variant"]),
        seed=int(cast(int, described["seed"])),
        preset=str(described["preset"]),
        steps=int(cast(int, described["steps"])),
        reached=max((int(one.steps[-1]) for one in series.values()), default=0),
        described=described,
        series=series,
    )


def _read_run(folder: Path, name: str) -> tuple[Run | None, list[Note]]:
    def left_out(says: str) -> tuple[None, list[Note]]:
        return None, [Note(name, says, left_out=True)]

    try:
        described = cast(Mapping[str, Setting], read_config(folder / "config.json"))
        described_run(name, described, {})
    except OSError as cause:
        return left_out(f"cannot be read ({cause.strerror})")
    except ValueError as cause:
        return left_out(f"has a config.json that is damaged or of another version ({str(cause).rstrip('.')})")
    path = folder / "metrics.jsonl"
    if not path.exists():
        return left_out("has no metrics yet")
    if not path.is_file():
        return left_out("has metrics that cannot be read (metrics.jsonl is no file)")
    try:
        lines, damage = parse_metrics(path.read_bytes())
    except OSError as cause:
        return left_out(f"has metrics that cannot be read ({cause.strerror})")
    series, unusable = _columns(lines)
    notes = [Note(name, said) for said in (damage, *unusable) if said]
    if "eval/return" not in series:
        return None, [*notes, Note(name, "has no evaluation yet", left_out=True)]
    return replace(described_run(name, described, series), media=media_of(folder)), notes


def parse_metrics(contents: bytes) -> tuple[list[dict[str, object]], str]:
    """The lines of a metrics file, and what is wrong with it; nothing after a damaged line is used."""
    *complete, torn = contents.split(b"\n")
    said = "was cut in the middle of its last line, which is not used" if torn.strip() else ""
    few = _few(complete)
    try:
        lines = json.loads(b"[" + b",".join(few) + b"]")
        if all(_follows(line, before) for line, before in zip(lines, [{}, *lines], strict=False)):
            return lines, said
    except (ValueError, RecursionError):
        pass
    lines = []
    for number, text in enumerate(complete, 1):
        try:
            line = json.loads(text)
        except (ValueError, RecursionError):
            line = None
        if not _follows(line, lines[-1] if lines else {}):
            return lines, f"has a metrics file that is damaged in line {number}; only the lines before it are used"
        lines.append(line)
    return lines, said


def _follows(line: object, before: Mapping[str, object]) -> bool:
    """Whether it is a line of metrics at a step that is not before that of another line."""
    step = line.get("step") if isinstance(line, dict) else None
    return isinstance(step, int) and cast(int, before.get("step", 0)) <= step <= LAST


def _few(lines: list[bytes]) -> list[bytes]:
    """All evaluations, the last line, and of the others every so many-th."""
    every = len(lines) // LINES
    if every < 2:
        return lines
    last = len(lines) - 1
    return [line for i, line in enumerate(lines) if i % every == 0 or i == last or b'"eval/return"' in line]


def _columns(lines: Sequence[Mapping[str, object]]) -> tuple[dict[str, Series], list[str]]:
    """The metrics that a report shows, and what is said of values among them that it cannot show."""
    series, said = {}, []
    for name in METRICS:
        known = [(line["step"], line[name]) for line in lines if name in line]
        usable = [(step, value) for step, value in known if isinstance(value, int | float) and abs(value) <= LARGEST]
        if len(usable) < len(known):
            said.append(f"has {len(known) - len(usable)} values of {name} that are no finite numbers and are not used")
        if usable:
            steps, values = zip(*usable, strict=True)
            series[name] = Series(np.array(steps, np.int64), np.array(values, np.float64))
    return series, said


def _order(run: Run) -> tuple[int, str, int, str, str, int]:
    """Tasks and methods in the order of their listings, unknown ones after them."""
    task, algo = (
        list(known).index(name) if name in known else len(known)
        for name, known in ((run.task, TASKS), (run.algo, METHODS))
    )
    return task, run.task, algo, run.algo, run.variant, run.seed


def _texts(value: Setting) -> Mapping[str, str]:
    return {printable(name): printable(str(text)) for name, text in value.items()} if isinstance(value, Mapping) else {}
