"""What a person may say of a run besides its task, method and seed: stated once, for Python and the command line.

Nothing is imported here, so that help is there at once.
"""

from typing import TypedDict


class Options(TypedDict, total=False):
    """How runs are trained; what is not given comes from the task."""

    steps: int | None
    """Environment steps per run."""
    preset: str | None
    """Preset of the task (`feasible tasks`), or `default`. Not given: the task's first, `fair` for `recommended`."""
    variant: str
    """Name that tells a run's folder from others of the same task and algorithm."""
    eval_every: int | None
    """Steps between evaluations."""
    episodes: int | None
    """Episodes per evaluation."""
    checkpoint_every: int
    """Steps between checkpoints. Not given: 10,000."""
