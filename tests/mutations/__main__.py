"""Do the default tests notice when the mathematics changes? `python -m tests.mutations [names] [--jobs N]`, by hand.

Each mutation changes one line of a copy of `src` and runs the tests that should notice: the fewest and the fastest. The
unmutated copy has to pass all of them first. Exit code 0: all were caught; 1: one survived; 2: one could not be tried,
since its text is not in its file exactly once, or since its tests did not run.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.mutations.table import TABLE

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Mutation:
    """`before` becomes `after` in one file; `tests` are node ids."""

    name: str
    file: str
    before: str
    after: str
    tests: tuple[str, ...]

    def text(self) -> str:
        """Of the mutated file."""
        text = (ROOT / "src" / "feasible" / self.file).read_text()
        if (count := text.count(self.before)) != 1:
            raise CannotTryError(f"{self.name}: {self.before!r} occurs {count} times in {self.file}, not once.")
        return text.replace(self.before, self.after)


class CannotTryError(Exception):
    """A mutation does not apply, or tests do not run."""


class Bench:
    """Copies of the sources in a temporary folder, each tested by itself."""

    def __init__(self, folder: Path):
        self.folder = folder

    def copy(self, name: str) -> Path:
        """A copy without caches: Numba's would hide a change in a file that a compiled function calls."""
        source = self.folder / name / "src"
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        return source

    def failed(self, source: Path, tests: Sequence[str], workers: int = 0) -> str | None:
        """Run the tests on these sources: the first of them that fails, if one does."""
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(source), os.environ.get("PYTHONPATH", "")]),
            # Programs that a mutation leaves as they are need not be compiled again.
            "JAX_COMPILATION_CACHE_DIR": str(self.folder / "compiled"),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "HYPOTHESIS_STORAGE_DIRECTORY": str(source.parent / "hypothesis"),
        }
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-rfE", "--no-header", "-p", "no:cacheprovider"]
        command += ["-n", str(workers), *(f"tests/{test}" for test in tests)]
        ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        first = next((line for line in ran.stdout.splitlines() if line.startswith(("FAILED ", "ERROR "))), "")
        if ran.returncode == 0:
            return None
        if ran.returncode != 1 or not first:  # other codes say that pytest could not run the tests
            raise CannotTryError(f"{' '.join(command)}\n{ran.stdout[-3000:]}{ran.stderr[-3000:]}")
        return first.split(" ", 1)[1].split(" - ")[0]

    def caught(self, mutation: Mutation) -> bool:
        """Whether a test notices the mutation; says so in a line."""
        began, source = time.monotonic(), self.copy(mutation.name)
        (source / "feasible" / mutation.file).write_text(mutation.text())
        test = self.failed(source, mutation.tests)
        said = f"caught by {test}" if test else "SURVIVED " + " ".join(mutation.tests)
        print(f"{mutation.name:<26}{said}  {time.monotonic() - began:.0f} s", flush=True)
        shutil.rmtree(source.parent)
        return test is not None


def mutations() -> dict[str, Mutation]:
    """The table by name."""
    rows = [(group, name, texts) for group, changes in TABLE.items() for name, texts in changes.items()]
    found = {name: Mutation(name, group[0], *texts, group[1:]) for group, name, texts in rows}
    assert len(found) == len(rows), "two mutations have one name"
    return found


def main() -> int:
    known = mutations()
    parser = argparse.ArgumentParser(prog="python -m tests.mutations", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"mutations to try, all by default: {', '.join(known)}"
    )
    parser.add_argument("--jobs", type=int, default=1, help="mutations tried at a time")
    options = parser.parse_args()
    if unknown := [name for name in options.names if name not in known]:
        parser.error(f"there is no mutation {unknown[0]!r}; see --help for their names.")
    chosen = [known[name] for name in options.names] or list(known.values())
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as threads:
        bench, began = Bench(Path(folder)), time.monotonic()
        try:
            for mutation in chosen:
                mutation.text()
            source = bench.copy("unmutated")
            tests = sorted({test for mutation in chosen for test in mutation.tests})
            if failed := bench.failed(source, tests, workers=options.jobs if options.jobs > 1 else 0):
                raise CannotTryError(f"{failed} fails on the unmutated sources.")
            print(f"{'unmutated':<26}passes all tests  {time.monotonic() - began:.0f} s", flush=True)
            caught = list(threads.map(bench.caught, chosen))
        except CannotTryError as cause:
            threads.shutdown(cancel_futures=True)
            print(cause, file=sys.stderr)
            return 2
    print(f"{sum(caught)} of {len(caught)} caught in {time.monotonic() - began:.0f} s")
    return 0 if all(caught) else 1


if __name__ == "__main__":
    sys.exit(main())
