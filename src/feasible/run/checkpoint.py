"""Checkpoints: the complete state of a training run, replaced atomically.

    checkpoint/state.feasible      networks, optimisers, counters, the environment's state, how far metrics.jsonl went
    checkpoint/replay-A-B.npy      rows A to B-1 of the replay, appended

The state file is the commit: segments written before it are valid once it names their count, later ones are ignored.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import jax
from jaxtyping import PyTree
from numpy.typing import NDArray

from feasible.algorithms.replay import Replay
from feasible.run.batch_driver import BatchDriver
from feasible.run.disk import replay as replay_segments
from feasible.run.disk.archive import ArchiveError, read_archive, write_archive
from feasible.run.disk.pytrees import filled, named_arrays
from feasible.run.drive.step import Carry
from feasible.run.driver import Driver, Tally
from feasible.run.plain_json import brief
from feasible.run.validity import check_whole

FORMAT = 1
STATE = "state.feasible"
COUNTS = ("step", "metrics_size")


@dataclass(frozen=True)
class Saved:
    """What a checkpoint says besides the arrays."""

    step: int
    metrics_size: int
    finished: bool


def save(folder: Path, driver: Driver | BatchDriver, metrics_size: int, *, finished: bool = False) -> None:
    """Write a checkpoint; a finished run keeps no replay."""
    rest, replays = split(driver.carry)
    if finished:
        save_finished(folder, rest, [int(replay.count) for replay in replays], driver.step, driver.tally, metrics_size)
        drop_replay(folder)
        return
    folder.mkdir(parents=True, exist_ok=True)
    counts = [append_replay(folder, replay) for replay in replays]
    arrays = named_arrays(rest, "carry")
    if driver.plant.restorable:
        arrays |= {f"environment/{name}": array for name, array in driver.plant.get_state().items()}
    _write(folder, arrays, counts, driver.step, driver.tally, metrics_size, finished=False)
    for replay, count in zip(replays, counts, strict=True):
        replay_segments.prune(folder, count, replay.capacity)


def save_finished(folder: Path, rest: PyTree, counts: list[int], step: int, tally: Tally, metrics_size: int) -> None:
    """Write the last checkpoint of a run, of its carry without the replays; their rows are the caller's to drop."""
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder, named_arrays(rest, "carry"), counts, step, tally, metrics_size, finished=True)


def append_replay(folder: Path, replay: Replay) -> int:
    """Write the rows that no segment holds yet; how many rows are then saved."""
    saved = max((s.last for s in replay_segments.segments(folder)), default=0)
    return replay_segments.append(folder, replay, saved)


def _write(
    folder: Path,
    arrays: dict[str, NDArray],
    counts: list[int],
    step: int,
    tally: Tally,
    metrics_size: int,
    *,
    finished: bool,
) -> None:
    description = {
        "format": FORMAT,
        "holds": "checkpoint",
        "step": step,
        "metrics_size": metrics_size,
        "finished": finished,
        "tally": tally.as_plain(),
        "replay_counts": counts,
    }
    write_archive(folder / STATE, description, arrays)


def read(folder: Path) -> Saved | None:
    """What the checkpoint in a folder says, or None if there is none yet."""
    path = folder / STATE
    if not path.exists():
        return None
    with _advice(folder):
        description, _ = _read(path)
    step, size = (cast(int, description[name]) for name in COUNTS)
    return Saved(step, size, finished=bool(description["finished"]))


def restore(folder: Path, driver: Driver | BatchDriver) -> None:
    """Bring a new driver to the saved state. Without saved states of the environment a new episode begins."""
    path = folder / STATE
    shape = driver.programs.shape
    rest, replays = split(shape)
    with _advice(folder):
        description, arrays = _read(path)
        counts = cast(list[int], description["replay_counts"])
        if len(counts) != len(replays):
            raise ArchiveError(f"{path} has {len(counts)} replays where {len(replays)} are needed: replay_counts.")
        tally = _tally(path, description["tally"])
        rest = filled(rest, arrays, "carry", str(path))
        filled_rows = [replay_segments.refill(folder, r, c) for r, c in zip(replays, counts, strict=True)]
    for replay, count in zip(replays, counts, strict=True):
        replay_segments.prune(folder, count, replay.rows.shape[0])
    carry = join(rest, shape, filled_rows)
    environment = _under("environment/", arrays)
    if environment:
        driver.reset()
        with _advice(folder):
            _set_state(path, driver, environment)
        driver.restore(carry, cast(int, description["step"]), tally)
    else:
        driver.restore_in_new_episode(carry, cast(int, description["step"]), tally)


def drop_replay(folder: Path) -> None:
    """Delete the rows of the replay: of a run that has finished, or that was killed before its first checkpoint."""
    replay_segments.prune(folder, 0, 0)


@contextmanager
def _advice(folder: Path) -> Iterator[None]:
    """Say what to do about a checkpoint that cannot be used."""
    try:
        yield
    except ArchiveError as cause:
        raise ArchiveError(f"{cause} Put a copy of it back, or delete {folder} and resume from step 0.") from cause


def _read(path: Path) -> tuple[dict[str, object], dict[str, NDArray]]:
    description, arrays = read_archive(path)
    if description.get("holds") != "checkpoint":
        raise ArchiveError(f"{path} holds no checkpoint.")
    if description.get("format") != FORMAT:
        raise ArchiveError(
            f"{path} has checkpoint format {description.get('format')}, this version of feasible reads {FORMAT}: "
            "resume with the version that config.json names."
        )
    _check(path, description)
    return description, arrays


def _check(path: Path, description: dict[str, object]) -> None:
    """Refuse a description whose fields are missing or of another kind."""
    for name in (*COUNTS, "finished", "tally", "replay_counts"):
        if name not in description:
            raise ArchiveError(f"{path} lacks {name}.")
    counts = description["replay_counts"]
    if not isinstance(counts, list):
        raise ArchiveError(f"{path}: replay_counts must be a list, not {brief(counts)}.")
    try:
        for name, value in [*((name, description[name]) for name in COUNTS), *(("replay_counts", c) for c in counts)]:
            check_whole(name, value, 0, 2**53)
    except ValueError as cause:
        raise ArchiveError(f"{path}: {cause}") from cause


def _tally(path: Path, plain: object) -> Tally:
    try:
        return Tally.from_plain(cast(dict, plain))
    except (TypeError, ValueError, KeyError) as cause:
        raise ArchiveError(f"{path}: tally is not what this version of feasible counts.") from cause


def _set_state(path: Path, driver: Driver | BatchDriver, environment: dict[str, NDArray]) -> None:
    try:
        driver.plant.set_state(environment)
    except (TypeError, ValueError, KeyError, IndexError) as cause:
        raise ArchiveError(f"{path} holds the state of another environment.") from cause


def _under(prefix: str, arrays: dict[str, NDArray]) -> dict[str, NDArray]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def _is_replay(node: object) -> bool:
    return isinstance(node, Replay)


def split(carry: Carry) -> tuple[PyTree, list[Replay]]:
    """The carry with only the counters of its replays, and the replays."""
    nodes, structure = jax.tree.flatten(carry, is_leaf=_is_replay)
    rest = jax.tree.unflatten(structure, [node.count if isinstance(node, Replay) else node for node in nodes])
    return rest, [node for node in nodes if isinstance(node, Replay)]


def join(rest: PyTree, shape: Carry, rows: list[NDArray]) -> Carry:
    nodes, structure = jax.tree.flatten(shape, is_leaf=_is_replay)
    values, given = iter(jax.tree.leaves(rest)), iter(rows)
    full = [
        Replay(jax.numpy.asarray(next(given)), next(values)) if _is_replay(node) else next(values) for node in nodes
    ]
    return jax.tree.unflatten(structure, full)
