"""Figures for papers and slides, as bytes of PNG and SVG: curves with a band over seeds, and the statistics."""

import io
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from feasible.catalogue.registry import TASKS
from feasible.report.aggregates import Comparison
from feasible.report.charts import Chart, spread
from feasible.report.file_names import unique_slugs
from feasible.report.style import Look

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = ("png", "svg")
DPI = 150
POINTS = 400  # of a curve: as many as its width has pixels to tell apart
ROOM = 5
"""Names that a legend can have inside a figure without hiding its curves."""
SINGLE = "\n(a single seed has none)"
BESIDE = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)}
"""Where a longer legend stands: to the right of the curves."""
STYLE = {
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.formatter.limits": (-4, 5),
    "axes.titlesize": 10,
    "font.size": 9,
    "grid.alpha": 0.25,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "path.simplify_threshold": 0.5,
    "text.parse_math": False,  # names are text, not formulas
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "feasible",  # the same runs give the same bytes
}


def all_figures(
    charts: Sequence[Chart],
    found: Sequence[Comparison],
    looks: Mapping[str, Look],
    titles: Mapping[str, str],
    formats: Sequence[str] = FORMATS,
) -> Iterator[tuple[str, bytes]]:
    """The files of all figures, by name."""
    import matplotlib

    drawn = [chart for chart in charts if not chart.kind.on_page_only]
    compared = [one for one in found if len(one.methods) > 1]
    names = unique_slugs([chart.name for chart in drawn] + [f"{one.name}-statistics" for one in compared])
    with matplotlib.rc_context(STYLE):  # pyright: ignore[reportArgumentType]
        for name, chart in zip(names, drawn, strict=False):
            yield from figure_files(name, _draw_chart(chart, looks), formats)
        for name, one in zip(names[len(drawn) :], compared, strict=True):
            yield from figure_files(name, _draw_comparison(one, looks, titles), formats)


def figure_files(name: str, figure: "Figure", formats: Sequence[str] = FORMATS) -> Iterator[tuple[str, bytes]]:
    """A figure in each format, by name."""
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    # Once and not by the figure itself, which would draw everything twice for each format.
    ConstrainedLayoutEngine().execute(figure)
    for form in formats:
        contents = io.BytesIO()
        metadata = {"Date": None} if form == "svg" else {"Software": None}
        figure.savefig(contents, format=form, dpi=DPI, metadata=metadata)
        yield f"{name}.{form}", contents.getvalue()


def _figure(width: float, height: float) -> "Figure":
    from matplotlib.figure import Figure  # no global state, no window

    return Figure(figsize=(width, height))


def _draw_chart(chart: Chart, looks: Mapping[str, Look]) -> "Figure":
    from matplotlib.ticker import EngFormatter

    crowded = len(chart.lines) + len(chart.references) > ROOM
    figure = _figure(7.0 if crowded else 5.2, 3.6)
    axes = figure.subplots()
    for line in chart.lines:
        look, few = looks[line.method], spread(len(line.band.steps), POINTS)
        steps, mean, std = (values[few] for values in (line.band.steps, line.band.mean, line.band.std))
        dashes = (0, (2, 1.5)) if line.secondary else (0, look.dash) if look.dash else "-"
        axes.plot(steps, mean, color=look.light, linestyle=dashes, label=_label(line.title))
        if len(line.seeds) > 1:
            axes.fill_between(steps, mean - std, mean + std, color=look.light, alpha=0.15, linewidth=0)
    for label, level in chart.references:
        axes.axhline(level, color="#5a6068", linestyle=(0, (1, 1.5)), linewidth=1, label=label)
    several = any(len(line.seeds) > 1 for line in chart.lines)
    band = "; the band is the standard deviation over seeds" if several else ""
    axes.set(xlabel=f"environment step{band}", ylabel=chart.kind.axis, title=_heading(chart))
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    if crowded:
        axes.legend(fontsize=7.5, **BESIDE)
    else:  # said, because matplotlib warns of a default that takes it long, which it may on a busy machine
        axes.legend(fontsize=7.5, loc="best")
    return figure


def _label(title: str) -> str:
    """A title for a legend, which leaves out those that begin with an underscore."""
    return f" {title}" if title.startswith("_") else title


def _heading(chart: Chart) -> str:
    where = f"{chart.task}: {chart.kind.title[0].lower()}{chart.kind.title[1:]}"
    return f"{where} ({chart.stands_for})" if chart.stands_for else where


def _draw_comparison(one: Comparison, looks: Mapping[str, Look], titles: Mapping[str, str]) -> "Figure":
    """Inter-quartile means, performance profiles, and the probabilities of improvement."""
    figure = _figure(11.5, max(2.6, 0.32 * len(one.methods) + 1.4))
    means, profiles, matrix = figure.subplots(1, 3, width_ratios=(1, 1.1, 1.2))
    _draw_means(means, one, looks, titles)
    for method, profile in one.profiles.items():
        look = looks[method]
        style = (0, look.dash) if look.dash else "-"
        profiles.plot(profile.thresholds, profile.share, color=look.light, linestyle=style)
        if profile.low is not None and profile.high is not None:
            band = {"color": look.light, "alpha": 0.12, "linewidth": 0}
            profiles.fill_between(profile.thresholds, profile.low, profile.high, **band)
    several = len(one.tasks) > 1
    scale = "score on the paper's scale" if several else "return"
    profiles.set(title="performance profile", xlabel=scale, ylabel="share of runs above", ylim=(-0.02, 1.02))
    means.set_xlabel(scale)
    _draw_matrix(matrix, one, titles)
    said = "0 and 1 are the paper's DDPG+Projection and NFWPO" if several else _title(one)
    figure.suptitle(f"{', '.join(one.tasks)}: {said}", fontsize=10)
    return figure


def _title(one: Comparison) -> str:
    return ", ".join(TASKS[task].title for task in one.tasks if task in TASKS) or "scores"


def _draw_means(axes: "Axes", one: Comparison, looks: Mapping[str, Look], titles: Mapping[str, str]) -> None:
    places = range(len(one.methods))
    for place, method in zip(places, one.methods, strict=True):
        estimate = one.interquartile_means[method]
        if estimate.low is not None and estimate.high is not None:
            axes.plot([estimate.low, estimate.high], [place, place], color=looks[method].light, linewidth=5, alpha=0.35)
        axes.plot([estimate.value], [place], "o", color=looks[method].light)
    axes.set_yticks(list(places), [titles[method] for method in one.methods])
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    single = any(estimate.low is None for estimate in one.interquartile_means.values())
    axes.set_title("inter-quartile mean, 95% interval" + (SINGLE if single else ""))


def _draw_matrix(axes: "Axes", one: Comparison, titles: Mapping[str, str]) -> None:
    methods = one.methods
    values = [[one.improvements[a, b].value if (a, b) in one.improvements else 0.5 for b in methods] for a in methods]
    axes.imshow(values, cmap="RdBu", vmin=0, vmax=1, aspect="auto")
    for row, a in enumerate(methods):
        for column, b in enumerate(methods):
            if (a, b) in one.improvements:
                value = values[row][column]
                ink = "white" if abs(value - 0.5) > 0.35 else "black"
                axes.text(column, row, f"{value:.2f}", ha="center", va="center", fontsize=7, color=ink)
    axes.set_xticks(range(len(methods)), [titles[method] for method in methods], rotation=35, ha="right", fontsize=7)
    axes.set_yticks(range(len(methods)), [titles[method] for method in methods], fontsize=7)
    axes.grid(visible=False)
    single = len(one.improvements) < len(methods) * (len(methods) - 1)
    axes.set_title("probability: row beats column" + (SINGLE if single else ""))
