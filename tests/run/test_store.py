"""Runs at an address: a machine that is lost while it copies a checkpoint, and one that was given up too early."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from feasible.run.folder import RunFolder
from feasible.run.launch import configure, new_run
from feasible.run.sweep import ray as cluster
from feasible.run.sweep.remote import Mirror, Store
from feasible.run.train import train
from tests.run.runs import assert_equal_runs

fsspec = pytest.importorskip("fsspec", reason="fsspec is part of an extra")
NAME = "toy/nfwpo/seed-0"
pytestmark = [pytest.mark.xdist_group("toy"), pytest.mark.usefixtures("shared_programs", "toy")]


def toy_run(out: Path) -> RunFolder:
    return new_run(out, configure("toy", "nfwpo", 0, checkpoint_every=70))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """An address with one run that nobody has begun."""
    address = f"memory://{tmp_path.name}"
    store = Store(address)
    store.put(NAME, "config.json", toy_run(tmp_path / "new").path / "config.json")
    yield store
    fsspec.filesystem("memory").rm(f"/{tmp_path.name}", recursive=True)


class LostError(Exception):
    """The machine is gone."""


class _Lost(Mirror):
    """A machine that is lost at its third checkpoint, after copying only some files of it."""

    def __init__(self, store: Store, folder: RunFolder, after: int):
        super().__init__(store, NAME, folder)
        self._saves, self._after = 0, after

    def saved(self) -> None:
        self._saves += 1
        if self._saves < 3:
            return super().saved()
        put, copied = self._store.put, []

        def cut_short(name: str, part: str, path: Path) -> None:
            if len(copied) == self._after:
                raise LostError
            copied.append(part)
            put(name, part, path)

        self._store.put = cut_short  # pyright: ignore[reportAttributeAccessIssue]
        super().saved()


@pytest.fixture(scope="module")
def undisturbed_run(tmp_path_factory: pytest.TempPathFactory, toy: None) -> RunFolder:
    folder = toy_run(tmp_path_factory.mktemp("undisturbed"))
    train(folder)
    return folder


@pytest.mark.parametrize("after", [0, 1, 3])
def test_a_run_goes_on_elsewhere(after: int, store: Store, undisturbed_run: RunFolder, tmp_path: Path) -> None:
    lost = RunFolder(tmp_path / "one")
    with pytest.raises(LostError):
        train(lost, _Lost(store, lost, after))
    again = Store(store.address)
    other = RunFolder(tmp_path / "other")
    mirror = Mirror(again, NAME, other)
    assert (other.checkpoint / "state.feasible").exists()
    assert train(other, mirror).finished
    fetched = RunFolder(tmp_path / "fetched")
    again.pull(NAME, fetched.path)
    assert_equal_runs(fetched, undisturbed_run)
    assert again.runs() == [NAME]
    # As in a folder: a finished run keeps no replay.
    assert [path.name for path in sorted(fetched.checkpoint.iterdir())] == ["state.feasible"]


def test_who_was_given_up_too_early_stops(store: Store, tmp_path: Path) -> None:
    first = RunFolder(tmp_path / "first")
    slow = Mirror(store, NAME, first)
    Mirror(store, NAME, RunFolder(tmp_path / "second"))
    with pytest.raises(RuntimeError, match="seed-0 was taken over by another machine"):
        train(first, slow)


def test_a_task_trains_at_an_address(undisturbed_run: RunFolder, tmp_path: Path) -> None:
    address = f"file://{tmp_path}/address"
    Store(address).put(NAME, "config.json", toy_run(tmp_path / "new").path / "config.json")
    assert cluster._train(address, NAME, ["feasible.paper.as_authors"]) == ""
    assert_equal_runs(RunFolder(tmp_path / "address" / NAME), undisturbed_run)


def test_an_unknown_address_is_refused() -> None:
    with pytest.raises(ValueError, match="nowhere://runs: "):
        Store("nowhere://runs")
