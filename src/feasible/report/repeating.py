"""The command that repeats a run, from its config.json: what its preset does not say follows as options."""

import json
import shlex
from collections.abc import Mapping
from functools import cache

from feasible.algorithms.base import Algorithm
from feasible.algorithms.description import Plain, build_algorithm, describe, settings_of
from feasible.catalogue.elsewhere import is_elsewhere
from feasible.catalogue.registry import METHODS, TASKS, algorithm_of
from feasible.catalogue.task import DEFAULT
from feasible.report.runs import Run

OPTIONS = ("seed", "steps", "preset", "eval_every", "episodes", "checkpoint_every", "variant")


def command_of(run: Run) -> str:
    """The `feasible train` that trains the same; nothing for a run of no task or method that it would find."""
    if not (run.task in TASKS or is_elsewhere(run.task)) or run.algo not in METHODS:
        return ""
    try:
        trained = build_algorithm(run.described.get("algorithm"))  # pyright: ignore[reportArgumentType]
        usual = _usual(run.task, run.algo, run.preset)
    except Exception:  # a file from anywhere: a page does without the command
        return ""
    if usual is not None and type(usual) is not type(trained):
        return ""
    words = ["feasible", "train", "--task", run.task, "--algo", run.algo]
    for name in OPTIONS:
        value = run.described.get(name)
        if isinstance(value, str | int) and value != "":
            words += [f"--{name.replace('_', '-')}", str(value)]
    changes = _changes(trained, usual)
    words += ["--set", *(f"{name}={_said(value)}" for name, value in changes.items())] if changes else []
    return shlex.join(words)


@cache
def _usual(task: str, algo: str, preset: str) -> Algorithm | None:
    """The method as a preset has it; None for its defaults, which only the environment knows."""
    return algorithm_of(TASKS[task], algo, preset) if task in TASKS and preset != DEFAULT else None


def _changes(trained: Algorithm, usual: Algorithm | None) -> Mapping[str, Plain]:
    """Settings that the preset has otherwise; all of them where there is none to compare with."""
    before = settings_of(usual) if usual is not None else {}
    settings = settings_of(trained)
    return {n: describe(v) for n, v in settings.items() if n not in before or before[n] != v}


def _said(value: Plain) -> str:
    """A value as --set reads it."""
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
