"""Runs as processes of this machine: one thread each, as many at a time as it has cores."""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys

from feasible.catalogue.elsewhere import root_of
from feasible.run.folder import RunFolder

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # of <malloc.h>
ERRORS = "errors.log"  # in a run's folder: what its process complained of


def one_thread() -> dict[str, str]:
    """The environment of a run: one thread is faster for networks of this size, and its numbers are the same on every
    number of cores."""
    flags = os.environ.get("XLA_FLAGS", "")
    if "xla_cpu_multi_thread_eigen" not in flags:
        flags = f"{flags} --xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1".strip()
    return {"XLA_FLAGS": flags}


def use_one_thread() -> None:
    """Make this process such a one; before JAX is used."""
    os.environ |= one_thread()
    in_this_thread()
    keep_memory()


def in_this_thread() -> None:
    """Run programs in the thread that calls them, for this whole process; before JAX is used.

    JAX hands a program to another thread, so that the caller may go on meanwhile. A run waits for every program at
    once: it gains nothing, and two changes of thread a step cost up to a fifth of it.
    """
    import jax

    jax.config.update("jax_cpu_enable_async_dispatch", False)


def _environment(folder: RunFolder) -> dict[str, str]:
    """What a run's process finds: this one's, and the folder of its task's module, if that is one of the user's."""
    root = root_of(folder.config(named=False).task) if folder.exists() else None
    paths = [*([str(root)] if root else []), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, **({"PYTHONPATH": os.pathsep.join(paths)} if paths else {})}


def keep_memory() -> None:
    """Let glibc keep memory that is freed: programs ask for the same megabytes at every step, and getting them from
    the system anew, page by page, costs SAC a twentieth of its step. Elsewhere nothing changes."""
    tune = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if tune is not None:
        tune(MMAP_THRESHOLD, 32 << 20)  # the largest that glibc takes
        tune(TRIM_THRESHOLD, 512 << 20)


class Processes:
    """The crew of this machine: `feasible resume` on every run, `slots` of them at a time.

    Where there is one for each core, each stays on its own: a run of one thread has helpers that would otherwise hop
    to the others' cores.
    """

    def __init__(self, slots: int | None = None):
        if slots is not None and slots < 1:
            raise ValueError(f"jobs must be at least 1, not {slots}.")
        cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
        self.slots = slots or len(cores) or os.cpu_count() or 1
        self._on: dict[int, RunProcess | None] = dict.fromkeys(cores) if self.slots == len(cores) else {}

    def start(self, folder: RunFolder) -> "RunProcess":
        process = RunProcess(folder)
        free = [core for core, last in self._on.items() if last is None or last.ended]
        if free:
            process.stay_on(free[0])
            self._on[free[0]] = process
        return process

    def refresh(self) -> None:
        """Nothing is to be fetched: the runs are in their folders."""


class RunProcess:
    """One run in training."""

    begun = True

    def __init__(self, folder: RunFolder):
        self._log = folder.path / ERRORS
        command = [sys.executable, "-m", "feasible.cli", "resume", str(folder.path)]
        self._log.unlink(missing_ok=True)  # a link, perhaps: nothing is written through it
        with self._log.open("xb") as log:
            self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log, env=_environment(folder))

    def stay_on(self, core: int) -> None:
        """Keep it, and the threads that it is still to start, on one core."""
        with contextlib.suppress(ProcessLookupError):  # over already
            os.sched_setaffinity(self._process.pid, {core})

    @property
    def ended(self) -> bool:
        return self._process.poll() is not None

    def failure(self) -> str | None:
        """None while it runs, the reason if it failed, nothing said if it ended well."""
        code = self._process.poll()
        if code is None:
            return None
        if code == 0:
            self._log.unlink(missing_ok=True)
            return ""
        said = self._log.read_text(errors="replace").strip().splitlines()
        if code < 0:
            return f"it was ended by {signal.Signals(-code).name}; start again to go on from its last checkpoint"
        return said[-1] if said else f"it ended with code {code}"

    def stop(self) -> None:
        """Let it end with a checkpoint; Ctrl-C in a terminal it has heard itself."""
        self._process.terminate()

    def wait(self) -> None:
        self._process.wait()
