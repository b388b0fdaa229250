"""Run folders at an address that fsspec reaches (s3://, gs://, sftp://, file://, ...), and their local copies.

A machine trains in a folder of its own and pushes it after every checkpoint. The order makes a push safe at any
moment: what the checkpoint's state file names goes first, the state file last, what it no longer names is deleted
then. Whoever takes a run over writes its name into `owner`; one that finds another's name there stops.
"""

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast
from uuid import uuid4

from feasible.run.config import RunConfig
from feasible.run.disk.archive import write_atomically
from feasible.run.disk.checkpoint import STATE
from feasible.run.folder import RunFolder
from feasible.run.watch import Line, Watcher

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem  # pyright: ignore[reportMissingImports]

CONFIG, METRICS, CHECKPOINT, OWNER = "config.json", "metrics.jsonl", "checkpoint", "owner"
PUSH_METRICS = 20.0  # seconds between two copies of the metrics alone


def is_address(place: str) -> bool:
    """Whether a place is an address rather than a path."""
    return "://" in place


class Store:
    """The runs at an address."""

    def __init__(self, address: str):
        try:
            from fsspec.core import url_to_fs  # pyright: ignore[reportMissingImports]
        except ImportError as cause:
            raise ValueError(f"{address}: addresses need fsspec: pip install 'feasible[ray]'.") from cause
        try:
            self._files: AbstractFileSystem
            self._files, self._root = url_to_fs(address)
        except (ImportError, ValueError) as cause:
            raise ValueError(f"{address}: {cause}.") from cause
        self.address = address

    def runs(self) -> list[str]:
        """The names of the runs there are."""
        found = self._files.glob(f"{self._root}/**/{CONFIG}")
        return sorted(str(path)[len(self._root) :].strip("/").removesuffix(f"/{CONFIG}") for path in found)

    def owned_by(self, name: str) -> str:
        path = self._path(name, OWNER)
        return self._read(path).decode() if self._files.exists(path) else ""

    def take(self, name: str, owner: str) -> None:
        self._files.pipe_file(self._path(name, OWNER), owner.encode())

    def pull(self, name: str, folder: Path, *parts: str) -> None:
        """Bring files of a run into a folder: the named ones, or all; those that are not there are left out.

        At an address a name is any text: one that leads out of the folder is refused.
        """
        self._files.invalidate_cache()
        remote = {path: size for path, size in self._listing(name).items() if not parts or path in parts}
        for part in remote:
            if ".." in f"{name}/{part}".split("/") or part.startswith("/"):
                raise ValueError(f"{self.address}: {name}/{part} leads out of the run's folder.")
            (folder / part).parent.mkdir(parents=True, exist_ok=True)
            write_atomically(folder / part, self._read(self._path(name, part)))

    def push(self, name: str, folder: Path) -> None:
        """Make the run at the address that of the folder, its state file last."""
        self._files.invalidate_cache()
        there = self._listing(name)
        here = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
        last = f"{CHECKPOINT}/{STATE}"
        for part in sorted(here, key=lambda part: (part == last, part)):
            segment = part.startswith(f"{CHECKPOINT}/") and part != last
            if segment and there.get(part) == here[part].stat().st_size:
                continue  # segments are never changed
            self.put(name, part, here[part])
        for part in there:
            if part not in here and part != OWNER:
                self._files.rm_file(self._path(name, part))

    def put(self, name: str, part: str, path: Path) -> None:
        """One file, whole or not at all."""
        target = self._path(name, part)
        self._files.makedirs(target.rsplit("/", 1)[0], exist_ok=True)
        self._files.pipe_file(f"{target}.part", path.read_bytes())
        self._files.mv(f"{target}.part", target)

    def _listing(self, name: str) -> dict[str, int]:
        root = self._path(name)
        if not self._files.exists(root):
            return {}
        found = cast(dict[str, dict[str, int]], self._files.find(root, detail=True))
        sizes = {str(path)[len(root) :].lstrip("/"): info["size"] for path, info in found.items()}
        return {part: size for part, size in sizes.items() if not part.endswith(".part")}

    def _read(self, path: str) -> bytes:
        return cast(bytes, self._files.cat_file(path))

    def _path(self, name: str, part: str = "") -> str:
        return "/".join(piece for piece in (self._root.rstrip("/"), name, part) if piece)


@contextmanager
def fetched(place: str) -> Iterator[Path]:
    """A folder with what reports read of the runs at a place: the place itself, or copies of those at an address."""
    if not is_address(place):
        yield Path(place)
        return
    store = Store(place)
    with tempfile.TemporaryDirectory() as copies:
        for name in store.runs():
            store.pull(name, Path(copies) / name, CONFIG, METRICS)
        yield Path(copies)


class Mirror(Watcher):
    """Keeps the run at the address up to date with the folder in which it is trained."""

    def __init__(self, store: Store, name: str, folder: RunFolder):
        self._store, self._name, self._folder = store, name, folder
        self._owner, self._pushed = uuid4().hex, time.monotonic()
        store.take(name, self._owner)
        store.pull(name, folder.path)

    def logged(self, config: RunConfig, line: Line) -> None:
        if time.monotonic() - self._pushed > PUSH_METRICS:
            self._check_owner()
            self._store.put(self._name, METRICS, self._folder.metrics)
            self._pushed = time.monotonic()

    def saved(self) -> None:
        self._check_owner()
        self._store.push(self._name, self._folder.path)
        self._pushed = time.monotonic()

    def _check_owner(self) -> None:
        if self._store.owned_by(self._name) != self._owner:
            raise RuntimeError(f"{self._store.address}/{self._name} was taken over by another machine.")
