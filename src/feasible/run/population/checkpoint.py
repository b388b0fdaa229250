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
from feasible.run import checkpoint, replay_segments
from feasible.run.archive import ArchiveError, read_archive, write_archive
from feasible.run.folder import RunFolder
from feasible.run.population.driver import Population
from feasible.run.population.groups import Group
from feasible.run.population.lanes import Lanes
from feasible.run.population.tallies import Tallies
from feasible.run.pytrees import filled, named_arrays
from feasible.run.step import Carry

FORMAT = 2
STATE = "state.feasible"


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
    lanes: tuple[int, ...]
    """How many of the runs each lane has."""


def save(home: Path, folders: Sequence[RunFolder], population: Lanes) -> None:
    """Write a checkpoint of all runs."""
    home.mkdir(parents=True, exist_ok=True)
    arrays, counts, capacities = {}, [], []
    for number, (rows, lane) in enumerate(zip(population.rows, population.lanes, strict=True)):
        for place, group, carry in _by_group(number, lane, lane.carries):
            rest, replays = checkpoint.split(carry)
            arrays |= named_arrays(rest, f"{place}/carry")
            for own, folder in enumerate(folders[rows][group.rows]):
                folder.checkpoint.mkdir(parents=True, exist_ok=True)
                of_agent = [Replay(replay.rows[own], replay.count[own]) for replay in replays]
                counts.append([checkpoint.append_replay(folder.checkpoint, replay) for replay in of_agent])
                capacities.append([replay.capacity for replay in of_agent])
        if lane.plant.restorable:
            arrays |= {f"{_environment(number)}{name}": array for name, array in lane.plant.get_state().items()}
    description = {
        "format": FORMAT,
        "holds": "population",
        "step": population.step,
        "runs": [os.path.relpath(folder.path, home) for folder in folders],
        "metrics_sizes": [folder.flush_metrics() for folder in folders],
        "lanes": [len(lane.seeds) for lane in population.lanes],
        "failures": [{str(agent): reason for agent, reason in lane.failures.items()} for lane in population.lanes],
        "tallies": [lane.tallies.as_plain() for lane in population.lanes],
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
    lanes = cast(list[int], description["lanes"])
    return Saved(cast(int, description["step"]), tuple(runs), tuple(sizes), tuple(lanes))


def restore(home: Path, folders: Sequence[RunFolder], population: Lanes) -> None:
    """Bring a new population to the saved state; the folders are in its order, the lanes those of `read`."""
    description, arrays = _read(home / STATE)
    counts, step = cast(list[list[int]], description["replay_counts"]), cast(int, description["step"])
    tallies, failures = cast(list[dict], description["tallies"]), cast(list[dict[str, str]], description["failures"])
    for number, (rows, lane) in enumerate(zip(population.rows, population.lanes, strict=True)):
        carries = []
        for place, group, shape in _by_group(number, lane, lane.programs.shapes):
            rest, replays = checkpoint.split(shape)
            rest = filled(rest, arrays, f"{place}/carry", str(home / STATE))
            stored = [np.empty(replay.rows.shape, replay.rows.dtype) for replay in replays]
            for own, (folder, kept) in enumerate(zip(folders[rows][group.rows], counts[rows][group.rows], strict=True)):
                for stacked, count in zip(stored, kept, strict=True):
                    like = Replay(jax.ShapeDtypeStruct(stacked.shape[1:], stacked.dtype), count)  # pyright: ignore[reportArgumentType]
                    stacked[own] = replay_segments.refill(folder.checkpoint, like, count)
                    replay_segments.prune(folder.checkpoint, count, stacked.shape[1])
            carries.append(checkpoint.join(rest, shape, stored))
        known = Tallies.from_plain(tallies[number]), {int(agent): why for agent, why in failures[number].items()}
        prefix = _environment(number)
        environment = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
        if environment:
            lane.plant.reset(lane.seeds)
            lane.plant.set_state(environment)
            lane.restore(carries, step, *known)
        else:
            lane.restore_in_new_episodes(carries, step, *known)


def finish(home: Path, folders: Sequence[RunFolder], population: Lanes) -> None:
    """End the runs: an ordinary last checkpoint for each that has not failed, and nothing left of the population.

    Until all have theirs, a kill leaves the population as it was saved before.
    """
    for number, (rows, lane) in enumerate(zip(population.rows, population.lanes, strict=True)):
        for _, group, carry in _by_group(number, lane, lane.carries):
            rest, replays = checkpoint.split(carry)
            rest, counts = jax.device_get((rest, [replay.count for replay in replays]))
            for own, folder in enumerate(folders[rows][group.rows]):
                agent = group.rows.start + own
                if lane.live[agent]:
                    checkpoint.save_finished(
                        folder.checkpoint,
                        jax.tree.map(lambda leaf, own=own: leaf[own], rest),
                        [int(count[own]) for count in counts],
                        lane.step,
                        lane.tallies.of(agent),
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


def _by_group(number: int, lane: Population, carries: list[Carry]) -> list[tuple[str, Group, Carry]]:
    """A lane's groups with what belongs to each, and where it stands in the archive."""
    groups = zip(lane.programs.groups, carries, strict=True)
    return [(f"lane-{number}/group-{place}", group, carry) for place, (group, carry) in enumerate(groups)]


def _environment(number: int) -> str:
    return f"lane-{number}/environment/"


def _read(path: Path) -> tuple[dict[str, object], dict[str, np.ndarray]]:
    description, arrays = read_archive(path)
    if description.get("holds") != "population" or description.get("format") != FORMAT:
        raise ArchiveError(f"{path} holds no checkpoint of a population that this version of feasible reads.")
    return description, arrays
