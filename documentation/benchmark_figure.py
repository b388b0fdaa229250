"""The figure of the field's benchmark: return against infeasible proposals, all tasks on one scale."""

from collections.abc import Iterator

import numpy as np

from documentation.benchmark import Benchmark, benchmark
from documentation.benchmark_tables import title
from documentation.marked import ROOT
from documentation.plan import METHODS
from feasible.report.figures import BESIDE, STYLE, figure_files
from feasible.run.disk.archive import write_atomically

FOLDER = ROOT / "docs" / "figures" / "benchmark"
NAME = "return-against-infeasible"


def figures(found: Benchmark) -> Iterator[tuple[str, bytes]]:
    """A large mark is a method's mean over its complete tasks, a small one of them one task."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):  # pyright: ignore[reportArgumentType]
        figure = Figure(figsize=(8.2, 4.4))
        axes = figure.subplots()
        colours = matplotlib.colormaps["tab10"].colors  # pyright: ignore[reportAttributeAccessIssue]
        for place, method in enumerate(METHODS):
            tasks = found.tasks_of(method)
            if not tasks:
                continue
            shares = np.array([100 * found.complete[task, method].shares[0] for task in tasks])
            scores = np.array([found.floored(task, method).mean() for task in tasks])
            look = {"color": colours[place], "marker": "osD^vP*X<>"[place], "linestyle": "none"}
            axes.plot(shares, scores, markersize=3, alpha=0.45, **look)
            label = f"{title(method)} ({len(tasks)})"
            axes.plot(shares.mean(), scores.mean(), markersize=10, label=label, **look)
        axes.set_xlim(-2, 102)
        axes.set_xlabel("infeasible proposals, %")
        axes.set_ylabel("return; 0: random feasible, 1: the best method's")
        axes.set_title(f"The field's benchmark at {max(found.stage.steps.values()):,} steps")
        axes.legend(fontsize=7, title="method (tasks)", title_fontsize=7, **BESIDE)
        yield from figure_files(NAME, figure, ("svg",))


def write_benchmark_figure() -> None:
    """Draw it anew from the published results."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, contents in figures(benchmark()):
        write_atomically(FOLDER / name, contents)
