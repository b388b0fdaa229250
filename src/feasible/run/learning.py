"""Training of an agent that a program holds: in memory, or with a run's folder as the command line writes it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from feasible.algorithms.description import describe
from feasible.catalogue.task import DEFAULT
from feasible.constraints import ConstrainedVectorEnv
from feasible.run.config import RunConfig
from feasible.run.disk import checkpoint
from feasible.run.drive.lone import Lone
from feasible.run.folder import RunFolder
from feasible.run.train import Outcome, Training
from feasible.run.validity import check_training
from feasible.run.watch import Watcher

EVAL_EVERY = 5_000
"""Steps between the evaluations of a run with a folder, where nobody says otherwise."""
LOG_EVERY = 1_000
GOING_ON = ("steps", "eval_every", "episodes", "log_every", "checkpoint_every")
"""What another call of `learn` may change of a run: not what it is."""


@dataclass(frozen=True)
class Wanted:
    """What is asked of one call of `learn`."""

    until: int
    """The step to reach."""
    eval_every: int | None
    episodes: int
    checkpoint_every: int
    run: Path | None


def configured(driver: Lone, wanted: Wanted, task: str, algo: str, variant: str) -> RunConfig:
    """What decides the run, or a sentence that says which field cannot be."""
    copies = driver.algorithm.environments
    every = LOG_EVERY if wanted.eval_every is None else min(LOG_EVERY, wanted.eval_every)
    config = RunConfig(
        task=task,
        algo=algo,
        seed=driver.seed,
        steps=wanted.until,
        preset=DEFAULT,
        algorithm=describe(driver.algorithm),
        eval_every=wanted.until if wanted.eval_every is None else wanted.eval_every,
        episodes=wanted.episodes,
        log_every=max(copies, every // copies * copies),
        checkpoint_every=wanted.checkpoint_every,
        variant=variant,
    )
    check_training(vars(config), named=False)
    return config


def folder_for(config: RunConfig, path: Path, about: Mapping[str, object], driver: Lone, *, again: bool) -> RunFolder:
    """The folder of a run that a program begins, or, `again`, goes on with from where its driver is."""
    folder = RunFolder(path)
    if not again:
        folder.create(config, about)
        folder.cut_metrics(0)
        return folder
    with folder.locked():
        saved = checkpoint.read(folder.checkpoint)
        if saved is not None and saved.step > driver.step:
            raise ValueError(
                f"{folder.path} has gone on without this agent, to step {saved.step}: go on with "
                "feasible.resume(path, env)."
            )
        folder.change(**{name: getattr(config, name) for name in GOING_ON})
        checkpoint.save(folder.checkpoint, [folder], driver)  # it is not finished any more
    return folder


def learn(
    driver: Lone, config: RunConfig, folder: RunFolder | None, env: ConstrainedVectorEnv | None, watcher: Watcher
) -> Outcome:
    """Bring a driver to the last step of a run, in memory or with a folder."""
    if folder is None:
        return Training([], [config], None, driver, env, watcher).to_the_end()
    with folder.locked():
        return Training([folder], [config], folder.checkpoint, driver, env, watcher).to_the_end()
