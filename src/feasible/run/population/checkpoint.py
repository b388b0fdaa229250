"""Checkpoints of a population: the state of all agents as a whole, replaced atomically.

    TASK/population-ID/state.feasible            all agents' networks, optimisers and counters, all copies' states
    TASK/ALGO/seed-K/checkpoint/replay-A-B.npy   rows of that agent's replay, as a lone run appends them
    TASK/ALGO/seed-K/checkpoint/population.json  which population the run belongs to, and the step it was saved at

The state file is the commit for all runs: they are resumed together, at its step. A run that has finished has an
ordinary last checkpoint of its own, and the population's folder goes when all have ended.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import jax
import numpy as np

from feasible.algorithms.replay import Replay
from feasible.run import checkpoint
from feasible.run.disk import replay as replay_segments
from feasible.run.disk.archive import ArchiveError, read_archive, write_archive
from feasible.run.disk.pytrees import filled, named_arrays
from feasible.run.folder import RunFolder
from feasible.run.population.driver import Population
from feasible.run.population.tallies import Tallies

FORMAT = 1
STATE = "state.feasible"
FIELDS = {"step": int, "runs": list, "metrics_sizes": list, "failures": dict, "tallies": dict, "replay_counts": list}


def home_of(folders: Sequence[RunFolder]) -> Path:
    """The folder of the population of these runs, beside their methods' folders."""
    names = sorted(folder.config().name for folder in folders)
    return folders[0].path.parent.parent / f"population-{hashlib.sha256(json.dumps(names).encode()).hexdigest()[:8]}"


@dataclass(frozen=True)
class Saved:
    """What a population's checkpoint says besides the arrays."""

    step: int
    runs: tuple[str, ...]
    """The runs in the order of the agents, relative to the population's folder."""
    metrics_sizes: tuple[int, ...]


def save(home: Path, folders: Sequence[RunFolder], population: Population) -> None:
    """Write a checkpoint of all runs."""
    home.mkdir(parents=True, exist_ok=True)
    arrays, counts, capacities = {}, [], []
    for number, (group, carry) in enumerate(zip(population.programs.groups, population.carries, strict=True)):
        rest, replays = checkpoint.split(carry)
        arrays |= named_arrays(rest, f"group-{number}/carry")
        for own, folder in enumerate(folders[group.rows]):
            folder.checkpoint.mkdir(parents=True, exist_ok=True)
            of_agent = [Replay(replay.rows[own], replay.count[own]) for replay in replays]
            counts.append([checkpoint.append_replay(folder.checkpoint, replay) for replay in of_agent])
            capacities.append([replay.capacity for replay in of_agent])
    if population.plant.restorable:
        arrays |= {f"environment/{name}": array for name, array in population.plant.get_state().items()}
    description = {
        "format": FORMAT,
        "holds": "population",
        "step": population.step,
        "runs": [os.path.relpath(folder.path, home) for folder in folders],
        "metrics_sizes": [folder.flush_metrics() for folder in folders],
        "failures": {str(agent): reason for agent, reason in population.failures.items()},
        "tallies": population.tallies.as_plain(),
        "replay_counts": counts,
    }
    write_archive(home / STATE, description, arrays)
    for folder, kept, sizes in zip(folders, counts, capacities, strict=True):
        folder.join_population(home, population.step)
        for count, capacity in zip(kept, sizes, strict=True):
            replay_segments.prune(folder.checkpoint, count, capacity)


def read(home: Path) -> Saved:
    """What the checkpoint in a population's folder says."""
    description, _ = _read(home / STATE)
    runs, sizes = cast(list[str], description["runs"]), cast(list[int], description["metrics_sizes"])
    return Saved(cast(int, description["step"]), tuple(runs), tuple(sizes))


def restore(home: Path, folders: Sequence[RunFolder], population: Population) -> None:
    """Bring a new population to the saved state; the folders are in its order."""
    description, arrays = _read(home / STATE)
    counts = cast(list[list[int]], description["replay_counts"])
    carries = []
    for number, (group, shape) in enumerate(zip(population.programs.groups, population.programs.shapes, strict=True)):
        rest, replays = checkpoint.split(shape)
        rest = filled(rest, arrays, f"group-{number}/carry", str(home / STATE))
        rows = [np.empty(replay.rows.shape, replay.rows.dtype) for replay in replays]
        for own, folder in enumerate(folders[group.rows]):
            for stacked, count in zip(rows, counts[group.rows.start + own], strict=True):
                like = Replay(jax.ShapeDtypeStruct(stacked.shape[1:], stacked.dtype), count)  # pyright: ignore[reportArgumentType]
                stacked[own] = replay_segments.refill(folder.checkpoint, like, count)
                replay_segments.prune(folder.checkpoint, count, stacked.shape[1])
        carries.append(checkpoint.join(rest, shape, rows))
    tallies = Tallies.from_plain(cast(dict, description["tallies"]))
    failures = {int(agent): reason for agent, reason in cast(dict[str, str], description["failures"]).items()}
    step = cast(int, description["step"])
    prefix = "environment/"
    environment = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
    if environment:
        population.plant.reset(population.seeds)
        population.plant.set_state(environment)
        population.restore(carries, step, tallies, failures)
    else:
        population.restore_in_new_episodes(carries, step, tallies, failures)


def finish(home: Path, folders: Sequence[RunFolder], population: Population) -> None:
    """End the runs: an ordinary last checkpoint for each that has not failed, and nothing left of the population.

    Until all have theirs, a kill leaves the population as it was saved before.
    """
    for group, carry in zip(population.programs.groups, population.carries, strict=True):
        rest, replays = checkpoint.split(carry)
        rest, counts = jax.device_get((rest, [replay.count for replay in replays]))
        for own, folder in enumerate(folders[group.rows]):
            agent = group.rows.start + own
            if population.live[agent]:
                checkpoint.save_finished(
                    folder.checkpoint,
                    jax.tree.map(lambda leaf, own=own: leaf[own], rest),
                    [int(count[own]) for count in counts],
                    population.step,
                    population.tallies.of(agent),
                    folder.flush_metrics(),
                )
    if home.exists():
        shutil.rmtree(home)
    for folder in folders:
        clear(folder)


def clear(folder: RunFolder) -> None:
    """Delete what a run that has ended needs no more."""
    checkpoint.drop_replay(folder.checkpoint)
    folder.leave_population()


def _read(path: Path) -> tuple[dict[str, object], dict[str, np.ndarray]]:
    description, arrays = read_archive(path)
    if description.get("holds") != "population" or description.get("format") != FORMAT:
        raise ArchiveError(f"{path} holds no checkpoint of a population that this version of feasible reads.")
    for name, kind in FIELDS.items():
        if not isinstance(description.get(name), kind):
            raise ArchiveError(f"{path} is damaged: its {name} is missing or of another kind.")
    return description, arrays
