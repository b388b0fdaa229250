"""The policy of a run, from its folder or from its file alone."""

from dataclasses import dataclass
from pathlib import Path

from jaxtyping import Array, PyTree

from feasible.algorithms.base import Algorithm, Spec
from feasible.algorithms.spec import spec_of
from feasible.catalogue import registry
from feasible.run.config import RunConfig
from feasible.run.disk.archive import ArchiveError
from feasible.run.folder import RunFolder
from feasible.run.policy import load_policy, trained_on


@dataclass(frozen=True)
class TrainedRun:
    """What a run has learned, and the task that it learned it for."""

    task: str
    config: RunConfig | None
    """None for a policy file that lies in no run's folder."""
    path: Path
    """The policy's file."""
    spec: Spec
    algorithm: Algorithm
    policy: PyTree[Array]

    @property
    def name(self) -> str:
        return self.config.name if self.config else f"{self.path} on {self.task}"


def load_run(run: Path, task: str | None = None) -> TrainedRun:
    """The run of a folder, or of a policy file: one in a run's folder, or one whose task it or `task` names."""
    alone = run.is_file() and (task is not None or not RunFolder(run.parent).exists())
    config = None if alone else RunFolder(run.parent if run.is_file() else run).config()
    path = run if run.is_file() else RunFolder(run).policy
    if not path.exists():
        raise ArchiveError(f"{run} has no policy yet: it is written with the first checkpoint.")
    if task is not None and config is not None:
        raise ValueError(f"--task is for a policy file: {run} is a run's folder, which names its task.")
    task = task or (config.task if config else trained_on(path))
    if not task:
        raise ArchiveError(f"{path} does not say for which task it was trained: name it with --task.")
    spec = spec_of(registry.make(task))
    return TrainedRun(task, config, path, spec, *load_policy(path, spec))
