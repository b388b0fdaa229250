"""The replay on disk against a plain array, over random checkpoints with wrap-around and lost work."""

import tempfile
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from feasible.algorithms.replay import Replay
from feasible.run.disk.archive import ArchiveError
from feasible.run.disk.replay import append, prune, refill, segments

WIDTH = 3


def ring(count: int, capacity: int) -> Replay:
    """What the ring holds after `count` rows, the k-th of which is [k, k, k] + 1: written one by one."""
    rows = np.zeros((capacity, WIDTH), np.float32)
    for k in range(count):
        rows[k % capacity] = k + 1
    return Replay(jnp.asarray(rows), jnp.asarray(count, jnp.int32))


# (rows stored before the next checkpoint, whether the checkpoint is then cut off before its commit)
checkpoints = st.lists(st.tuples(st.integers(0, 40), st.booleans()), min_size=1, max_size=12)


@settings(max_examples=60, deadline=None)
@given(capacity=st.sampled_from([1, 7, 16]), steps=checkpoints)
def test_what_is_refilled_is_the_ring(capacity: int, steps: list[tuple[int, bool]]) -> None:
    committed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for stored, cut_off in steps:
            replay = ring(committed + stored, capacity)
            saved = append(folder, replay, committed)
            if cut_off:  # the state still names `committed`; a resumed run begins by pruning
                prune(folder, committed, capacity)
            else:
                committed = saved
                prune(folder, committed, capacity)
            expected = np.asarray(ring(committed, capacity).rows)
            np.testing.assert_array_equal(refill(folder, replay, committed), expected)
            kept = sum(segment.last - segment.first for segment in segments(folder))
            assert kept <= committed
            # No row is kept that the ring has lost, but those that share a segment with one it has.
            assert all(segment.last > committed - capacity for segment in segments(folder))


def test_long_segments_are_written_in_order(tmp_path: Path) -> None:
    replay = ring(10_000, 9_000)
    assert append(tmp_path, replay, 500) == 10_000
    assert [(s.first, s.last) for s in segments(tmp_path)] == [(1000, 10_000)]
    np.testing.assert_array_equal(np.load(tmp_path / "replay-1000-10000.npy")[:, 0], np.arange(1001, 10_001))
    np.testing.assert_array_equal(refill(tmp_path, replay, 10_000), np.asarray(replay.rows))


@pytest.mark.parametrize("shape", [(4, WIDTH), (5, WIDTH + 1)])
def test_a_segment_of_another_shape_is_refused(shape: tuple[int, int], tmp_path: Path) -> None:
    np.save(tmp_path / "replay-0-5.npy", np.zeros(shape, np.float32))
    with pytest.raises(ArchiveError, match="is damaged"):
        refill(tmp_path, ring(5, 7), 5)


def test_a_pickled_segment_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "replay-0-5.npy", np.full((5, WIDTH), None, dtype=object), allow_pickle=True)
    with pytest.raises(ArchiveError, match="allow_pickle=False"):
        refill(tmp_path, ring(5, 7), 5)
