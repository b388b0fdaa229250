"""Runs by name: from what a person asks for to a configured run folder."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypedDict, Unpack

from feasible.algorithms.description import Plain, describe
from feasible.catalogue.recommended import CHOICES, PRESET
from feasible.catalogue.registry import RECOMMENDED, algorithm_of, find_task
from feasible.run.folder import RunConfig, RunFolder


def configure(
    task: str,
    algo: str,
    seed: int,
    *,
    steps: int | None = None,
    preset: str | None = None,
    changes: Mapping[str, Plain] | None = None,
    variant: str = "",
    evaluation_interval: int | None = None,
    evaluation_episodes: int | None = None,
    checkpoint_interval: int = 10_000,
) -> RunConfig:
    """Resolve a run. Omitted values come from the task, an omitted preset is its first; `changes` override
    hyper-parameters of the algorithm."""
    known = find_task(task)
    if algo == RECOMMENDED:
        choice = CHOICES[task]
        algo, preset, changes = choice.algo, preset or PRESET, {**choice.changes, **(changes or {})}
    preset = preset or known.first_preset
    algorithm = algorithm_of(known, algo, preset, changes)
    interval = known.eval_every if evaluation_interval is None else evaluation_interval
    episodes = known.episodes if evaluation_episodes is None else evaluation_episodes
    variant = variant or _variant(preset if preset != known.first_preset else "", changes or {})
    if "/" in variant:
        raise ValueError(f"variant must be the name of a folder, without '/', not {variant!r}.")
    config = RunConfig(
        task=task,
        algo=algo,
        seed=_at_least("seed", seed, 0),
        steps=_at_least("steps", known.steps if steps is None else steps, 1),
        settings=preset,
        algorithm=describe(algorithm),
        evaluation_interval=_at_least("evaluation_interval", interval, 1),
        evaluation_episodes=_at_least("evaluation_episodes", episodes, 1),
        log_interval=min(1_000, interval),
        checkpoint_interval=_at_least("checkpoint_interval", checkpoint_interval, 1),
        variant=variant,
    )
    _check_rounds(config, algorithm.environments)
    return config


class Options(TypedDict, total=False):
    """What `configure` may be told besides task, method and seed."""

    steps: int | None
    preset: str | None
    changes: Mapping[str, Plain] | None
    variant: str
    evaluation_interval: int | None
    evaluation_episodes: int | None
    checkpoint_interval: int


def grid(
    tasks: Sequence[str], algos: Sequence[str], seeds: Sequence[int], **options: Unpack[Options]
) -> list[RunConfig]:
    """Every method on every task with every seed, seed by seed, so that early results are of all methods."""
    for name, values in (("tasks", tasks), ("algos", algos), ("seeds", seeds)):
        if not values:
            raise ValueError(f"{name} must name at least one.")
        twice = [value for value in values if list(values).count(value) > 1]
        if twice:
            raise ValueError(f"{name} must name each only once, not {twice[0]!r} again.")
    if RECOMMENDED in algos and options.get("preset") is None:
        options["preset"] = PRESET  # of all that are compared with it, too
    return [configure(task, algo, seed, **options) for seed in seeds for task in tasks for algo in algos]


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
    return changes


def new_run(out: Path, config: RunConfig) -> RunFolder:
    """The folder of a new run under `out`, with its config.json."""
    folder = RunFolder(out / config.name)
    folder.create(config)
    return folder


def _variant(preset: str, changes: Mapping[str, Plain]) -> str:
    """What tells runs of one method apart: the preset, if it is not the task's first, and the changes."""
    parts = [preset] if preset else []
    parts += [f"{name}={_short(value)}" for name, value in sorted(changes.items())]
    return "+".join(parts)


def _short(value: Plain) -> str:
    if isinstance(value, dict):
        return "-".join(str(item) for item in value.values())
    return "-".join(str(item) for item in value) if isinstance(value, list) else str(value)


def _check_rounds(config: RunConfig, copies: int) -> None:
    """All that happens must happen between two rounds of steps."""
    for name in ("steps", "evaluation_interval", "log_interval", "checkpoint_interval"):
        if getattr(config, name) % copies:
            raise ValueError(
                f"{name} must be a multiple of the {copies} copies that are stepped at once, "
                f"not {getattr(config, name)}; change it or copies."
            )


def _at_least(name: str, value: int, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, not {value!r}.")
    return value
