"""Small runs, in this process and as a person starts them, and what two equal runs agree in."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from unittest import mock

import jax
import pytest

from feasible.algorithms.base import Algorithm, Spec
from feasible.algorithms.description import Plain
from feasible.run.drive.population_programs import PopulationPrograms
from feasible.run.drive.programs import Programs, compiled_policy
from feasible.run.folder import RunFolder
from feasible.run.launch import Options, configure, new_run
from feasible.run.train import train
from tests.code_generation import xla_flags
from tests.run.gate import FOLDER, PATIENCE, Gates, stopping_at_gates

ROOT = Path(__file__).parents[2]
METHODS = ("nfwpo", "ddpg-projection")
SHORT: Options = {"steps": 400, "eval_every": 150, "episodes": 2, "checkpoint_every": 100}
SMALL: Mapping[str, Plain] = {"hidden_layers": [32], "warmup": 50, "batch_size": 8, "replay_size": 90}
# Of runs that processes train: without a warm-up, for which each of them would trace and load programs of its own.
QUICK: Mapping[str, Plain] = {**SMALL, "warmup": 0}


class Killed(BaseException):
    """Stands for SIGKILL: nothing catches it, and what is on the disk stays as it is."""


class Moment:
    """What a watcher is that does something at a step: of one run or of a population."""

    def __init__(self, step: int, kind: type[BaseException] | signal.Signals):
        self.step, self.kind = step, kind

    def advanced(self, step: int) -> None:
        if step != self.step:
            return
        if isinstance(self.kind, signal.Signals):
            os.kill(os.getpid(), self.kind)
        else:
            raise self.kind


@contextmanager
def as_a_user() -> Iterator[None]:
    """JAX as the command line finds it: float32, and ordinary promotion, which Optax needs."""
    settings: dict[str, object] = {"jax_enable_x64": False, "jax_numpy_dtype_promotion": "standard"}
    before = {name: getattr(jax.config, name) for name in settings}
    for name, value in settings.items():
        jax.config.update(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            jax.config.update(name, value)


_made: dict[tuple[object, ...], object] = {}


@contextmanager
def programs_shared() -> Iterator[None]:
    """Runs with equal algorithms and the same constraint share their programs, traced and compiled once for all tests
    of this process."""

    def share(make: Callable[..., object]) -> Callable[..., object]:
        def shared(algorithm: Algorithm | Sequence[Algorithm], spec: Spec, *parts: object) -> object:
            of_task = spec.constraint, spec.observation_size, spec.episode_length
            key = make, repr(algorithm), of_task, repr(parts), xla_flags()
            _made[key] = _made.get(key) or make(algorithm, spec, *parts)
            return _made[key]

        return shared

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("feasible.run.drive.lone.Programs", share(Programs))
        policies = share(compiled_policy)
        patch.setattr("feasible.run.drive.lone.compiled_policy", policies)
        patch.setattr("feasible.agents.compiled_policy", policies)
        patch.setattr("feasible.run.drive.population.PopulationPrograms", share(PopulationPrograms))
        yield


def small_run(
    out: Path,
    *,
    task: str = "reacher",
    algo: str = "nfwpo",
    steps: int = 1000,
    variant: str = "small",
    settings: Mapping[str, Plain] = SMALL,
    **intervals: int,
) -> RunFolder:
    """The folder of a new small run whose replay wraps around several times."""
    changes = {**settings, "hidden_layers": [16]} if task == "bss-3" else settings
    intervals = {"eval_every": 250, "episodes": 2, "checkpoint_every": 100} | intervals
    config = configure(task, algo, 0, steps=steps, changes=changes, variant=variant)
    return new_run(out, replace(config, log_every=intervals["eval_every"], **intervals))


def short_run(out: Path, algo: str = "nfwpo", **others: str) -> RunFolder:
    """The folder of a new run that processes train: lines at steps 150, 300 and 400, checkpoints every 100."""
    return small_run(out, algo=algo, settings=QUICK, **SHORT, **others)  # pyright: ignore[reportArgumentType]


@contextmanager
def environment(cache: Path, gates: Gates | None = None) -> Iterator[None]:
    """Processes started inside find the code under test, share compiled programs and stop at gates where there are."""
    jax.devices()  # XLA reads its flags once: let them be those of this process
    paths = [ROOT / "src", ROOT]
    found = {"FEASIBLE_CACHE": str(cache), "XLA_FLAGS": xla_flags(), "COLUMNS": "200"}
    if gates is not None:
        paths.append(ROOT / "tests" / "run" / "gated")
        found[FOLDER] = str(gates.folder)
    with mock.patch.dict(os.environ, found, PYTHONPATH=os.pathsep.join(map(str, paths))):
        yield


@contextmanager
def at_gates(gates: Gates) -> Iterator[None]:
    """Runs that commands train in this process stop at gates and tell where they began."""
    found = {FOLDER: str(gates.folder)}
    with mock.patch.dict(os.environ, found), mock.patch("feasible.run.train.train", stopping_at_gates(train)):
        yield


def command(
    *arguments: str | Path, cache: Path, gates: Gates | None = None, folder: Path | None = None
) -> subprocess.Popen[str]:
    """The command line in a process of its own, in a folder; tests of the group `processes` share what theirs have
    compiled."""
    program = [sys.executable, "-m", "feasible.cli", *map(str, arguments)]
    # Tests that run in the background of a shell ignore Ctrl-C, and so would the processes that they start.
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with environment(cache, gates):
            return subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder)
    finally:
        signal.signal(signal.SIGINT, handler)


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Exit code, what was printed, and what was complained of."""
    try:
        printed, complaint = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    return process.returncode, printed, complaint


def lines_without_time(folder: RunFolder) -> list[str]:
    """The bytes of every line, but for what the clock says."""
    lines = folder.metrics.read_text().splitlines()
    return [json.dumps({k: v for k, v in json.loads(line).items() if not k.startswith("time/")}) for line in lines]


def assert_equal_runs(one: RunFolder, other: RunFolder) -> None:
    assert lines_without_time(one) == lines_without_time(other)
    assert one.policy.read_bytes() == other.policy.read_bytes()


def files(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
