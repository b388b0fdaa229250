"""The demonstration: two methods learn two tasks under a constraint, in minutes; then a table, figures and a page.

The runs are ordinary ones, each a process of its own: what the demonstration does, `feasible train` does.
"""

import base64
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.live import Live
from rich.table import Table

from feasible.methods import find_method
from feasible.run.folder import RunFolder, read_metrics
from feasible.run.launch import configure, new_run
from feasible.tasks import find_task

ALGOS = ("nfwpo", "ddpg-projection")


@dataclass(frozen=True)
class Budget:
    """How long the demonstration trains on a task, and how often it looks."""

    task: str
    steps: int
    evaluation_interval: int
    warmup: int


BUDGETS = (Budget("reacher", 20_000, 2_000, 1_000), Budget("bss-5", 30_000, 3_000, 5_000))
Curve = dict[str, list[float]]


def run_demo(out: Path, steps: int | None = None) -> None:
    """Train, print the comparison, write figures and the page."""
    console = Console()
    folders = [(budget, algo, _new_run(out, budget, algo, steps)) for budget in reversed(BUDGETS) for algo in ALGOS]
    _train([folder for _, _, folder in folders], console)
    curves = {(budget.task, algo): _curve(folder) for budget, algo, folder in folders}
    console.print(_comparison(curves))
    figures = [_draw(out, budget.task, curves) for budget in BUDGETS]
    page = _write_page(out, figures, curves)
    console.print(f"The page: {page}")


def _new_run(out: Path, budget: Budget, algo: str, steps: int | None) -> RunFolder:
    config = configure(
        budget.task,
        algo,
        0,
        steps=steps or budget.steps,
        settings="fair",
        changes={"warmup": min(budget.warmup, (steps or budget.steps) // 4)},
        variant=f"demo-{time.strftime('%Y%m%d-%H%M%S')}",
        evaluation_interval=min(budget.evaluation_interval, max(1, (steps or budget.steps) // 4)),
    )
    return new_run(out / "runs", config)


def _train(folders: list[RunFolder], console: Console) -> None:
    """All runs, as many at a time as there are cores, with one overview of their progress."""
    waiting, running, failed = list(folders), {}, []
    with Live(_overview(folders), console=console, refresh_per_second=2) as live:
        while waiting or running:
            while waiting and len(running) < (os.cpu_count() or 1):
                folder = waiting.pop(0)
                command = [sys.executable, "-m", "feasible.cli", "resume", str(folder.path)]
                running[folder.path] = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            for path, process in list(running.items()):
                if process.poll() is not None:
                    del running[path]
                    _, complaint = process.communicate()
                    if process.returncode:
                        failed.append((path, complaint.decode().strip()))
            live.update(_overview(folders))
            time.sleep(0.5)
    if failed:
        path, reason = failed[0]
        raise RuntimeError(f"{path} failed: {reason}")


def _overview(folders: list[RunFolder]) -> Table:
    table = Table(title="Training", title_justify="left")
    for name in ("run", "step", "return", "executed violation", "steps a second"):
        table.add_column(name, justify="left" if name == "run" else "right")
    for folder in folders:
        config, lines = folder.config(), read_metrics(folder.metrics)
        last = {name: value for line in lines for name, value in line.items()}
        table.add_row(
            f"{config.task}  {find_method(config.algo).title}",
            f"{last.get('step', 0)} of {config.steps}",
            f"{last['eval/return']:.1f}" if "eval/return" in last else "",
            f"{last['violation/executed_max']:.0e}" if "violation/executed_max" in last else "",
            f"{last['time/steps_per_second']:.0f}" if "time/steps_per_second" in last else "",
        )
    return table


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
