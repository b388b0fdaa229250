"""Replay on disk: rows are appended in segments, so that a checkpoint writes only what is new since the last one.

A segment holds the rows `first` to `last` - 1, counted from the beginning of the run. Those that the ring has
overwritten are deleted once a newer checkpoint stands.
"""

import io
import math
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import NDArray

from feasible.algorithms.replay import Replay
from feasible.run.disk.archive import DAMAGE, ArchiveError, read_array, write_atomically

CHUNK = 4096
HEADER = 4096  # bytes, more than that of a segment takes
CHECKED = b"crc:"  # before the CRC-32 at the end of a segment


@dataclass(frozen=True)
class Segment:
    path: Path
    first: int
    last: int


def segments(folder: Path) -> list[Segment]:
    """The segments in a folder, in the order of their rows."""
    found = []
    for path in folder.glob("replay-*.npy"):
        rows = re.fullmatch(r"replay-(\d+)-(\d+)\.npy", path.name, re.ASCII)
        if rows:
            found.append(Segment(path, int(rows[1]), int(rows[2])))
    return sorted(found, key=lambda segment: (segment.first, segment.last))


def append(folder: Path, replay: Replay, saved: int) -> int:
    """Write the rows stored since `saved` that are still there; how many rows are then saved."""
    count = int(replay.count)
    first = max(saved, count - replay.capacity)
    if first < count:
        contents = io.BytesIO()
        rows = np.concatenate(list(_rows(replay, first, count)))
        np.lib.format.write_array(contents, rows, allow_pickle=False)
        checksum = zlib.crc32(contents.getvalue())
        contents.write(CHECKED + checksum.to_bytes(4))
        write_atomically(folder / f"replay-{first}-{count}.npy", contents.getvalue())
    return count


def prune(folder: Path, count: int, capacity: int) -> None:
    """Delete what no checkpoint needs: rows overwritten since or written after `count`, and what a kill cut off."""
    for cut_off in folder.glob("*.part"):
        cut_off.unlink()
    for segment in segments(folder):
        if segment.last <= count - capacity or segment.last > count:
            segment.path.unlink()


def refill(folder: Path, like: Replay, count: int) -> NDArray:
    """The ring's rows as they were when `count` rows had been stored."""
    capacity = like.rows.shape[0]
    rows = np.zeros(like.rows.shape, like.rows.dtype)
    needed = max(0, count - capacity)
    for segment in segments(folder):
        if segment.last > count or segment.last <= needed:
            continue
        if segment.first > needed:
            break
        stored = _read(segment, like)
        places = np.arange(max(segment.first, needed), segment.last)
        rows[places % capacity] = stored[places - segment.first]
        needed = segment.last
    if needed < count:
        raise ArchiveError(f"{folder} lacks rows {needed} to {count - 1} of the replay.")
    return rows


def _read(segment: Segment, like: Replay) -> NDArray:
    shape = segment.last - segment.first, like.rows.shape[1]
    if segment.path.stat().st_size > math.prod(shape) * like.rows.dtype.itemsize + HEADER:
        raise ArchiveError(f"{segment.path} is damaged: it is larger than its rows.")
    contents = segment.path.read_bytes()
    if contents[-8:-4] == CHECKED:  # segments of earlier versions have no checksum
        contents, told = contents[:-8], int.from_bytes(contents[-4:])
        if zlib.crc32(contents) != told:
            raise ArchiveError(
                f"{segment.path} is damaged: its rows have another checksum than when they were written."
            )
    try:
        stored = read_array(contents)
    except DAMAGE as cause:
        raise ArchiveError(f"{segment.path} is damaged ({cause}).") from cause
    if stored.shape != shape or stored.dtype != like.rows.dtype:
        raise ArchiveError(f"{segment.path} is damaged: it holds {stored.dtype}{list(stored.shape)}.")
    return stored


def _rows(replay: Replay, first: int, last: int) -> Iterator[NDArray]:
    for start in range(first, last, CHUNK):
        yield np.asarray(_chunk(replay.rows, start % replay.capacity))[: last - start]


@jax.jit
def _chunk(rows: Float[Array, "capacity width"], start: int) -> Float[Array, "chunk width"]:
    return rows[(start + jnp.arange(CHUNK)) % rows.shape[0]]
