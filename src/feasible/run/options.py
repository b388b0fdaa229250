"""Options of a run besides its task, method and seed, stated once for Python and the command line.

This module imports nothing of the library, so help appears at once.
"""

from typing import TypedDict


class Options(TypedDict, total=False):
    """How runs are trained; omitted values come from the task."""

    steps: int | None
    """Environment steps per run."""
    preset: str | None
    """Preset of the task (`feasible tasks`), or `default`. If omitted: the task's first, or that of `recommended`."""
    variant: str
    """Name that distinguishes the run's folder from others of the same task and algorithm."""
    eval_every: int | None
    """Steps between evaluations."""
    episodes: int | None
    """Episodes per evaluation."""
    checkpoint_every: int
    """Steps between checkpoints. If omitted: 10,000."""
