"""Checkpoints: the complete state of a run, or of the runs of a population as a whole, replaced atomically.

    HOME/state.feasible                     networks, optimisers, counters, environments, how far metrics.jsonl went
    RUN/checkpoint/replay-A-B.npy           rows A to B-1 of that run's replay, appended
    RUN/checkpoint/population.json          of a population: where its state is, and at which step the run was saved

The home of a run alone is its own folder `checkpoint`, that of a population a folder `population-ID` beside its
methods'. The state file is the commit for all: segments written before it are valid once it names their count, later
ones are ignored. A run that has finished has a last state of its own, however it was trained, and no replay.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import cast

import jax
import numpy as np
from jaxtyping import PyTree
from numpy.typing import NDArray

from feasible.algorithms.replay import Replay
from feasible.run.disk import replay as replay_segments
from feasible.run.disk.archive import ArchiveError, read_archive, write_archive
from feasible.run.disk.pytrees import filled, named_arrays
from feasible.run.drive.lone import Lone
from feasible.run.drive.population import Population
from feasible.run.drive.step import Carry
from feasible.run.folder import RunFolder
from feasible.run.plain_json import brief
from feasible.run.validity import check_whole

FORMAT = 2
STATE = "state.feasible"
ENVIRONMENT = "environment/"
LISTS = {"runs": str, "metrics_sizes": int, "replay_counts": list}


@dataclass(frozen=True)
class Saved:
    """What a checkpoint says besides the arrays."""

    step: int
    finished: bool
    metrics_sizes: tuple[int, ...] = ()
    """By run."""
    runs: tuple[str, ...] = ()
    """The runs in the order of the agents, relative to their home."""
    parts: tuple[slice, ...] = ()
    """The agents of each part of a population; all are one where none are told, as in versions without parts."""


def home_of(folders: Sequence[RunFolder]) -> Path:
    """The home of the population of these runs."""
    names = sorted(folder.config().name for folder in folders)
    return folders[0].path.parent.parent / f"population-{hashlib.sha256(json.dumps(names).encode()).hexdigest()[:8]}"


def save(home: Path, folders: Sequence[RunFolder], driver: Lone | Population) -> None:
    """Write a checkpoint of all runs, in the order of the driver's agents."""
    arrays, counts, capacities = {}, [], []
    for number, (rows, carry) in enumerate(zip(driver.groups, driver.carries, strict=True)):
        rest, replays = _split(carry)
        arrays |= named_arrays(rest, _part(number))
        for own, folder in enumerate(folders[rows]):
            folder.checkpoint.mkdir(parents=True, exist_ok=True)
            of_agent = driver.of_agent(replays, own)
            counts.append([_append(folder.checkpoint, replay) for replay in of_agent])
            capacities.append([replay.capacity for replay in of_agent])
    if driver.plant.restorable:
        arrays |= {f"{ENVIRONMENT}{name}": array for name, array in driver.plant.get_state().items()}
    home.mkdir(parents=True, exist_ok=True)
    counted: dict[str, object] = {
        "failures": {str(agent): reason for agent, reason in driver.failures.items()},
        "tally": driver.tally.as_plain(),
    }
    if isinstance(driver, Population):
        counted["parts"] = [rows.stop for rows in driver.plant.rows]
    _write(home, folders, arrays, counts, driver.step, counted=counted)
    for folder, kept, sizes in zip(folders, counts, capacities, strict=True):
        if home != folder.checkpoint:
            folder.join_population(home, driver.step)
        for count, capacity in zip(kept, sizes, strict=True):
            replay_segments.prune(folder.checkpoint, count, capacity)


def finish(home: Path, folders: Sequence[RunFolder], driver: Lone | Population) -> None:
    """End the runs: a last checkpoint for each that has not failed, and nothing left of a population.

    Until all have theirs, a kill leaves the population as it was saved before.
    """
    for rows, carry in zip(driver.groups, driver.carries, strict=True):
        rest, replays = _split(carry)
        rest, stored = jax.device_get((rest, [replay.count for replay in replays]))
        for own, folder in enumerate(folders[rows]):
            if driver.live[rows.start + own]:
                save_finished(folder, driver.of_agent(rest, own), driver.of_agent(stored, own), driver.step)
    if home not in [folder.checkpoint for folder in folders] and home.exists():
        shutil.rmtree(home)
    for folder in folders:
        clear(folder)


def save_finished(folder: RunFolder, rest: PyTree, counts: list[NDArray], step: int) -> None:
    """Write the last checkpoint of a run, of its carry without the replays."""
    folder.checkpoint.mkdir(parents=True, exist_ok=True)
    arrays = named_arrays(rest, _part(0))
    _write(folder.checkpoint, [folder], arrays, [[int(count) for count in counts]], step, finished=True)


def clear(folder: RunFolder) -> None:
    """Delete what a run that has ended, or that was killed before its first checkpoint, needs no more."""
    replay_segments.prune(folder.checkpoint, 0, 0)
    folder.leave_population()


def read(home: Path) -> Saved | None:
    """What the checkpoint in a home says, or None if there is none yet; of a finished run in any format."""
    path = home / STATE
    if not path.exists():
        return None
    with _advice(home):
        description, _ = _read(path, any_finished=True)
        step = _whole(path, "step", description.get("step"))
        if description.get("finished"):
            return Saved(step, finished=True)
        runs, sizes = cast(list[str], description["runs"]), cast(list[int], description["metrics_sizes"])
        return Saved(step, False, tuple(sizes), tuple(runs), _parts(path, description.get("parts"), len(runs)))


def restore(home: Path, folders: Sequence[RunFolder], driver: Lone | Population) -> bool:
    """Bring a new driver to the saved state; the folders are in the order of its agents. Whether it is that state.

    Without saved states of the environment new episodes begin, and also where the beginning of an episode was saved
    and the environment now begins it otherwise: the actions at hand were certified for what was seen then.
    """
    path = home / STATE
    with _advice(home):
        description, arrays = _read(path)
        counts, carries = cast(list[list[int]], description["replay_counts"]), []
        for number, (rows, shape) in enumerate(zip(driver.groups, driver.shapes, strict=True)):
            rest, replays = _split(shape)
            rest = filled(rest, arrays, _part(number), str(path))
            if any(len(of_run) != len(replays) for of_run in counts[rows]):
                raise ArchiveError(f"{path} has other replays than the {len(replays)} that are needed: replay_counts.")
            stored = [
                _refilled(folders[rows], replay, [of_run[place] for of_run in counts[rows]])
                for place, replay in enumerate(replays)
            ]
            carries.append(_join(rest, shape, stored))
        try:
            driver.tally.restore(cast(dict, description["tally"]))
            failures = cast(dict[str, str], description["failures"])
            driver.failures |= {int(agent): str(reason) for agent, reason in failures.items()}
        except (TypeError, ValueError, KeyError, AttributeError) as cause:
            raise ArchiveError(f"{path}: tally is not what this version of feasible counts.") from cause
    step = cast(int, description["step"])
    environment = {
        name.removeprefix(ENVIRONMENT): array for name, array in arrays.items() if name.startswith(ENVIRONMENT)
    }
    if environment:
        driver.reset()
        with _advice(home):
            begun = _set_state(path, driver, environment)
        if begun is None or np.array_equal(begun.ravel(), np.asarray(carries[0].obs).ravel()):
            driver.restore(carries, step)
            return True
    driver.restore_in_new_episodes(carries, step)
    return False


def _write(
    home: Path,
    folders: Sequence[RunFolder],
    arrays: dict[str, NDArray],
    counts: list[list[int]],
    step: int,
    *,
    finished: bool = False,
    counted: Mapping[str, object] = {"failures": {}, "tally": {}},
) -> None:
    description = {
        "format": FORMAT,
        "holds": "checkpoint",
        "step": step,
        "finished": finished,
        "runs": [os.path.relpath(folder.path, home) for folder in folders],
        "metrics_sizes": [folder.flush_metrics() for folder in folders],
        "replay_counts": counts,
        **counted,
    }
    write_archive(home / STATE, description, arrays)


def _append(folder: Path, replay: Replay) -> int:
    """Write the rows that no segment holds yet; how many rows are then saved."""
    saved = max((s.last for s in replay_segments.segments(folder)), default=0)
    return replay_segments.append(folder, replay, saved)


def _refilled(folders: Sequence[RunFolder], shape: Replay, counts: list[int]) -> NDArray:
    """The rows of one replay of a group's agents, as `shape` has them; segments that are not of it go."""
    rows = np.empty(shape.rows.shape, shape.rows.dtype)
    by_agent = rows.reshape(-1, *rows.shape[-2:])
    for own, (folder, count) in enumerate(zip(folders, counts, strict=True)):
        like = Replay(jax.ShapeDtypeStruct(by_agent.shape[1:], rows.dtype), count)  # pyright: ignore[reportArgumentType]
        by_agent[own] = replay_segments.refill(folder.checkpoint, like, count)
        replay_segments.prune(folder.checkpoint, count, by_agent.shape[1])
    return rows


@contextmanager
def _advice(home: Path) -> Iterator[None]:
    """Say what to do about a checkpoint that cannot be used."""
    try:
        yield
    except ArchiveError as cause:
        raise ArchiveError(f"{cause} Put a copy of it back, or delete {home} and resume from step 0.") from cause


def _read(path: Path, *, any_finished: bool = False) -> tuple[dict[str, object], dict[str, NDArray]]:
    description, arrays = read_archive(path)
    if description.get("holds") != "checkpoint":
        raise ArchiveError(f"{path} holds no checkpoint.")
    if any_finished and description.get("finished") is True:
        return description, arrays
    if description.get("format") != FORMAT:
        raise ArchiveError(
            f"{path} has checkpoint format {description.get('format')}, this version of feasible reads {FORMAT}: "
            "resume with the version that config.json names."
        )
    _check(path, description)
    return description, arrays


def _check(path: Path, description: dict[str, object]) -> None:
    """Refuse a description whose fields are missing or of another kind."""
    for name in ("step", "finished", "failures", "tally", *LISTS):
        if name not in description:
            raise ArchiveError(f"{path} lacks {name}.")
    for name, kind in LISTS.items():
        values = description[name]
        if not isinstance(values, list) or not all(isinstance(value, kind) for value in values):
            raise ArchiveError(f"{path}: {name} must be a list of {kind.__name__}, not {brief(values)}.")
    counts = cast(list[list[object]], description["replay_counts"])
    sizes = cast(list[object], description["metrics_sizes"])
    _whole(path, "step", description["step"])
    for name, values in (("metrics_sizes", sizes), *(("replay_counts", of_run) for of_run in counts)):
        for value in values:
            _whole(path, name, value)
    if not len(counts) == len(sizes) == len(cast(list, description["runs"])):
        raise ArchiveError(f"{path}: runs, metrics_sizes and replay_counts are not of as many runs.")


def _parts(path: Path, ends: object, runs: int) -> tuple[slice, ...]:
    """The parts that end there; none where none are told, as of a run alone."""
    if ends is None:
        return ()
    if not isinstance(ends, list) or not ends:
        raise ArchiveError(f"{path}: parts must be a list of whole numbers, not {brief(ends)}.")
    starts = [0, *(_whole(path, "parts", end) for end in ends)]
    if starts[-1] != runs or any(last <= first for first, last in pairwise(starts)):
        raise ArchiveError(f"{path}: parts must be the ends of parts of {runs} runs, not {brief(ends)}.")
    return tuple(slice(first, last) for first, last in pairwise(starts))


def _whole(path: Path, name: str, value: object) -> int:
    """A number that a file gives, if it can be one."""
    try:
        return check_whole(name, value, 0, 2**53)
    except ValueError as cause:
        raise ArchiveError(f"{path}: {cause}") from cause


def _set_state(path: Path, driver: Lone | Population, environment: dict[str, NDArray]) -> NDArray | None:
    try:
        return driver.plant.set_state(environment)
    except (TypeError, ValueError, KeyError, IndexError) as cause:
        raise ArchiveError(f"{path} holds the state of another environment.") from cause


def _part(number: int) -> str:
    return f"group-{number}/carry"


def _is_replay(node: object) -> bool:
    return isinstance(node, Replay)


def _split(carry: Carry) -> tuple[PyTree, list[Replay]]:
    """The carry with only the counters of its replays, and the replays."""
    nodes, structure = jax.tree.flatten(carry, is_leaf=_is_replay)
    rest = jax.tree.unflatten(structure, [node.count if isinstance(node, Replay) else node for node in nodes])
    return rest, [node for node in nodes if isinstance(node, Replay)]


def _join(rest: PyTree, shape: Carry, rows: list[NDArray]) -> Carry:
    nodes, structure = jax.tree.flatten(shape, is_leaf=_is_replay)
    values, given = iter(jax.tree.leaves(rest)), iter(rows)
    full = [
        Replay(jax.numpy.asarray(next(given)), next(values)) if _is_replay(node) else next(values) for node in nodes
    ]
    return jax.tree.unflatten(structure, full)
