"""`feasible train`: one new run."""

from dataclasses import dataclass
from pathlib import Path
from typing import Unpack

from feasible.cli.running import bring_to_end, one_thread
from feasible.run.options import Options


@dataclass(frozen=True)
class Output:
    """Where the run is written, and in which forms."""

    out: Path = Path("runs")
    """Folder of all runs."""
    tensorboard: bool = False
    """Also write TensorBoard event files into the run's folder."""


def train(
    task: str,
    algo: str,
    seed: int = 0,
    set: tuple[str, ...] = (),
    output: Output = Output(),  # noqa: B008 -- it cannot be changed
    **training: Unpack[Options],
) -> None:
    """Train one agent on a task.

    The run's folder is OUT/TASK/ALGO/seed-SEED.

    Args:
        task: Name of the task (`feasible tasks`).
        algo: Name of the algorithm (`feasible algos`), or `recommended`.
        seed: Seed of everything random in the run.
        set: Override hyper-parameters, for example batch_size=32.
    """
    one_thread()
    if output.tensorboard:
        from feasible.run.tensorboard import require_tensorboard

        require_tensorboard()
    from feasible.run.launch import changes_of, configure, new_run

    config = configure(task, algo, seed, changes=changes_of(set), **training)
    bring_to_end(new_run(output.out, config).path, output.tensorboard)
