"""What a run may be: checked alike where it is configured and where its config.json is read.

Every refusal is one sentence that begins with the field.
"""

from collections.abc import Mapping

import numpy as np

from feasible.algorithms.base import Algorithm
from feasible.algorithms.description import build_algorithm
from feasible.catalogue.registry import find_task
from feasible.catalogue.task import DEFAULT
from feasible.run.plain_json import brief

WHOLE = {
    "seed": (0, 2**32 - 1),  # JAX keeps 32 bits: larger seeds would be those of others again
    "steps": (1, 2**53),
    "eval_every": (1, 2**53),
    "episodes": (1, 10_000),  # each is a copy of the environment
    "log_every": (1, 2**53),
    "checkpoint_every": (1, 2**53),
}
"""Whole numbers, with their least and greatest."""
LONGEST = 200  # bytes of a name: a folder's has at most 255, of which the method takes some


NAMES = ("task", "algo", "variant", "preset")


def check_run(described: Mapping[str, object]) -> None:
    """Refuse what is no description of a run, of whatever task and algorithm; of the intervals those that it has."""
    _check_there(described, *NAMES, "seed", "steps")
    for name, (least, most) in WHOLE.items():
        if name in described:
            check_whole(name, described[name], least, most)
    for name in NAMES:
        check_name(name, described[name])
    if not (described["task"] and described["algo"]):
        raise ValueError("task and algo must be names, not ''.")
    if "/" in str(described["variant"]):
        raise ValueError(f"variant must be the name of a folder, without '/', not {brief(described['variant'])}.")


def check_training(described: Mapping[str, object], *, named: bool = True) -> Algorithm:
    """Refuse what is no run that can be trained here; its algorithm otherwise. A task without a name is not `named`."""
    _check_there(described, *NAMES, *WHOLE, "algorithm")
    check_run(described)
    if named:
        known = [*find_task(str(described["task"])).presets, DEFAULT]
        if described["preset"] not in known:
            raise ValueError(f"preset must be {' or '.join(known)}, not {brief(described['preset'])}.")
    algorithm = build_algorithm(described["algorithm"])  # pyright: ignore[reportArgumentType]
    # All that happens must happen between two rounds of steps.
    for name in ("steps", "eval_every", "log_every", "checkpoint_every"):
        value, copies = described[name], algorithm.environments
        if isinstance(value, int) and value % copies:
            raise ValueError(
                f"{name} must be a multiple of the {copies} copies that are stepped at once, not {value}; "
                "change it or copies."
            )
    return algorithm


def _check_there(described: Mapping[str, object], *names: str) -> None:
    missing = next((name for name in names if name not in described), None)
    if missing is not None:
        raise ValueError(f"{missing} is missing.")


def check_whole(name: str, value: object, least: int, most: int) -> int:
    """The value, if it is a whole number between the two, NumPy's as Python's."""
    if isinstance(value, np.integer):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, not {brief(value)}.")
    if value > most:
        raise ValueError(f"{name} must be a whole number of at most {most}, not {brief(value)}.")
    return value


def check_name(name: str, value: object) -> None:
    """Refuse what is no short text on one line."""
    if not isinstance(value, str):
        raise ValueError(f"{name} must be text, not {brief(value)}.")
    if not value.isprintable():
        raise ValueError(f"{name} must be text on one line, without control characters, not {brief(value)}.")
    if len(value.encode()) > LONGEST:
        raise ValueError(f"{name} must be a name of at most {LONGEST} bytes, not {brief(value)}; choose a shorter one.")
