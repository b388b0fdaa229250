"""A run's folder: the only thing that report, resume and evaluate read.

config.json      written first: settings, versions, hardware, command line
metrics.jsonl    one JSON object a line, each with `step`; a torn last line is ignored
checkpoint/      complete training state
policy.feasible  the policy as of the last checkpoint
*.gif, *.mp4, *.png  films and pictures, which anyone may put there for the report
"""

import fcntl
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from feasible.algorithms.base import Spec
from feasible.algorithms.description import describe
from feasible.catalogue.registry import find_task
from feasible.catalogue.task import Task
from feasible.errors import TaskNotFoundError
from feasible.run.config import RunConfig, read_config
from feasible.run.disk.archive import ArchiveError, write_atomically
from feasible.run.plain_json import parse_object, printable, read_object
from feasible.run.validity import check_training

ABOUT = ("title", "constraint", "observation_size", "action_size", "action_low", "action_high", "episode_length")
"""What config.json says of the task besides its name."""
PACKAGES = ("feasible", "jax", "jaxlib", "equinox", "optax", "numpy", "gymnasium", "mujoco", "numba")


def about_task(task: Task) -> dict[str, object]:
    """What a run's folder says of its task: for people, and so that it goes on with no other."""
    words: dict[str, object] = {"title": task.title, "constraint": task.words}
    return {**words, **(task.sizes or about_spec(task.spec))}


def about_spec(spec: Spec) -> dict[str, object]:
    """The same of an environment without a name."""
    return {
        "observation_size": spec.observation_size,
        "action_size": spec.action_size,
        "action_low": spec.low.tolist(),
        "action_high": spec.high.tolist(),
        "episode_length": spec.episode_length,
    }


class RunLockedError(RuntimeError):
    """Another process trains the run."""


class RunFolder:
    """One run on disk."""

    def __init__(self, path: Path):
        self.path = path
        self.checkpoint = path / "checkpoint"
        self.policy = path / "policy.feasible"
        self.metrics = path / "metrics.jsonl"
        self._config = path / "config.json"
        self._mark = self.checkpoint / "population.json"

    def create(self, config: RunConfig, about: Mapping[str, object] | None = None) -> None:
        """Begin a run here; refused where one has begun. `about` is what is known of a task without a name."""
        about = about_task(find_task(config.task)) if about is None else about
        made_by = {"versions": versions(), "commit": commit(), "machine": _machine(), "command": sys.argv}
        self._refuse_another()
        self.path.mkdir(parents=True, exist_ok=True)
        with _exclusive(self.path, fcntl.LOCK_EX):
            self._refuse_another()
            write_atomically(self._config, self._text({**asdict(config), **about, **made_by}))

    def _refuse_another(self) -> None:
        if self._config.exists():
            raise FileExistsError(
                f"{self.path} holds a run already: go on with `feasible resume {self.path}` (in Python, "
                "feasible.resume(path, env)), or choose another --out, --seed or --variant (in Python, run=)."
            )

    def change(self, **fields: object) -> None:
        """Write other values of fields into config.json."""
        write_atomically(self._config, self._text({**read_object(self._config), **fields}))

    def _text(self, described: Mapping[str, object]) -> bytes:
        return (json.dumps(described, indent=1) + "\n").encode()

    def about(self) -> dict[str, object]:
        """What the folder says of the task that its run was begun on."""
        described = read_config(self._config)
        return {name: described[name] for name in ABOUT if name in described}

    def exists(self) -> bool:
        return self._config.exists()

    def config(self, *, named: bool = True) -> RunConfig:
        """What config.json says, refused where `configure` would refuse it; its task need not be `named`."""
        try:
            described = read_config(self._config)
            # A setting that the version which wrote the folder did not know yet has its default.
            described["algorithm"] = describe(check_training(described, named=named))
            return RunConfig(**{name: described[name] for name in RunConfig.__dataclass_fields__})  # pyright: ignore[reportArgumentType]
        except FileNotFoundError as cause:
            raise FileNotFoundError(f"{self.path} holds no run: there is no config.json in it.") from cause
        except TaskNotFoundError as cause:
            raise TaskNotFoundError(
                f"{self.path}: {printable(str(cause), 400)} If its task has another name now, go on with `feasible "
                f"resume {self.path} --task NAME`; if it has none, with feasible.resume(path, env) from Python."
            ) from cause
        except ValueError as cause:
            said = printable(str(cause).rstrip("."), 400)
            raise ArchiveError(f"{self._config} is damaged or of another version: {said}.") from cause

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from training the same run meanwhile; the folder is locked, since files are replaced."""
        self._refuse_links()
        with ExitStack() as held:
            try:
                held.enter_context(_exclusive(self.path, fcntl.LOCK_EX | fcntl.LOCK_NB))
            except BlockingIOError as cause:
                raise RunLockedError(f"{self.path} is being trained by another process.") from cause
            yield

    def cut_metrics(self, size: int) -> None:
        """Drop what was written after a checkpoint that had seen `size` bytes."""
        if not self.metrics.exists():
            self.metrics.touch()
        there = self.metrics.stat().st_size
        if there < size:
            raise ArchiveError(
                f"{self.metrics} has {there} bytes but the checkpoint has seen {size}: it was cut or replaced. "
                "Put the file back, or delete the folder to start the run again."
            )
        os.truncate(self.metrics, size)

    def _refuse_links(self) -> None:
        """A run is written where it is: links in a folder from elsewhere could lead to any file."""
        for path in (self.metrics, self.checkpoint):
            if path.is_symlink():
                raise ArchiveError(f"{path} is a link, through which no run is written: put what it leads to there.")

    def log(self, line: Mapping[str, object]) -> None:
        """Append one line."""
        text = json.dumps(line) + "\n"
        try:
            with self.metrics.open("a") as file:
                file.write(text)
        except OSError as cause:
            raise OSError(
                cause.errno,
                f"{self.metrics} could not be written ({cause.strerror}): free some space and resume the run; "
                "its last checkpoint is intact",
            ) from cause

    def population(self) -> Path | None:
        """The folder of the population that the run is trained in, if it has been saved in one and has not ended."""
        if not self._mark.exists():
            return None
        try:
            said = read_object(self._mark).get("population")
        except ValueError as cause:
            raise ArchiveError(f"{self._mark} is damaged: {cause}.") from cause
        # Beside the methods' folders and nowhere else: when its runs have ended, this folder is deleted.
        home = self.path.resolve().parent.parent / Path(said).name if isinstance(said, str) else None
        if home is None or not home.name.startswith("population-"):
            raise ArchiveError(f"{self._mark} is damaged: it names no folder of a population.")
        return home if home.exists() else None

    def join_population(self, home: Path, step: int) -> None:
        """Say in which population, and at which step, the run's state is."""
        mark = {"population": os.path.relpath(home, self.path), "step": step}
        write_atomically(self._mark, (json.dumps(mark) + "\n").encode())

    def leave_population(self) -> None:
        self._mark.unlink(missing_ok=True)

    def flush_metrics(self) -> int:
        """Bring the lines to the disk; how many bytes they are."""
        with self.metrics.open("a") as file:
            os.fsync(file.fileno())
        return self.metrics.stat().st_size


@contextmanager
def _exclusive(folder: Path, how: int) -> Iterator[None]:
    """Alone in the folder, among processes that ask for it."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(opened, how)
        yield
    finally:
        os.close(opened)


def read_metrics(path: Path) -> list[dict[str, float | list[float]]]:
    """The lines of a metrics file; a last line that was torn by a kill is left out."""
    lines = path.read_bytes().split(b"\n") if path.exists() else []
    read = []
    for number, line in enumerate(lines[:-1], 1):
        try:
            read.append(parse_object(line, "it"))
        except ValueError as cause:
            raise ArchiveError(f"{path} is damaged in line {number}.") from cause
    return read


@cache
def commit() -> str:
    """The commit of the checkout that the library runs from, with a + if its files were changed since; else nothing."""

    def git(*words: str) -> str:
        command = ["git", "-C", str(Path(__file__).parent), *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout.strip()

    try:
        git("ls-files", "--error-unmatch", Path(__file__).name)  # the checkout is the library's, not one around it
        return git("rev-parse", "HEAD") + "+" * bool(git("status", "--porcelain", "--untracked-files=no"))
    except (OSError, subprocess.SubprocessError):
        return ""


def versions() -> dict[str, str]:
    """Those of the packages that a run's numbers follow from."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed as a package"
    return found


def _machine() -> dict[str, str | int | None]:
    import jax

    device = jax.devices()[0]
    return {
        "system": platform.system(),
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "device": f"{device.platform} ({device.device_kind})",
    }
