"""Runs on a Ray cluster: one task a run, which goes on from its last checkpoint when its machine is lost.

The runs are in a folder that all machines see, or at an address (`run.sweep.remote`); then each is trained in a
folder of its machine's own, and this machine has copies of what the overview reads.
"""

import importlib
import logging
import os
import shutil
import tempfile
import time
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from feasible.errors import sentence
from feasible.extras import require
from feasible.program_cache import VARIABLE, keep_programs
from feasible.run.config import RunConfig
from feasible.run.disk.checkpoint import STATE
from feasible.run.folder import RunFolder, RunLockedError
from feasible.run.sweep.processes import in_this_thread, keep_memory, one_thread
from feasible.run.sweep.remote import CHECKPOINT, CONFIG, METRICS, Mirror, Store, is_address
from feasible.run.sweep.sweep import prepare
from feasible.run.train import train
from feasible.run.watch import Watcher

if TYPE_CHECKING:
    from ray import ObjectRef  # pyright: ignore[reportMissingImports]

RETRIES = 10  # how often a run is started again after its machine or its process was lost
PATIENCE = 120.0  # seconds that a run waits for a lost process to let go of its folder
CARRIED = 100_000_000  # bytes of the folder of a user's module
LEFT = (".git", ".venv", "__pycache__", "runs", "report", "*.feasible")  # of it, not copied
REFRESH = 10.0  # seconds between two copies of the metrics from an address


class Cluster:
    """The crew of a Ray cluster, for runs at `place`: a path that all its machines see, or an address.

    `modules` are imported before a run is trained: those of studies with algorithms of their own. `root` is the folder
    of the user's modules, which Ray copies to every machine.
    """

    def __init__(
        self,
        address: str,
        place: str,
        slots: int | None = None,
        modules: Sequence[str] = (),
        root: Path | None = None,
    ):
        require("ray", "--ray")
        import ray  # pyright: ignore[reportMissingImports]

        if slots is not None and slots < 1:
            raise ValueError(f"jobs must be at least 1, not {slots}.")
        self.slots, self._modules = slots, tuple(modules)
        self._store = Store(place) if is_address(place) else None
        self._root = Path(tempfile.mkdtemp() if self._store else place).resolve()
        if self._store:
            weakref.finalize(self, shutil.rmtree, self._root, ignore_errors=True)
        self._refreshed, self._started = time.monotonic(), list[RunOnCluster]()
        begun = ray.is_initialized()
        if not begun:
            try:
                ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, runtime_env=_carried(root))
            except (ConnectionError, ValueError, RuntimeError) as cause:
                raise ValueError(
                    f"--ray: no Ray cluster answers at {address!r}; start one with `ray start --head` and name its "
                    "address, or 'auto' on one of its machines."
                ) from cause
        # A process a run, as on one machine: of one thread, and nothing of an earlier run is left in it.
        self._train = ray.remote(
            num_cpus=1,
            max_calls=1,
            max_retries=RETRIES,
            runtime_env={
                "env_vars": one_thread() | {"JAX_PLATFORMS": "cpu"} | _said_here() | _found(root if begun else None)
            },
        )(_train)

    def prepare(self, configs: Sequence[RunConfig]) -> list[RunFolder]:
        """The folders of the runs on this machine; those that exist must hold the same run."""
        if self._store is not None:
            for config in configs:
                self._store.pull(config.name, self._root / config.name, CONFIG, METRICS, f"{CHECKPOINT}/{STATE}")
        return prepare(self._root, configs)

    def start(self, folder: RunFolder) -> "RunOnCluster":
        name = folder.path.relative_to(self._root).as_posix()
        place = str(self._root)
        if self._store is not None:
            place = self._store.address
            self._store.put(name, CONFIG, folder.path / CONFIG)
        training = RunOnCluster(folder, name, self._train.remote(place, name, self._modules))
        self._started.append(training)
        return training

    def refresh(self) -> None:
        """Copy the metrics of the runs at an address: now and then, and once more when a run has ended."""
        if self._store is None:
            return
        due = time.monotonic() - self._refreshed > REFRESH
        for training in list(self._started):
            ended = training.failure() is not None
            if due or ended:
                self._store.pull(training.name, training.folder.path, METRICS)
            if ended:
                self._started.remove(training)
        self._refreshed = time.monotonic() if due else self._refreshed


def _said_here() -> dict[str, str]:
    """Where, or whether, compiled programs are kept, if somebody has said so on this machine."""
    return {VARIABLE: os.environ[VARIABLE]} if VARIABLE in os.environ else {}


def _found(root: Path | None) -> dict[str, str]:
    """Where a cluster that was begun before finds the user's modules: in their folder, if its machines see that."""
    return {} if root is None else {"PYTHONPATH": os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])}


def _carried(root: Path | None) -> dict[str, object] | None:
    """What Ray copies of the folder of the user's modules; too much of it is refused."""
    if root is None:
        return None
    size = sum(path.stat().st_size for path in _files(root))
    if size > CARRIED:
        raise ValueError(
            f"--ray: the folder of the task's module, {root}, has {size / 1e6:.0f} MB besides {', '.join(LEFT)}, which "
            f"Ray would copy to every machine: put the module into a folder of at most {CARRIED / 1e6:.0f} MB."
        )
    return {"working_dir": str(root), "excludes": [f"**/{name}" for name in LEFT]}


def _files(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if any(path.match(name) for name in LEFT) or path.is_symlink():
            continue
        if path.is_dir():
            yield from _files(path)
        elif path.is_file():
            yield path


class RunOnCluster:
    """One run on the cluster."""

    def __init__(self, folder: RunFolder, name: str, reference: "ObjectRef"):
        import ray  # pyright: ignore[reportMissingImports]

        self._ray, self._reference = ray, reference
        self.folder, self.name = folder, name
        self._before = self._seen()

    @property
    def begun(self) -> bool:
        """Whether something was heard of it: it may wait for a free core."""
        return self._seen() != self._before

    def failure(self) -> str | None:
        """None while it runs, the reason if it failed, an empty one if it ended well."""
        ready, _ = self._ray.wait([self._reference], timeout=0)
        if not ready:
            return None
        try:
            return self._ray.get(self._reference)
        except self._ray.exceptions.RayError as error:
            said = [line for line in str(error).splitlines() if line.strip()]
            return f"{type(error).__name__}: {said[-1].strip() if said else 'nothing more is known'}"

    def stop(self) -> None:
        """Let it end with a checkpoint: its process hears what Ctrl-C would send."""
        self._ray.cancel(self._reference)

    def wait(self) -> None:
        self._ray.wait([self._reference], timeout=PATIENCE)

    def _seen(self) -> tuple[int, int]:
        if not self.folder.metrics.exists():
            return 0, 0
        state = self.folder.metrics.stat()
        return state.st_size, state.st_mtime_ns


def _train(place: str, name: str, modules: Sequence[str]) -> str:
    """The task: train a run to its end. The reason, if it failed; failures are not tried again."""
    in_this_thread()
    keep_memory()
    keep_programs()
    for module in modules:
        importlib.import_module(module)
    try:
        if not is_address(place):
            return _to_the_end(RunFolder(Path(place) / name), Watcher())
        with tempfile.TemporaryDirectory() as copy:
            folder = RunFolder(Path(copy) / name)
            return _to_the_end(folder, Mirror(Store(place), name, folder))
    except (ValueError, OSError, RuntimeError, FloatingPointError) as error:
        return sentence(error)


def _to_the_end(folder: RunFolder, watcher: Watcher) -> str:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            outcome = train(folder, watcher)
            return "" if outcome.finished else f"it was stopped at step {outcome.step}"
        except RunLockedError:
            # The process of a lost machine may live a little longer than what the cluster hears of it.
            if time.monotonic() > deadline:
                raise
            time.sleep(1.0)
