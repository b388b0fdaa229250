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

    Each is an independent run of one thread, or all of a task are one program on an accelerator. Finished runs are not
    repeated and unfinished ones go on, so the same command continues after an interrupt. A run that fails is reported
    and stops no other; the exit code is then 1.

    Args:
        tasks: Names of the tasks (`feasible tasks`).
        algos: Names of the algorithms (`feasible algos`), or `recommended`.
        seeds: Seeds of the runs.
        set: Override hyper-parameters of every method, for example batch_size=32.
        jobs: Runs at a time; as many as there are cores if not given.
        ray: Address of a Ray cluster to run on, or `auto`.
        device: gpu trains all runs of a task together, as one program on this machine's accelerator.
        out: Folder of all runs; with --ray one that all machines see, or an address that fsspec knows (s3://...).
    """
    if device == "cpu":
        on_cores()
    from feasible.run.launch import changes_of, grid

    configs = grid(tasks, algos, seeds, changes=changes_of(set), **training)
    failures = sweep(configs, out, jobs, ray, device)
    print(f"Look at them with: feasible report {out}")
    end(failures, len(configs))
