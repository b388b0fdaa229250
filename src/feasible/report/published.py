"""Published results: what figures and tables need of many runs, small enough to be kept with the code.

    results/TASK/ALGO/NAME.csv    a row for each evaluation of each seed: seed, step, then the metrics of a report
    results/TASK/ALGO/NAME.json   what the runs' config.json say, and by seed of versions, commit and machine

NAME is the preset, and after a dash what tells the runs from others in it; what that means is in the JSON.
`feasible report results` draws everything again.
"""

import csv
import io
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import cast

import numpy as np

from feasible.algorithms.description import Plain, build_algorithm, describe, settings_of
from feasible.catalogue.registry import algorithm_of, find_task
from feasible.errors import sentence
from feasible.report.file_names import slug
from feasible.report.runs import (
    LARGEST,
    LAST,
    METRICS,
    Note,
    Run,
    Runs,
    Series,
    Setting,
    described_run,
    in_order,
)
from feasible.run.config import read_config
from feasible.run.disk.archive import write_atomically
from feasible.run.folder import ABOUT
from feasible.run.plain_json import brief, printable

OWN = ("seed", "versions", "commit", "machine")
"""What the runs of one method may have of their own."""
LEFT = ("command", "checkpoint_every", "changes")
"""What has no part in the results."""
DIGITS = 7  # float32 has no more


def is_published(root: Path) -> bool:
    """Whether a folder holds published results."""
    return any(path.with_suffix(".json").exists() for path in root.glob("*/*/*.csv"))


def publish(runs: Iterable[Run], out: Path) -> list[Path]:
    """Write the runs' results into the folder `out`, beside what it holds; of one seed what has come further stays."""
    groups: dict[tuple[str, str, str], list[Run]] = {}
    for run in runs:
        groups.setdefault((run.task, run.algo, _name(run)), []).append(run)
    written = []
    for (task, algo, name), members in groups.items():
        if (task, algo) != (slug(task), slug(algo)):
            raise ValueError(f"{members[0].path}: {task}/{algo} cannot be published: no folders can have these names.")
        path = out / task / algo / f"{name}.csv"
        try:
            before = _read(path, out) if path.exists() else []
        except (ValueError, csv.Error) as cause:
            raise ValueError(f"{path} cannot be added to: {cause}.") from cause
        members = _furthest([*before, *members])
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path.with_suffix(".json"), (json.dumps(_settings(members), indent=1) + "\n").encode())
        write_atomically(path, _table(members).encode())
        written.append(path)
    return written


def _name(run: Run) -> str:
    """The preset, and what of the variant says more; the letters that join its words are dashes."""
    more = re.sub("[+=]", "-", run.variant.removeprefix(run.preset)).strip("-")
    return slug(f"{run.preset}-{more}" if more else run.preset)


def read_published(root: Path) -> Runs:
    """All runs of a folder of published results, and which files were left out."""
    runs, notes = [], []
    for path in sorted(root.glob("*/*/*.csv")):
        try:
            runs += _read(path, root)
        except (OSError, ValueError, csv.Error) as cause:
            name = printable(path.relative_to(root).as_posix())
            notes.append(Note(name, f"cannot be read ({printable(sentence(cause)).rstrip('.')})", left_out=True))
    if not runs:
        first = f"{notes[0].about} {notes[0].says}" if notes else "there is no CSV file"
        raise ValueError(f"{root} holds no results that can be read: {first}.")
    return Runs(tuple(in_order(runs)), tuple(notes))


def _furthest(runs: Iterable[Run]) -> list[Run]:
    """Of each seed the run that has come furthest, of equals the last."""
    best: dict[int, Run] = {}
    for run in sorted(runs, key=lambda run: run.reached):
        best[run.seed] = run
    return [best[seed] for seed in sorted(best)]


def _settings(runs: Sequence[Run]) -> Mapping[str, Setting]:
    described = [_described(run) for run in runs]
    # Runs of earlier versions do not say what their task is: the others say it for them.
    about = {name: value for one in reversed(described) for name, value in one.items() if name in ABOUT}
    shared, *others = ({**one, **about, **one} for one in described)
    for run, other in zip(runs[1:], others, strict=True):
        if other != shared:
            raise ValueError(f"{run.path} was trained with other settings than {runs[0].path}: name one a variant.")
    own = {str(run.seed): {name: run.described[name] for name in OWN if name in run.described} for run in runs}
    return {**shared, "changes": _changes(runs[0], shared), "seeds": own}


def _changes(run: Run, shared: Mapping[str, Setting]) -> Setting:
    """Hyper-parameters that are not those of the run's preset; nothing where that preset is not known here."""
    try:
        algorithm = build_algorithm(cast(Plain, shared["algorithm"]))
        preset = algorithm_of(find_task(run.task), run.algo, run.preset)
    except ValueError:
        return {}
    before = settings_of(preset)
    return {name: cast(Setting, describe(v)) for name, v in settings_of(algorithm).items() if before.get(name) != v}


def _described(run: Run) -> dict[str, Setting]:
    """Its settings; those that its version of the library did not know yet by their defaults."""
    known = {name: value for name, value in run.described.items() if name not in OWN + LEFT}
    try:
        return {**known, "algorithm": describe(build_algorithm(cast(Plain, known["algorithm"])))}
    except ValueError:  # an algorithm of somebody else's: as it was described
        return known


def _table(runs: Sequence[Run]) -> str:
    metrics = [name for name in METRICS if any(name in run.series for run in runs)]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["seed", "step", *metrics])
    for run in runs:
        columns = [_at(run.series.get(name), run.series["eval/return"].steps) for name in metrics]
        for step, *values in zip(run.series["eval/return"].steps.tolist(), *columns, strict=True):
            writer.writerow([run.seed, step, *values])
    return text.getvalue()


def _at(series: Series | None, steps: np.ndarray) -> list[str]:
    """The metric at these steps; nothing where it was not logged."""
    known = {} if series is None else dict(zip(series.steps.tolist(), series.values.tolist(), strict=True))
    return [f"{known[step]:.{DIGITS}g}" if step in known else "" for step in steps.tolist()]


def _read(path: Path, root: Path) -> list[Run]:
    described = cast(dict[str, Setting], read_config(path.with_suffix(".json")))
    with path.open(newline="") as file:
        header, *rows = [*csv.reader(file)] or [[]]
    if header[:2] != ["seed", "step"]:
        raise ValueError("its first columns are not seed and step")
    if any(len(row) != len(header) for row in rows):
        raise ValueError("its rows have not all the columns of the first")
    table = [dict(zip(header, row, strict=True)) for row in rows]
    runs, seeds = [], described.pop("seeds", None)
    if not isinstance(seeds, Mapping):
        raise ValueError("seeds is missing")
    for seed, own in seeds.items():
        if not isinstance(own, Mapping):
            raise ValueError(f"seeds must describe seed {brief(seed)}, not be {brief(own)}")
        mine = [row for row in table if row["seed"] == seed]
        series = {name: _series(mine, name) for name in header[2:] if name in METRICS}
        name = printable(f"{path.relative_to(root).with_suffix('').as_posix()}/seed-{seed}")
        known = {name: one for name, one in series.items() if len(one.steps)}
        if "eval/return" not in known:
            raise ValueError(f"there is no evaluation of seed {brief(seed)}")
        runs.append(described_run(name, described | dict(own), known))
    return runs


def _series(rows: Sequence[Mapping[str, str]], name: str) -> Series:
    having = [row for row in rows if row[name]]
    steps, values = [int(row["step"]) for row in having], [float(row[name]) for row in having]
    if any(not 0 <= step <= LAST for step in steps) or steps != sorted(steps):
        raise ValueError("its steps are not whole numbers that rise")
    if any(not abs(value) <= LARGEST for value in values):
        raise ValueError(f"{name} has values that are no finite numbers")
    return Series(np.array(steps, np.int64), np.array(values, np.float64))
