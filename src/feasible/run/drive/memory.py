"""What a population takes of the device's memory, told and checked before anything is allocated."""

import jax
import numpy as np

from feasible.run.drive.population_programs import PopulationPrograms

# What programs need besides the agents' states: batches, activations, gradients, and a replay's copy to be saved.
WORKING_SHARE = 0.1


def agent_bytes(programs: PopulationPrograms) -> list[int]:
    """By agent: the bytes of its state, nearly all of them its replay."""
    sizes = []
    for group, shape in zip(programs.groups, programs.shapes, strict=True):
        total = sum(int(np.prod(leaf.shape)) * leaf.dtype.itemsize for leaf in jax.tree.leaves(shape))
        sizes += [total // group.size] * group.size
    return sizes


def free_bytes() -> int | None:
    """What the device has left; None where it does not say (a CPU)."""
    stats = jax.local_devices()[0].memory_stats()
    if not stats or "bytes_limit" not in stats:
        return None
    return stats["bytes_limit"] - stats.get("bytes_in_use", 0)


def check_memory(programs: PopulationPrograms) -> str:
    """A sentence that says what is needed; refuses what does not fit, with the number of agents that would."""
    needed = np.cumsum([int(size * (1 + WORKING_SHARE)) for size in agent_bytes(programs)])
    free, agents = free_bytes(), len(needed)
    says = f"{agents} agents need about {needed[-1] / 1e9:.2f} GB of memory on {jax.local_devices()[0]}"
    if free is None:
        return f"{says}."
    if needed[-1] > free:
        fit = int(np.searchsorted(needed, free, side="right"))
        raise ValueError(
            f"{says}, which has {free / 1e9:.2f} GB free: {fit} of them would fit; "
            "train fewer seeds or methods at a time, or set a smaller replay_size."
        )
    return f"{says}, which has {free / 1e9:.2f} GB free."
