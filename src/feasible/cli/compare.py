"""`feasible compare`: every method on every task with every seed."""

from typing import Unpack

from feasible.cli.running import Device, end, on_cores, sweep
from feasible.run.options import Options


def compare(
    tasks: tuple[str, ...],
    algos: tuple[str, ...],
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4),
    set: tuple[str, ...] = (),
    jobs: int | None = None,
    ray: str | None = None,
    device: Device = "cpu",
    out: str = "runs",
    **training: Unpack[Options],
) -> None:
    """Train several methods on several tasks with several seeds.

    Each run has one thread, or one program trains all runs of a task on an accelerator. After an interrupt, repeat the
    command: it skips finished runs and resumes the others. A run that fails is reported and stops no other run; the
    exit code is then 1.

    Args:
        tasks: Names of the tasks (`feasible tasks`).
        algos: Names of the algorithms (`feasible algos`), or `recommended`.
        seeds: Seeds of the runs.
        set: Override hyper-parameters of every method, for example batch_size=32.
        jobs: Runs at a time. If omitted: one per core.
        ray: Address of a Ray cluster to run on, or `auto`.
        device: gpu trains all runs of a task together, as one program on this machine's accelerator.
        out: Folder of all runs. With --ray: a folder that all machines see, or an address that fsspec knows (s3://...).
    """
    if device == "cpu":
        on_cores()
    from feasible.run.launch import changes_of, grid

    configs = grid(tasks, algos, seeds, changes=changes_of(set), **training)
    failures = sweep(configs, out, jobs, ray, device)
    print(f"Look at them with: feasible report {out}")
    end(failures, len(configs))
