"""Compiled programs outlive their process: a second start reads them from the user's cache folder.

JAX can keep what it compiles in a folder. Its own files are not written at once, so that a process killed meanwhile,
or a full disk, leaves a broken one for good, and processes that start together all compile. Here a program is written
to a file of its own name in one move, and one that somebody compiles at the moment is waited for.

Programs depend on the machine's kind of processor, which is in the folder's name; on the rest (the program itself,
versions, flags, the accelerator) their names depend. JAX keeps no program that calls the host, as the loops of
populations do; here they are kept, too. A program names the functions that it calls by their number only, so that the
process that loads it hands in its own.
"""

import contextlib
import hashlib
import os
import platform
import stat
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

VARIABLE = "FEASIBLE_CACHE"
OFF = ("off", "0", "no", "false")
LARGEST = 2_000_000_000  # bytes: those used longest ago give way
PATIENCE = 120.0  # seconds that a program is waited for before it is compiled here as well
LOOK = 0.05  # seconds between two looks whether it is there


def keep_programs() -> Path | None:
    """Keep what this process compiles from now on, and use what others have compiled; the folder, None without one.

    The folder is `$FEASIBLE_CACHE`, or `feasible` in `$XDG_CACHE_HOME` or `~/.cache`; FEASIBLE_CACHE=off keeps
    nothing. A folder that other users may write to is not used: programs are code. Whoever has set a cache of JAX's
    keeps that one. Call it before the first program is compiled; it changes the process's JAX configuration.
    """
    import jax

    if jax.config.jax_compilation_cache_dir:  # pyright: ignore[reportAttributeAccessIssue]
        return None
    home = _home()
    folder = None if home is None else _own_folder(home / _processor())
    if folder is None:
        return None
    try:
        from jax._src import compilation_cache, compiler

        _ = compilation_cache.get_file_cache, compilation_cache.get_cache_key, compilation_cache.compress_executable
        compiling = compiler.compile_or_get_cached
    except (ImportError, AttributeError):  # another JAX: its own files will do
        pass
    else:
        cache = ProgramCache(folder)
        compilation_cache.get_file_cache = lambda path: (cache, path)  # pyright: ignore
        compiler.compile_or_get_cached = _with_callbacks(compiling, cache)  # pyright: ignore
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    return folder


def _with_callbacks(compiling: Callable[..., Any], cache: "ProgramCache") -> Callable[..., Any]:
    """JAX's function that compiles a program or finds it in the cache, also for programs that call the host."""
    from jax._src import compilation_cache

    def found_or_compiled(
        backend: Any, program: Any, devices: Any, options: Any, callbacks: Sequence[Any], where: Any, *rest: Any
    ) -> Any:
        def compiled() -> Any:
            return compiling(backend, program, devices, options, callbacks, where, *rest)

        if not callbacks:
            return compiled()
        try:
            known = compilation_cache.get_cache_key(program, devices, options, backend)
        except Exception:  # a program that has no name: compiled as without a cache
            return compiled()
        # Apart from the name under which JAX looks: it would load the program without the functions.
        key = hashlib.sha256(f"calls the host: {known}".encode()).hexdigest()
        kept = cache.get(key)
        if kept is not None:
            with contextlib.suppress(Exception):  # a broken file, which is replaced; a device that loads no programs
                unpacked = compilation_cache.decompress_executable(kept)
                return backend.deserialize_executable(unpacked, where, options, callbacks)
        try:
            made = compiled()
            with contextlib.suppress(Exception):  # not every kind of device gives its programs away
                cache.put(key, compilation_cache.compress_executable(made.serialize()))
        finally:
            cache.release()
        return made

    return found_or_compiled


def _home() -> Path | None:
    said = os.environ.get(VARIABLE, "")
    if said.lower() in OFF:
        return None
    if said:
        return Path(said).expanduser()
    caches = os.environ.get("XDG_CACHE_HOME", "")
    try:
        return (Path(caches) if os.path.isabs(caches) else Path.home() / ".cache") / "feasible"
    except RuntimeError:  # a user without a home
        return None


def _own_folder(folder: Path) -> Path | None:
    """The folder, made if it is not there; None where it cannot be written, or others can."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.stat()
    except OSError:
        return None
    shared = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) or (hasattr(os, "getuid") and found.st_uid != os.getuid())
    return None if shared or not os.access(folder, os.W_OK | os.X_OK) else folder


def _processor() -> str:
    """The kind of processor: compiled code may use instructions that another lacks."""
    told = [platform.machine(), platform.processor()]
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().partition("\n\n")[0].splitlines()
        told += [line for line in lines if line.startswith(("model name", "flags", "Features", "CPU part"))]
    return f"programs-{hashlib.sha256(repr(told).encode()).hexdigest()[:12]}"


class ProgramCache:
    """What JAX asks for a program by its key: one file each in a folder that many processes use at once."""

    def __init__(self, folder: Path, largest: int = LARGEST):
        self._path = self.folder = folder
        self._claims = _Claims(folder / "claims")
        _prune(folder, largest)

    def get(self, key: str) -> bytes | None:
        """The program, after whoever compiles it at the moment; None: the caller is to compile it and `put` it."""
        found = self._read(key)
        if found is None and self._claims.claim(key):
            found = self._read(key)
        if found is not None:
            self._claims.release()
        return found

    def put(self, key: str, value: bytes) -> None:
        """Keep a program; readers find all of it or none."""
        new = self.folder / f"new-{os.getpid()}-{threading.get_ident()}"
        try:
            new.write_bytes(value)
            os.replace(new, self._file(key))
        except OSError:  # a full disk, a folder that has gone
            with contextlib.suppress(OSError):
                new.unlink()
        finally:
            self._claims.release()

    def release(self) -> None:
        """Leave what this thread was to compile to others."""
        self._claims.release()

    def _read(self, key: str) -> bytes | None:
        file = self._file(key)
        try:
            found = file.read_bytes()
            os.utime(file)  # used now
        except OSError:
            return None
        return found

    def _file(self, key: str) -> Path:
        return self.folder / f"{key[-64:]}.program"  # the rest of a key is the function's name


class _Claims:
    """Which programs are being compiled: locks on the bytes of one file, which end with the process that has them.

    A thread compiles one program at a time, and has one claim at most.
    """

    def __init__(self, file: Path):
        self._own, self._file = threading.local(), None
        with contextlib.suppress(ImportError, OSError):
            import fcntl

            self._lock, self._unlock = fcntl.LOCK_EX | fcntl.LOCK_NB, fcntl.LOCK_UN
            self._lockf = fcntl.lockf
            self._file = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def claim(self, key: str) -> bool:
        """Claim a program instead of what this thread claimed before; whether another process had it and is done."""
        self.release()
        place, waited = int(hashlib.sha256(key.encode()).hexdigest()[:7], 16), False
        deadline = time.monotonic() + PATIENCE
        while self._file is not None and time.monotonic() < deadline:
            try:
                self._lockf(self._file, self._lock, 1, place)
                self._own.place = place
                break
            except OSError as error:
                if not isinstance(error, BlockingIOError | PermissionError):
                    break  # a file system without locks
            waited = True
            time.sleep(LOOK)
        return waited

    def release(self) -> None:
        """Give up what this thread has claimed."""
        place = vars(self._own).pop("place", None)
        if self._file is not None and place is not None:
            with contextlib.suppress(OSError):
                self._lockf(self._file, self._unlock, 1, place)


def _prune(folder: Path, largest: int) -> None:
    """Delete the programs used longest ago, to half of the largest size; and what a killed process left unfinished."""
    with contextlib.suppress(OSError):
        for file in folder.glob("new-*"):
            if time.time() - file.stat().st_mtime > 3600:
                file.unlink(missing_ok=True)
        files = [(found.stat(), found) for found in folder.glob("*.program")]
        total = sum(found.st_size for found, _ in files)
        if total <= largest:
            return
        for found, file in sorted(files, key=lambda entry: entry[0].st_mtime):
            if total <= largest // 2:
                break
            file.unlink(missing_ok=True)
            total -= found.st_size
