"""The policy of a run, from its folder."""

from dataclasses import dataclass
from pathlib import Path

from jaxtyping import Array, PyTree

from feasible.algorithms.base import Algorithm, Spec
from feasible.catalogue import registry
from feasible.run.disk.archive import ArchiveError
from feasible.run.environment import plant
from feasible.run.folder import RunConfig, RunFolder
from feasible.run.policy import load_policy


@dataclass(frozen=True)
class TrainedRun:
    """What a run has learned, and the task that it learned it for."""

    config: RunConfig
    path: Path
    """The policy's file."""
    spec: Spec
    algorithm: Algorithm
    policy: PyTree[Array]


def load_run(run: Path) -> TrainedRun:
    """The run of a folder, or of the policy file in it."""
    folder = RunFolder(run.parent if run.is_file() else run)
    config = folder.config()
    path = run if run.is_file() else folder.policy
    if not path.exists():
        raise ArchiveError(f"{folder.path} has no policy yet: it is written with the first checkpoint.")
    spec = plant(registry.make(config.task)).spec
    return TrainedRun(config, path, spec, *load_policy(path, spec))
