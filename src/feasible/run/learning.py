"""Training of an agent that a program holds: in memory, or with a run's folder as the command line writes it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from feasible.algorithms.description import describe
from feasible.catalogue.task import DEFAULT
from feasible.constraints import ConstrainedVectorEnv
from feasible.run.config import RunConfig
from feasible.run.drive.lone import Lone
from feasible.run.folder import RunFolder
from feasible.run.train import Outcome, Training
from feasible.run.validity import check_training
from feasible.run.watch import Watcher

EVAL_EVERY = 5_000
"""Steps between the evaluations of a run with a folder, where nobody says otherwise."""
LOG_EVERY = 1_000


@dataclass(frozen=True)
class Wanted:
    """What is asked of one call of `learn`."""

    until: int
    """The step to reach."""
    eval_every: int | None
    episodes: int
    checkpoint_every: int
    run: Path | None


def learn(
    driver: Lone,
    wanted: Wanted,
    name: tuple[str, str, Mapping[str, object]],
    env: ConstrainedVectorEnv | None,
    watcher: Watcher,
    before: Path | None,
) -> Outcome:
    """Bring a driver to a step; `before` is the folder that an earlier call trained it in."""
    if wanted.until <= driver.step:
        if not driver.started:
            driver.start()
        return Outcome(driver.step, finished=True)
    task, algo, about = name
    copies = driver.algorithm.environments
    log_every = max(copies, min(LOG_EVERY, wanted.eval_every or LOG_EVERY) // copies * copies)
    config = RunConfig(
        task=task,
        algo=algo,
        seed=driver.seed,
        steps=wanted.until,
        preset=DEFAULT,
        algorithm=describe(driver.algorithm),
        eval_every=wanted.eval_every or wanted.until,
        episodes=wanted.episodes,
        log_every=log_every,
        checkpoint_every=wanted.checkpoint_every,
    )
    check_training(vars(config), named=False)
    if wanted.run is None:
        return Training([], [config], None, driver, env, watcher).to_the_end()
    folder = RunFolder(wanted.run)
    if before == wanted.run:
        folder.change(steps=config.steps)
    else:
        folder.create(config, about)
        folder.cut_metrics(0)
    with folder.locked():
        return Training([folder], [config], folder.checkpoint, driver, env, watcher).to_the_end()
