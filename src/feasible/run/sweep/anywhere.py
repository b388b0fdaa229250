"""Many runs, wherever they are to be trained: on cores, on a Ray cluster, on an accelerator, or in this process."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from rich.console import Console

from feasible.catalogue.elsewhere import root_of
from feasible.catalogue.registry import known_here_only
from feasible.errors import sentence
from feasible.run.config import RunConfig
from feasible.run.folder import RunFolder
from feasible.run.progress import ProgressBar
from feasible.run.sweep.processes import Processes
from feasible.run.sweep.remote import is_address
from feasible.run.sweep.sweep import Failure, prepare, run_all
from feasible.run.train import train

Device = Literal["cpu", "gpu"]


def bring_all(
    configs: Sequence[RunConfig],
    out: str,
    console: Console,
    jobs: int | None = None,
    ray: str | None = None,
    device: Device = "cpu",
    modules: Sequence[str] = (),
) -> list[Failure]:
    """Bring runs to their ends in their folders under `out`, a path or an address; the failures.

    `modules` are imported on a cluster before a run is trained.
    """
    if device == "gpu" and (jobs is not None or ray is not None):
        name = "jobs" if ray is None else "ray"
        raise ValueError(f"--{name} is for runs on cores: leave it out, or leave out --device gpu.")
    if is_address(out) and ray is None:
        raise ValueError(f"out must be a folder, not {out!r}: runs are trained at an address with --ray.")
    if device == "gpu":
        from feasible.run.sweep.accelerator import require_accelerator, train_by_task

        require_accelerator()
        return train_by_task(Path(out), configs, console)
    here = [config.task for config in configs if known_here_only(config.task)]
    if here and (ray is not None or (jobs or 1) > 1):
        raise ValueError(
            f"tasks: {here[0]!r} is known in this process only; put it into a module and name it module:name, or train "
            "with jobs=1."
        )
    if ray is not None:
        from feasible.run.sweep.ray import Cluster

        cluster = Cluster(ray, out, jobs, modules, _root(configs))
        return run_all(cluster.prepare(configs), console, cluster)
    if here:
        return _in_this_process(prepare(Path(out), configs), console)
    processes = Processes(jobs)
    return run_all(prepare(Path(out), configs), console, processes)


def _in_this_process(folders: Sequence[RunFolder], console: Console) -> list[Failure]:
    failures = []
    for folder in folders:
        with ProgressBar(console) as bar:
            try:
                if not train(folder, bar).finished:
                    raise KeyboardInterrupt
            except (ValueError, OSError, RuntimeError, FloatingPointError) as error:
                failures.append(Failure(folder, sentence(error)))
    return failures


def _root(configs: Sequence[RunConfig]) -> Path | None:
    """The folder of the modules of the user's tasks."""
    roots = sorted({root for config in configs if (root := root_of(config.task)) is not None})
    if len(roots) > 1:
        raise ValueError(f"--ray: the modules of the tasks are in several folders, {roots[0]} and {roots[1]}: use one.")
    return roots[0] if roots else None
