"""A training run from its folder: start or go on, log, evaluate, checkpoint, finish."""

import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from feasible.algorithms.base import Algorithm
from feasible.algorithms.description import build_algorithm
from feasible.catalogue import registry
from feasible.errors import EmptySetError, InfeasibleActionError, InvalidStepError
from feasible.run import checkpoint
from feasible.run.batch_driver import BatchDriver
from feasible.run.config import RunConfig
from feasible.run.drive.finite import NotFiniteError
from feasible.run.drive.interrupt import halted_by
from feasible.run.driver import Driver
from feasible.run.environment import plant
from feasible.run.evaluate import compiled_policy, evaluate, evaluation_seeds
from feasible.run.folder import RunFolder
from feasible.run.policy import save_policy
from feasible.run.vector_plant import VectorPlant

# One line of metrics.jsonl.
Line = Mapping[str, float | list[float]]


@dataclass(frozen=True)
class Outcome:
    """How a call ended: the step it reached, and whether that is the last one."""

    step: int
    finished: bool
    already: bool = False
    """Whether it was finished before the call."""


class Watcher:
    """What a person sees of a run; this one shows nothing."""

    def begin(self, config: RunConfig, step: int) -> None: ...

    def advanced(self, step: int) -> None: ...

    def logged(self, line: Line) -> None: ...

    def saved(self) -> None: ...


class _Watchers(Watcher):
    def __init__(self, watchers: Sequence[Watcher]):
        self._watchers = watchers

    def begin(self, config: RunConfig, step: int) -> None:
        for watcher in self._watchers:
            watcher.begin(config, step)

    def advanced(self, step: int) -> None:
        for watcher in self._watchers:
            watcher.advanced(step)

    def logged(self, line: Line) -> None:
        for watcher in self._watchers:
            watcher.logged(line)

    def saved(self) -> None:
        for watcher in self._watchers:
            watcher.saved()


def watched_by(watchers: Sequence[Watcher]) -> Watcher:
    """Several watchers as one."""
    return _Watchers(watchers)


def train(folder: RunFolder, watcher: Watcher | None = None) -> Outcome:
    """Train the run of a folder to its end, from its last checkpoint if it has one.

    An interrupt (Ctrl-C) ends it after the running step, with a checkpoint.
    """
    watcher = watcher or Watcher()
    config = folder.config()
    with folder.locked():
        saved = checkpoint.read(folder.checkpoint)
        if saved is not None and saved.finished:
            checkpoint.drop_replay(folder.checkpoint)
            return Outcome(saved.step, finished=True, already=True)
        home = folder.population()
        if home is not None:
            raise ValueError(
                f"{folder.path} is trained in a population, whose state is in {home}: go on with all of its runs "
                "together, as they were started."
            )
        algorithm = build_algorithm(config.algorithm)
        driver = _driver(algorithm, config)
        try:
            if saved is None:
                checkpoint.drop_replay(folder.checkpoint)
                folder.cut_metrics(0)
                driver.start()
            else:
                checkpoint.restore(folder.checkpoint, driver)
                folder.cut_metrics(saved.metrics_size)
            watcher.begin(config, driver.step)
            with halted_by(driver, (signal.SIGINT, signal.SIGTERM)):
                return _Run(config, folder, algorithm, driver, watcher).to_the_end()
        except (NotFiniteError, InfeasibleActionError, EmptySetError, InvalidStepError) as error:
            raise type(error)(f"{error} {_last_state(folder)}") from error


def _driver(algorithm: Algorithm, config: RunConfig) -> Driver | BatchDriver:
    if algorithm.environments == 1:
        return Driver(algorithm, plant(registry.make(config.task)), config.seed)
    copies = registry.make_vec(config.task, algorithm.environments)
    return BatchDriver(algorithm, VectorPlant(copies), config.seed)


def _last_state(folder: RunFolder) -> str:
    saved = checkpoint.read(folder.checkpoint)
    if saved is None:
        return f"The run {folder.path} has no checkpoint yet."
    return f"The last checkpoint, of step {saved.step}, is in {folder.checkpoint}."


class _Run:
    def __init__(
        self,
        config: RunConfig,
        folder: RunFolder,
        algorithm: Algorithm,
        driver: Driver | BatchDriver,
        watcher: Watcher,
    ) -> None:
        self.config, self.folder, self.algorithm, self.driver, self.watcher = config, folder, algorithm, driver, watcher
        self.act = compiled_policy(algorithm, driver.plant.spec)
        self.env = registry.make_vec(config.task, config.episodes)
        self.clock = time.perf_counter()
        self.clock_step = driver.step

    def to_the_end(self) -> Outcome:
        config, driver = self.config, self.driver
        while driver.step < config.steps and not driver.halted:
            event = self._next_event()
            driver.advance(event, self.watcher.advanced)
            if driver.step < event:
                break
            last = driver.step == config.steps
            self._report(evaluated=last or driver.step % config.eval_every == 0, last=last)
            if not last and driver.step % config.checkpoint_every == 0:
                self._save(finished=False)
        finished = driver.step >= config.steps
        self._save(finished=finished)
        return Outcome(driver.step, finished)

    def _next_event(self) -> int:
        config, step = self.config, self.driver.step
        intervals = (config.log_every, config.eval_every, config.checkpoint_every)
        return min(config.steps, *((step // every + 1) * every for every in intervals))

    def _report(self, *, evaluated: bool, last: bool) -> None:
        driver, config = self.driver, self.config
        line: dict[str, float | list[float]] = {}
        if last or driver.step % config.log_every == 0:
            line |= driver.tally.report()
            line["time/steps_per_second"] = (driver.step - self.clock_step) / (time.perf_counter() - self.clock)
        if evaluated:
            seeds = evaluation_seeds(config.seed, driver.step, config.episodes)
            policy = self.algorithm.policy(driver.carry.algorithm)
            line |= evaluate(self.act, policy, self.env, seeds).metrics()
        if line:
            line = {"step": driver.step, **line}
            self.folder.log(line)
            self.watcher.logged(line)
            self.clock, self.clock_step = time.perf_counter(), driver.step

    def _save(self, *, finished: bool) -> None:
        driver = self.driver
        policy = self.algorithm.policy(driver.carry.algorithm)
        save_policy(self.folder.policy, self.algorithm, driver.plant.spec, policy, self.config.task)
        checkpoint.save(self.folder.checkpoint, driver, self.folder.flush_metrics(), finished=finished)
        self.watcher.saved()
