"""What decides a run: resolved once, written first into its folder as config.json, read by one reader."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from feasible.algorithms.description import Plain
from feasible.run.plain_json import read_object

RENAMED = {
    "settings": "preset",
    "evaluation_interval": "eval_every",
    "evaluation_episodes": "episodes",
    "log_interval": "log_every",
    "checkpoint_interval": "checkpoint_every",
}
"""Fields by the names that they had in folders of version 0.1."""


@dataclass(frozen=True)
class RunConfig:
    """All that decides a run; with the versions and the machine, what its numbers follow from."""

    task: str
    algo: str
    seed: int
    steps: int
    preset: str
    algorithm: Plain
    eval_every: int
    episodes: int
    log_every: int
    checkpoint_every: int
    variant: str = ""

    @property
    def name(self) -> str:
        """The run's folder below that of all runs."""
        variant = f"+{self.variant}" if self.variant else ""
        return f"{self.task.replace(':', '-')}/{self.algo}{variant}/seed-{self.seed}"


def read_config(path: Path) -> dict[str, object]:
    """What a config.json, or the JSON of published results, says, fields by their present names."""
    return renamed(read_object(path))


def renamed(described: Mapping[str, object]) -> dict[str, object]:
    """A description with the fields of older versions by their present names; where both are there, the present one."""
    return {RENAMED.get(name, name): described.get(RENAMED.get(name, name), value) for name, value in described.items()}
