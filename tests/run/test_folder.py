"""Run folders: begun once, however many try at the same moment."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import cast

import numpy as np

from feasible.run.folder import RunFolder
from feasible.run.launch import configure, grid
from feasible.run.options import Options

AT_ONCE = 8


def test_of_many_that_begin_the_same_run_at_once_one_does(tmp_path: Path) -> None:
    barrier = Barrier(AT_ONCE)

    def begin(steps: int) -> str:
        config = configure("reacher", "nfwpo", 0, steps=steps)
        barrier.wait()
        try:
            RunFolder(tmp_path / "run").create(config)
        except FileExistsError as refused:
            return str(refused)
        return f"{steps} steps"

    with ThreadPoolExecutor(AT_ONCE) as pool:
        said = list(pool.map(begin, range(1_000, 1_000 + AT_ONCE)))
    (begun,) = (words for words in said if words.endswith("steps"))
    assert RunFolder(tmp_path / "run").config().steps == int(begun.split()[0])
    refusals = [words for words in said if words != begun]
    assert all("holds a run already: go on with `feasible resume" in words for words in refusals)


def test_numbers_of_numpy_are_written_as_those_of_python(tmp_path: Path) -> None:
    numbers = {"steps": 1_000, "eval_every": 500, "episodes": 2, "checkpoint_every": 250}
    own = cast(Options, numbers)
    numpy = cast(Options, {name: np.uint16(number) for name, number in numbers.items()})
    settings = {"batch_size": 32, "noise": [0.5, 0.25], "hidden_layers": [8, 4]}
    given = {"batch_size": np.int64(32), "noise": np.array([0.5, 0.25]), "hidden_layers": [np.int8(8), np.int8(4)]}
    config = configure("reacher", "nfwpo", 3, changes=settings, **own)  # pyright: ignore[reportArgumentType]
    same = configure("reacher", "nfwpo", np.int64(3), changes=given, **numpy)  # pyright: ignore[reportArgumentType]
    (other,) = grid(["reacher"], ["nfwpo"], np.arange(3, 4), changes=given, **numpy)  # pyright: ignore[reportArgumentType]
    assert same == other == config
    RunFolder(tmp_path / "run").create(same)
    assert RunFolder(tmp_path / "run").config() == config
