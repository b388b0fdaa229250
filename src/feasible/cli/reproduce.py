"""`feasible reproduce`: the runs of a table or figure of the paper, and a report on them."""

import os
from pathlib import Path
from typing import Annotated, Literal

import tyro

from feasible.cli.report import tell
from feasible.cli.running import Device, end, on_cores, sweep


def reproduce(
    item: Annotated[str, tyro.conf.Positional],
    preset: Literal["paper", "fair"] = "paper",
    steps_scale: float = 1.0,
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4),
    as_authors: bool = False,
    jobs: int | None = None,
    ray: str | None = None,
    device: Device = "cpu",
    out: Path = Path("reproduction"),
) -> None:
    """Train and report what a table or figure of the paper needs.

    Like `compare`, it continues after an interrupt, and does not repeat the runs of other items.

    Args:
        item: table1, table2, fig1 to fig6, or all.
        preset: The paper's hyper-parameters, or those that treat every method alike.
        steps_scale: Share of the paper's steps, for shorter runs.
        seeds: Seeds of the runs.
        as_authors: Also train the methods as the authors' published code runs them.
        jobs: Runs at a time. If omitted: one per core.
        ray: Address of a Ray cluster to run on, or `auto`; all its machines must see the folder.
        device: gpu trains MuJoCo runs with a replay on this machine's accelerator, then the others on its cores.
        out: Folder for the runs and, by item, the reports.
    """
    if device == "cpu":
        on_cores()
    from feasible.paper.items import TITLES, for_accelerator, paper_runs, run_folder
    from feasible.report.writing import write_report

    configs = paper_runs(item, seeds, preset, steps_scale, as_authors)
    runs = run_folder(out, steps_scale)
    together = [config for config in configs if device == "gpu" and for_accelerator(config)]
    failures = sweep(together, str(runs), None, None, "gpu") if together else []
    if device == "gpu":
        os.environ["JAX_PLATFORMS"] = "cpu"  # of the processes that are still to be started
        on_cores()
    apart = [config for config in configs if config not in together]
    failures += sweep(apart, str(runs), jobs, ray) if apart else []
    title = TITLES[item] + ("" if steps_scale == 1 else f", {steps_scale:g} of its steps")
    tell(write_report(runs, out / item, [runs / config.name for config in configs], title))
    end(failures, len(configs))
