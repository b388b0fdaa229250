"""The demonstration: two methods learn two tasks under a constraint, in minutes; then a table, figures and a page.

The runs are ordinary ones, each a process of its own; a second call shows the result of the first.
"""

import base64
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from feasible.methods import find_method
from feasible.run.folder import RunConfig, RunFolder, read_metrics
from feasible.run.launch import configure
from feasible.run.sweep import prepare, run_all
from feasible.tasks import find_task

ALGOS = ("nfwpo", "ddpg-projection")


@dataclass(frozen=True)
class Budget:
    """How long the demonstration trains on a task, and how often it looks."""

    task: str
    steps: int
    evaluation_interval: int
    warmup: int


BUDGETS = (Budget("reacher", 20_000, 2_000, 1_000), Budget("bss-5", 40_000, 4_000, 5_000))
Curve = dict[str, list[float]]


def run_demo(out: Path, steps: int | None = None) -> None:
    """Train, print the comparison, write figures and the page."""
    console = Console()
    kinds = [(budget, algo) for budget in reversed(BUDGETS) for algo in ALGOS]
    folders = prepare(out / "runs", [_config(budget, algo, steps) for budget, algo in kinds])
    failures = run_all(folders, console)
    if failures:
        raise RuntimeError(f"{failures[0].folder.path} failed: {failures[0].reason}")
    curves = {(budget.task, algo): _curve(folder) for (budget, algo), folder in zip(kinds, folders, strict=True)}
    console.print(_comparison(curves))
    figures = [_draw(out, budget.task, curves) for budget in BUDGETS]
    page = _write_page(out, figures, curves)
    console.print(f"The page: {page}")


def _config(budget: Budget, algo: str, steps: int | None) -> RunConfig:
    total = budget.steps if steps is None else steps
    return configure(
        budget.task,
        algo,
        0,
        steps=total,
        settings="fair",
        changes={"warmup": min(budget.warmup, total // 4)},
        variant=f"demo-{total}",
        evaluation_interval=min(budget.evaluation_interval, max(1, total // 4)),
    )


def _curve(folder: RunFolder) -> Curve:
    lines = read_metrics(folder.metrics)
    evaluated = [line for line in lines if "eval/return" in line]
    counted = [line for line in lines if "violation/proposed_count" in line]
    return {
        "step": [line["step"] for line in evaluated],
        "return": [line["eval/return"] for line in evaluated],
        "counted_step": [line["step"] for line in counted],
        "proposed": [line["violation/proposed_count"] for line in counted],
        "executed": [line["violation/executed_max"] for line in counted],
    }  # pyright: ignore[reportReturnType]


def _comparison(curves: dict[tuple[str, str], Curve]) -> Table:
    table = Table(title="What they learned, in short runs of one seed", title_justify="left")
    for name in ("task", "method", "first return", "last return", "infeasible proposals", "executed violation"):
        table.add_column(name, justify="left" if name in ("task", "method") else "right")
    for row in _rows(curves):
        table.add_row(*row)
    return table


def _rows(curves: dict[tuple[str, str], Curve]) -> list[tuple[str, ...]]:
    return [
        (
            task,
            find_method(algo).title,
            f"{curve['return'][0]:.1f}",
            f"{curve['return'][-1]:.1f}",
            f"{curve['proposed'][-1]:.0f}",
            f"{max(curve['executed']):.0e}",
        )
        for (task, algo), curve in curves.items()
    ]


def _draw(out: Path, task: str, curves: dict[tuple[str, str], Curve]) -> Path:
    """Returns on the left, infeasible proposals on the right."""
    from matplotlib.figure import Figure  # no global state, no window

    figure = Figure(figsize=(10, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    for algo in ALGOS:
        curve, title = curves[task, algo], find_method(algo).title
        left.plot(curve["step"], curve["return"], marker="o", markersize=3, label=title)
        right.plot(curve["counted_step"], curve["proposed"], label=title)
    left.set(xlabel="step", ylabel="return of 10 episodes", title=find_task(task).title)
    right.set(xlabel="step", ylabel="infeasible proposals so far", title="before the projection; executed: none")
    left.legend()
    path = out / f"{task}.png"
    figure.savefig(path, dpi=130)
    return path


def _write_page(out: Path, figures: list[Path], curves: dict[tuple[str, str], Curve]) -> Path:
    images = "\n".join(
        f'<img alt="{figure.stem}" src="data:image/png;base64,{base64.b64encode(figure.read_bytes()).decode()}">'
        for figure in figures
    )
    rows = "\n".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in _rows(curves))
    largest = max(float(np.max(curve["executed"])) for curve in curves.values())
    page = out / "index.html"
    page.write_text(
        f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>feasible: a demonstration</title>
<style>body {{ font: 16px/1.5 sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem }}
img {{ width: 100% }} td, th {{ padding: .2rem 1rem .2rem 0; text-align: left }}</style></head><body>
<h1>Learning under a constraint</h1>
<p>NFWPO and DDPG+Projection on two tasks of the paper, short runs of one seed with the settings that treat every
method alike. Every executed action was feasible: the largest violation was {largest:.0e}.</p>
<table><tr><th>task</th><th>method</th><th>first return</th><th>last return</th><th>infeasible proposals</th>
<th>executed violation</th></tr>
{rows}</table>
{images}
</body></html>
"""
    )
    return page
