"""The page: one HTML file with its data, styles and scripts inside, which needs no network and no other file.

`page.html` is the template; it draws everything from the JSON that is put into it.
"""

import html
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files

import numpy as np
from jaxtyping import Shaped

from feasible.catalogue.registry import TASKS
from feasible.paper.printed import PRINTED
from feasible.report.aggregates import Comparison
from feasible.report.charts import Chart, Line, spread
from feasible.report.groups import Group, by_task
from feasible.report.media import inlined
from feasible.report.repeating import command_of
from feasible.report.runs import Note, Run, Setting
from feasible.report.statistics import Estimate, interquartile_mean_interval
from feasible.report.style import Look
from feasible.run.plain_json import printable

POINTS = 240  # of a curve on the page: more than its pixels can show apart
DIGITS = 6

Json = Setting


@dataclass(frozen=True)
class Words:
    """What is said around the figures: `trial` why runs compare nothing, if they do not, `ahead` what to do next."""

    title: str
    trial: str = ""
    ahead: str = ""


def page(
    said: Words,
    groups: Sequence[Group],
    charts: Sequence[Chart],
    found: Sequence[Comparison],
    notes: Sequence[Note],
    looks: Mapping[str, Look],
    beside: Sequence[str],
) -> str:
    """The page's text; `beside` are the files written with it, named from where it is."""
    titles = {group.method: group.title for group in groups}
    data: Json = {
        "title": said.title,
        "trial": said.trial,
        "ahead": said.ahead,
        "version": _version(),
        "tasks": [_task(name, members[0].runs[0]) for name, members in by_task(groups).items()],
        "methods": [
            {"key": method, "title": titles[method], "light": look.light, "dark": look.dark, "dash": list(look.dash)}
            for method, look in looks.items()
        ],
        "episodes": _episodes(groups),
        "charts": [_chart(chart) for chart in charts],
        "scores": [_score(group) for group in groups],
        "comparisons": [_comparison(one) for one in found if len(one.methods) > 1],
        "runs": [_run(run, group) for group in groups for run in group.runs],
        "media": _media(groups),
        "notes": [{"about": note.about, "says": note.says, "out": note.left_out} for note in notes],
        "files": list(beside),
    }
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    template = files("feasible.report").joinpath("page.html").read_text(encoding="utf-8")
    # Nothing in the data can end the script that holds it, or start a comment in it.
    data_text = text.replace("<", "\\u003c")
    return template.replace("__TITLE__", html.escape(said.title)).replace("__DATA__", data_text)


def _episodes(groups: Sequence[Group]) -> str:
    """How many episodes the evaluations had, in words."""
    said = sorted({run.episodes for group in groups for run in group.runs if run.episodes})
    return f"{said[0]} to {said[-1]}" if len(said) > 1 else str(said[0]) if said else "10"


def _task(name: str, run: Run) -> Json:
    """What is said of a task: by the catalogue of one of ours, by its runs of any other."""
    known = TASKS.get(name)
    title, words = (known.title, known.words) if known else (run.about("title"), run.about("constraint"))
    return {"name": name, "title": title, "constraint": words}


def _chart(chart: Chart) -> Json:
    return {
        "task": chart.task,
        "kind": chart.kind.name,
        "title": chart.kind.title,
        "says": chart.kind.says,
        "paper": chart.stands_for,
        "lines": [_line(line) for line in chart.lines],
        "levels": [{"title": title, "y": _number(level)} for title, level in chart.references],
    }


def _line(line: Line) -> Json:
    band, few = line.band, spread(len(line.band.steps), POINTS)
    return {
        "method": line.method,
        "title": line.title,
        "second": line.secondary,
        "x": _numbers(band.steps[few]),
        "y": _numbers(band.mean[few]),
        "s": _numbers(band.std[few]) if len(line.seeds) > 1 else None,
        "seeds": [
            {"seed": seed, "x": _numbers(series.steps[own]), "y": _numbers(series.values[own])}
            for seed, series in line.seeds
            for own in [spread(len(series.steps), POINTS)]
        ],
    }


def _score(group: Group) -> Json:
    scores = group.scores
    shares = [run.infeasible_share for run in group.runs if run.infeasible_share is not None]
    return {
        "task": group.task,
        "method": group.method,
        "seeds": [run.seed for run in group.runs if run.score is not None],
        "mean": _number(group.mean),
        "std": _number(group.std),
        "iqm": _estimate(interquartile_mean_interval([scores])) if len(scores) else None,
        "paper": PRINTED.get((group.task, group.algo)),
        "share": _number(np.mean(shares)) if shares else None,
    }


def _comparison(one: Comparison) -> Json:
    return {
        "tasks": list(one.tasks),
        "methods": list(one.methods),
        "iqm": [_estimate(one.interquartile_means[method]) for method in one.methods],
        "beats": [[_estimate(one.improvements.get((a, b))) for b in one.methods] for a in one.methods],
        "x": _numbers(one.profiles[one.methods[0]].thresholds),
        "profiles": [
            {"y": _numbers(profile.share), "low": _bounds(profile.low), "high": _bounds(profile.high)}
            for profile in (one.profiles[method] for method in one.methods)
        ],
    }


def _run(run: Run, group: Group) -> Json:
    return {
        "path": run.path,
        "task": run.task,
        "method": group.method,
        "seed": run.seed,
        "step": run.reached,
        "steps": run.steps,
        "score": _number(run.score),
        "violation": _number(run.executed_violation),
        "speed": _number(run.speed),
        "settings": _finite(run.described),
        "command": command_of(run),
    }


def _media(groups: Sequence[Group]) -> list[Json]:
    """Films and pictures of the runs; of one that is too large for the page its name and size."""
    every = [(run, group, medium) for group in groups for run in group.runs for medium in run.media]
    inside = inlined(medium for _, _, medium in every)
    return [
        {
            "task": run.task,
            "method": group.method,
            "run": run.path,
            "seed": run.seed,
            "name": printable(medium.path.name),
            "kind": medium.kind,
            "megabytes": _number(medium.size / 1e6),
            "address": inside.get(medium, ""),
        }
        for run, group, medium in every
    ]


def _numbers(values: Shaped[np.ndarray, " k"]) -> list[Json]:
    return [_number(value) for value in values.tolist()]


def _number(value: float | np.floating | None) -> float | int | None:
    if value is None or not np.isfinite(value):
        return None
    short = float(f"{value:.{DIGITS}g}")
    return int(short) if short.is_integer() and abs(short) < 2**53 else short


def _bounds(values: Shaped[np.ndarray, " k"] | None) -> list[Json] | None:
    return None if values is None else _numbers(values)


def _estimate(estimate: Estimate | None) -> list[Json] | None:
    return None if estimate is None else [_number(estimate.value), _number(estimate.low), _number(estimate.high)]


def _finite(value: Setting) -> Json:
    """Settings as JSON that every browser reads: it has no word for infinity."""
    if isinstance(value, Mapping):
        return {name: _finite(inner) for name, inner in value.items()}
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    return [_finite(inner) for inner in value] if isinstance(value, list | tuple) else value


def _version() -> str:
    try:
        return version("feasible")
    except PackageNotFoundError:
        return ""
