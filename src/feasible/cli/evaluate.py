"""`feasible evaluate`: episodes of a trained policy, and a film of one."""

from pathlib import Path
from typing import Annotated

import tyro

from feasible.cli.running import know_studies, one_thread


def evaluate(
    run: Annotated[Path, tyro.conf.Positional],
    episodes: int = 10,
    seed: int = 0,
    video: Path | None = None,
    task: str | None = None,
) -> None:
    """Play episodes with a run's policy and print their returns.

    Args:
        run: Folder of the run, or its policy file.
        episodes: Number of episodes.
        seed: Seed of the episodes.
        video: Write the first episode to this file, a .gif or an .mp4. Reports show films in the run's folder.
        task: Task to play, for a policy file that does not name its own.
    """
    one_thread()
    know_studies()
    from feasible.run.showing import show_evaluation

    show_evaluation(run, episodes, seed, video, task)
