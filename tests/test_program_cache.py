"""Compiled programs outlive their process: whole or not there, compiled by one of many, in a folder of one's own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from feasible import program_cache
from feasible.program_cache import ProgramCache, keep_programs

KEY = "jit_f-" + "a" * 64
USES = """
import jax
from feasible.program_cache import keep_programs

events = []
jax.monitoring.register_event_listener(lambda event, **_: events.append(event.rsplit("/", 1)[1]))
folder = keep_programs()
print(jax.jit(lambda x: (x * 3).sum())(jax.numpy.arange(4.0)), events.count("cache_hits"), events.count("cache_misses"))
print(folder, jax.config.jax_compilation_cache_dir)
"""
# Calls a function of its own process from a compiled loop, and says how many programs it has compiled; the same for
# each number that it is given, and breaks the program in between, as a full disk would have left it.
CALLS_THE_HOST = """
import sys
from pathlib import Path
import jax
import numpy as np
from jax._src import compiler
from jax.experimental import io_callback
from feasible.program_cache import keep_programs

folder = Path(keep_programs())
made, compiling = [], compiler.backend_compile_and_load
compiler.backend_compile_and_load = lambda *given: made.append(0) or compiling(*given)
for place, number in enumerate(map(int, sys.argv[1:])):
    if place > 0:
        (file,) = folder.glob("*.program")
        file.write_bytes(file.read_bytes()[:100])
    add = lambda x: np.asarray(x) + number
    loop = jax.jit(lambda x: jax.lax.fori_loop(0, 3, lambda _, x: 2 * io_callback(add, x, x), x))
    print(loop.lower(np.float32(1)).compile()(np.float32(1)), len(made))
"""
# Claims the program, says so, and compiles it when it is told to.
COMPILES = """
import sys
from pathlib import Path
from feasible.program_cache import ProgramCache

cache = ProgramCache(Path(sys.argv[1]))
assert cache.get(sys.argv[2]) is None
print("claimed", flush=True)
if sys.stdin.readline() == "compile\\n":
    cache.put(sys.argv[2], b"program")
"""


def used(tmp_path: Path, **settings: str) -> tuple[list[str], list[str]]:
    """What a process that compiles a program prints: (sum, hits, misses) and (folder, JAX's folder)."""
    environment = {**os.environ, "HOME": str(tmp_path), "XLA_FLAGS": "", "JAX_PLATFORMS": "cpu", **settings}
    finished = subprocess.run([sys.executable, "-c", USES], capture_output=True, text=True, env=environment)
    assert finished.returncode == 0, finished.stderr
    first, second = finished.stdout.splitlines()
    return first.split(), second.split()


def test_a_second_process_compiles_nothing_but_a_broken_program_which_is_replaced(tmp_path: Path) -> None:
    settings = {"FEASIBLE_CACHE": "", "XDG_CACHE_HOME": str(tmp_path / "caches")}
    (total, hits, misses), (folder, jaxs) = used(tmp_path, **settings)
    assert (total, hits, folder) == ("18.0", "0", jaxs)
    assert int(misses) > 1
    assert Path(folder).parent == tmp_path / "caches" / "feasible"
    programs = {path: path.read_bytes() for path in Path(folder).glob("*.program")}
    assert len(programs) == int(misses)
    broken, whole = min(programs.items())
    broken.write_bytes(whole[: len(whole) // 2])  # as a full disk would have left it
    assert used(tmp_path, **settings)[0] == ["18.0", str(int(misses) - 1), "1"]
    assert len(broken.read_bytes()) > len(whole) // 2


def test_a_program_that_calls_the_host_is_kept_without_the_function(tmp_path: Path) -> None:
    settings = {"FEASIBLE_CACHE": str(tmp_path), "XLA_FLAGS": "", "JAX_PLATFORMS": "cpu"}

    def said(*numbers: int) -> list[str]:
        command = [sys.executable, "-c", CALLS_THE_HOST, *map(str, numbers)]
        return subprocess.run(
            command, stdout=subprocess.PIPE, text=True, env={**os.environ, **settings}, check=True
        ).stdout.split()

    assert said(1, 1) == ["22.0", "1", "22.0", "2"]  # 2 (2 (2 (1 + 1) + 1) + 1), each time by one that was compiled
    assert said(5) == ["78.0", "0"]  # 2 (2 (2 (1 + 5) + 5) + 5), by a program that the process did not compile


@pytest.mark.parametrize("said", ["off", "OFF", "0", "no"])
def test_a_variable_turns_it_off(said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEASIBLE_CACHE", said)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert keep_programs() is None
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_others_may_write_to_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program is code: whoever can put one there would run theirs as this user."""
    shared = tmp_path / program_cache._processor()
    shared.mkdir()
    shared.chmod(0o777)
    monkeypatch.setenv("FEASIBLE_CACHE", str(tmp_path))
    assert keep_programs() is None


def test_a_folder_that_cannot_be_made_is_done_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FEASIBLE_CACHE", str(tmp_path / "file" / "inside"))
    assert keep_programs() is None


def compiler(folder: Path) -> "subprocess.Popen[str]":
    """A process that has claimed the program."""
    process = subprocess.Popen(
        [sys.executable, "-c", COMPILES, str(folder), KEY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "claimed\n"
    return process


def test_a_program_that_another_process_compiles_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    process, looks = compiler(tmp_path), 0

    def sleep(_: float) -> None:
        nonlocal looks
        looks += 1
        if looks == 1:
            process.communicate("compile\n")

    monkeypatch.setattr(program_cache.time, "sleep", sleep)
    assert ProgramCache(tmp_path).get(KEY) == b"program"
    assert looks == 1


def test_a_program_whose_process_was_killed_is_compiled_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    process = compiler(tmp_path)

    def sleep(_: float) -> None:
        process.kill()
        process.wait()

    monkeypatch.setattr(program_cache.time, "sleep", sleep)
    cache = ProgramCache(tmp_path)
    assert cache.get(KEY) is None
    cache.put(KEY, b"own")
    assert cache.get(KEY) == b"own"
    process.communicate()


def test_the_programs_used_longest_ago_give_way(tmp_path: Path) -> None:
    cache = ProgramCache(tmp_path)
    for number, name in enumerate("abcd"):
        cache.put(name, bytes(100))
        os.utime(tmp_path / f"{name}.program", (number, number))
    assert cache.get("a") is not None  # used now
    ProgramCache(tmp_path, largest=399)
    assert [cache.get(name) is not None for name in "abcd"] == [True, False, False, False]
    ProgramCache(tmp_path, largest=100)
    assert cache.get("a") is not None
