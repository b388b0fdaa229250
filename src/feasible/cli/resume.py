"""`feasible resume`: continue a run from its last checkpoint."""

from pathlib import Path
from typing import Annotated

import tyro

from feasible.cli.running import bring_to_end, know_studies, one_thread


def resume(run: Annotated[Path, tyro.conf.Positional], task: str | None = None, tensorboard: bool = False) -> None:
    """Continue a run from its last checkpoint.

    A run without a checkpoint starts from the beginning.

    Args:
        run: Folder of the run.
        task: New name of the run's task, if you renamed it.
        tensorboard: Also write TensorBoard event files into the run's folder.
    """
    one_thread()
    know_studies()
    if task is not None:
        from feasible.run.launch import rename_task

        rename_task(run, task)
    bring_to_end(run, tensorboard)
