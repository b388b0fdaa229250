"""Comparisons on an accelerator: the runs of each task are one population, task after task."""

from collections.abc import Sequence
from pathlib import Path

import jax
from rich.console import Console

from feasible.algorithms.description import build_algorithm
from feasible.run.config import RunConfig
from feasible.run.disk import checkpoint
from feasible.run.disk.archive import write_atomically
from feasible.run.drive.groups import in_groups
from feasible.run.folder import RunFolder
from feasible.run.progress import ProgressBar
from feasible.run.sweep.processes import ERRORS
from feasible.run.sweep.sweep import Failure, prepare
from feasible.run.train import train
from feasible.run.watch import Watcher

SHARED = ("task", "steps", "eval_every", "episodes", "log_every", "checkpoint_every")


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
    with ProgressBar(console) as bar:
        for folders in by_task.values():
            failures += train_together(folders, bar)
    return failures


def train_together(
    folders: Sequence[RunFolder], watcher: Watcher | None = None, threads: int | None = None
) -> list[Failure]:
    """Train the runs of one task to their ends as one population; the failures.

    Runs that are finished are not repeated; those that were stopped together go on together. An interrupt (Ctrl-C)
    saves all of them and raises.
    """
    waiting, failures = [], []
    for folder in folders:
        saved = checkpoint.read(folder.checkpoint)
        # One with its last checkpoint already, whose population was killed while it ended, goes with the others.
        if saved is None or folder.population() is not None:
            waiting.append(folder)
        elif saved.finished:
            checkpoint.clear(folder)
        else:
            failures.append(Failure(folder, f"it was begun alone: go on with `feasible resume {folder.path}`"))
    for members in _populations(waiting):
        outcome = train(members, watcher, threads)
        if not outcome.finished:
            raise KeyboardInterrupt
        for folder, reason in outcome.failures:
            write_atomically(folder.path / ERRORS, f"{reason}\n".encode())
            failures.append(Failure(folder, reason))
    return failures


def _populations(folders: Sequence[RunFolder]) -> list[list[RunFolder]]:
    """The runs by the population that they were saved in, those that begin last; each in the order of its agents."""
    known: dict[Path, list[RunFolder]] = {}
    new: list[RunFolder] = []
    for folder in folders:
        home = folder.population()
        if home is None:
            new.append(folder)
        else:
            known.setdefault(home, []).append(folder)
    ordered = []
    for home, members in known.items():
        paths = _saved_paths(home)
        # A kill while the runs were marked may have left some without a mark.
        members += [folder for folder in new if folder.path.resolve() in paths]
        new = [folder for folder in new if folder.path.resolve() not in paths]
        ordered.append(_in_order(members, paths))
    if new:
        _check_shared(new)
        ordered.append([new[run] for run in in_groups([build_algorithm(folder.config().algorithm) for folder in new])])
    return ordered


def _saved_paths(home: Path) -> list[Path]:
    """The folders of a population's runs, in the order of its agents."""
    saved = checkpoint.read(home)
    assert saved is not None  # a home is there only with a state in it
    return [(home / run).resolve() for run in saved.runs]


def _in_order(members: Sequence[RunFolder], paths: Sequence[Path]) -> list[RunFolder]:
    by_path = {folder.path.resolve(): folder for folder in members}
    missing = [path for path in paths if path not in by_path]
    if missing:
        raise ValueError(
            f"{members[0].path} is trained together with {missing[0]}: a population goes on as a whole, with all "
            "of its runs."
        )
    return [by_path[path] for path in paths]


def _check_shared(folders: Sequence[RunFolder]) -> None:
    first, *others = [folder.config() for folder in folders]
    for other in others:
        for name in SHARED:
            one, two = getattr(first, name), getattr(other, name)
            if one != two:
                raise ValueError(
                    f"{name} is {one!r} of {first.name} and {two!r} of {other.name}: the runs of a population share it."
                )
