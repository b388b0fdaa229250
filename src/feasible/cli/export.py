"""`feasible export`: a trained policy as a program that needs nothing of this library."""

from pathlib import Path
from typing import Annotated

import tyro

from feasible.cli.running import know_studies, one_thread


def export(run: Annotated[Path, tyro.conf.Positional], out: Path | None = None, task: str | None = None) -> None:
    """Write a run's policy as one file that runs without feasible.

    The file also holds the constraint and its projection.

    Args:
        run: Folder of the run, or its policy file.
        out: File to write. If omitted: policy.zip beside the policy.
        task: Task whose constraint to use, for a policy file that does not name its own.
    """
    one_thread()
    know_studies()
    from feasible.run.export import export_run

    print(f"The policy as a program, with its description: {export_run(run, out, task)}")
