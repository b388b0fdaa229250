"""Small runs for populations, and watchers of them."""

from collections.abc import Sequence
from pathlib import Path

from feasible.algorithms.description import Plain
from feasible.run.config import RunConfig
from feasible.run.folder import RunFolder
from feasible.run.launch import configure, new_run
from feasible.run.watch import Line, Watcher
from tests.run.runs import Moment

Run = tuple[str, int, dict[str, Plain]]  # method, seed, changes
SMALL: dict[str, Plain] = {"hidden_layers": [4]}
# Two groups: two methods with the same batch, and one whose batch is smaller.
RUNS: Sequence[Run] = (
    ("nfwpo", 0, {}),
    ("nfwpo", 1, {"batch_size": 8}),
    ("ddpg-shaping", 3, {"batch_size": 16}),
)


def toy_configs(runs: Sequence[Run] = RUNS, steps: int = 100, checkpoint_every: int = 25) -> list[RunConfig]:
    return [
        configure(
            "toy", algo, seed, steps=steps, checkpoint_every=checkpoint_every, changes=SMALL | changes, variant="v"
        )
        for algo, seed, changes in runs
    ]


def toy_runs(out: Path, runs: Sequence[Run] = RUNS, **intervals: int) -> list[RunFolder]:
    return [new_run(out, config) for config in toy_configs(runs, **intervals)]


class At(Moment, Watcher):
    """Does something at a step."""


class Recorder(Watcher):
    """Remembers what it hears."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.lines: list[tuple[str, Line]] = []
        self.failures: list[tuple[str, str]] = []

    def begin(self, configs: Sequence[RunConfig], step: int, memory: str) -> None:
        self.said.append(memory)

    def logged(self, config: RunConfig, line: Line) -> None:
        self.lines.append((config.name, line))

    def failed(self, config: RunConfig, reason: str) -> None:
        self.failures.append((config.name, reason))
