"""`feasible resume`: a run goes on where its last checkpoint left it."""

from pathlib import Path
from typing import Annotated

import tyro

from feasible.cli.running import bring_to_end, know_studies, one_thread


def resume(run: Annotated[Path, tyro.conf.Positional], tensorboard: bool = False) -> None:
    """Go on with a run from its last checkpoint, or from the beginning if it has none yet.

    Args:
        run: Folder of the run.
        tensorboard: Also write TensorBoard event files into the run's folder.
    """
    one_thread()
    know_studies()
    bring_to_end(run, tensorboard)
