"""A comparison on an accelerator: the runs of each task are one population, task after task."""

from collections.abc import Sequence
from pathlib import Path

import jax
from rich.console import Console

from feasible.algorithms.description import build_algorithm
from feasible.run.config import RunConfig
from feasible.run.folder import RunFolder
from feasible.run.population.progress import PopulationBars
from feasible.run.population.training import train_population
from feasible.run.sweep.sweep import Failure, prepare


def require_accelerator() -> None:
    """Refuse to go on where JAX has nothing but cores."""
    if jax.default_backend() == "cpu":
        raise ValueError(
            "--device gpu: JAX finds no accelerator here; install JAX for CUDA (`pip install 'jax[cuda13]'`, without "
            "JAX_PLATFORMS=cpu), or leave --device out."
        )
    try:
        jax.devices("cpu")
    except RuntimeError as cause:  # JAX hands reports to the host through it
        raise ValueError(
            "--device gpu: JAX_PLATFORMS leaves out the CPU, which populations need beside the accelerator; leave it "
            "unset, or set it to cuda,cpu."
        ) from cause


def train_by_task(out: Path, configs: Sequence[RunConfig], console: Console) -> list[Failure]:
    """Bring all runs to their ends in their folders under `out`; the failures. An interrupt saves them and raises."""
    for config in configs:
        copies = build_algorithm(config.algorithm).environments
        if copies > 1:
            raise ValueError(
                f"algos: {config.algo} steps {copies} copies of its environment at once, an agent of a population one; "
                "set copies=1, or train it without --device gpu."
            )
    by_task: dict[str, list[RunFolder]] = {}
    for folder, config in zip(prepare(out, configs), configs, strict=True):
        by_task.setdefault(config.task, []).append(folder)
    failures = []
    with PopulationBars(console) as bars:
        for folders in by_task.values():
            failures += train_population(folders, bars)
    return failures
