"""`feasible resume`: a run goes on where its last checkpoint left it."""

from pathlib import Path
from typing import Annotated

import tyro

from feasible.cli.running import bring_to_end, know_studies, one_thread


def resume(run: Annotated[Path, tyro.conf.Positional], task: str | None = None, tensorboard: bool = False) -> None:
    """Continue a run from its last checkpoint.

    A run that has none yet starts from the beginning.

    Args:
        run: Folder of the run.
        task: The name that the run's task has now, if it has been renamed.
        tensorboard: Also write TensorBoard event files into the run's folder.
    """
    one_thread()
    know_studies()
    if task is not None:
        from feasible.run.launch import rename_task

        rename_task(run, task)
    bring_to_end(run, tensorboard)
