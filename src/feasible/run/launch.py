"""Runs by name: from what a person asks for to a configured run folder."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Unpack

from feasible.algorithms.base import Algorithm
from feasible.algorithms.description import Plain, describe, without_numpy
from feasible.catalogue.recommended import choice_on
from feasible.catalogue.registry import RECOMMENDED, algorithm_of, find_task, preset_for
from feasible.catalogue.task import DEFAULT
from feasible.run.config import RunConfig
from feasible.run.folder import RunFolder
from feasible.run.options import Options
from feasible.run.train import check_same_task
from feasible.run.validity import WHOLE, check_training, check_whole


def configure(
    task: str, algo: str, seed: int, *, changes: Mapping[str, Plain] | None = None, **options: Unpack[Options]
) -> RunConfig:
    """Resolve a run. Omitted values come from the task, an omitted preset is its first; `changes` override
    hyper-parameters of the algorithm."""
    known, preset = find_task(task), options.get("preset")
    if algo == RECOMMENDED:
        choice = choice_on(task)
        if preset not in (None, DEFAULT) and choice.algo not in known.preset(preset):
            raise ValueError(
                f"preset: recommended on the task {task!r} is {choice.algo}, which the preset {preset!r} does not "
                "have; leave --preset out, or name a method of the preset."
            )
        algo, preset, changes = choice.algo, preset or choice.preset, {**choice.changes, **(changes or {})}
    preset = preset or preset_for(known, algo)
    algorithm = algorithm_of(known, algo, preset, changes)
    numbers = {
        "seed": seed,
        "steps": _said(options.get("steps"), known.steps),
        "eval_every": _said(options.get("eval_every"), known.eval_every),
        "episodes": _said(options.get("episodes"), known.episodes),
        "checkpoint_every": options.get("checkpoint_every", _in_rounds(10_000, algorithm)),
    }
    numbers = {name: check_whole(name, value, *WHOLE[name]) for name, value in numbers.items()}
    config = RunConfig(
        task=task,
        algo=algo,
        preset=preset,
        algorithm=describe(algorithm),
        log_every=min(_in_rounds(1_000, algorithm), numbers["eval_every"]),
        variant=options.get("variant") or variant_of(preset if preset != known.first_preset else "", changes or {}),
        **numbers,
    )
    check_training(vars(config))
    return config


def grid(
    tasks: Sequence[str],
    algos: Sequence[str],
    seeds: Sequence[int],
    *,
    changes: Mapping[str, Plain] | None = None,
    **options: Unpack[Options],
) -> list[RunConfig]:
    """Every method on every task with every seed, seed by seed, so that early results are of all methods."""
    seeds = list(seeds)  # of an array, too
    for name, values in (("tasks", tasks), ("algos", algos), ("seeds", seeds)):
        if not values:
            raise ValueError(f"{name} must name at least one.")
        twice = [value for value in values if list(values).count(value) > 1]
        if twice:
            raise ValueError(f"{name} must name each only once, not {twice[0]!r} again.")
    presets: dict[str, Options] = dict.fromkeys(tasks, options)
    if RECOMMENDED in algos and options.get("preset") is None:
        # That of the recommended method is the preset of all that are compared with it, too.
        presets = {task: {**options, "preset": choice_on(task).preset} for task in tasks}
    return [
        configure(task, algo, seed, changes=changes, **presets[task])
        for seed in seeds
        for task in tasks
        for algo in algos
    ]


def changes_of(pairs: Sequence[str]) -> dict[str, Plain]:
    """Changes of settings from NAME=VALUE; values are JSON, or else text."""
    changes: dict[str, Plain] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise ValueError(f"--set takes NAME=VALUE, not {pair!r}.")
        try:
            changes[name] = json.loads(value)
        except json.JSONDecodeError:
            changes[name] = value
        except (ValueError, RecursionError) as cause:
            raise ValueError(
                f"--set {name}: the value is no setting, but a number or a list beyond all bounds."
            ) from cause
    return changes


def new_run(out: Path, config: RunConfig) -> RunFolder:
    """The folder of a new run under `out`, with its config.json; nothing is written for a task that cannot run here."""
    find_task(config.task).check_installed()
    folder = RunFolder(out / config.name)
    folder.create(config)
    return folder


def rename_task(run: Path, task: str) -> None:
    """Let a run go on under another name of its task, which must have the same sizes, bounds and horizon."""
    folder, known = RunFolder(run), find_task(task)
    config = folder.config(named=False)
    if folder.population() is not None:
        raise ValueError(f"{run} is trained in a population: resume it under its old name, with all of its runs.")
    if config.preset not in (*known.presets, DEFAULT):
        raise ValueError(f"task: {task!r} has no preset {config.preset!r}, with which {run} was begun.")
    with folder.locked():
        check_same_task(folder, known.spec)
        folder.change(task=task)


def _in_rounds(steps: int, algorithm: Algorithm) -> int:
    """About so many steps, with as many for each copy of the environment."""
    copies = algorithm.environments
    return max(steps // copies, 1) * copies


def _said(value: int | None, otherwise: int) -> int:
    return otherwise if value is None else value


def variant_of(preset: str, changes: Mapping[str, object]) -> str:
    """What tells runs of one method apart: the preset, if it is not the task's first, and the changes."""
    parts = [preset] if preset else []
    parts += [f"{name}={_short(without_numpy(value))}" for name, value in sorted(changes.items())]
    return "+".join(parts)


def _short(value: object) -> str:
    if isinstance(value, dict):
        return "-".join(str(item) for item in value.values())
    return "-".join(str(item) for item in value) if isinstance(value, list | tuple) else str(value)
