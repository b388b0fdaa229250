"""The trainer: runs from their folders to their ends, one alone or several as a population.

Start or go on, log, evaluate, checkpoint, finish. Every run leaves the same folder, however it was trained:
config.json, metrics.jsonl, policy.feasible, a last checkpoint.
"""

import os
import signal
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import jax

from feasible.algorithms.description import build_algorithm
from feasible.catalogue import registry
from feasible.errors import EmptySetError, InfeasibleActionError, InvalidStepError
from feasible.run.config import RunConfig
from feasible.run.disk import checkpoint
from feasible.run.drive.faults import NotFiniteError
from feasible.run.drive.interrupt import halted_by
from feasible.run.drive.lone import Lone
from feasible.run.drive.memory import check_memory
from feasible.run.drive.plant import plant_of
from feasible.run.drive.population import Population
from feasible.run.evaluate import evaluate_agents
from feasible.run.folder import RunFolder
from feasible.run.policy import save_policy
from feasible.run.watch import Line, Watcher

ENDS = (NotFiniteError, InfeasibleActionError, EmptySetError, InvalidStepError)


@dataclass(frozen=True)
class Outcome:
    """How a call ended: the step it reached, and whether that is the last one."""

    step: int
    finished: bool
    already: bool = False
    """Whether it was finished before the call."""
    failures: tuple[tuple[RunFolder, str], ...] = ()
    """The runs of a population that could not go on, and why."""


def train(
    folders: RunFolder | Sequence[RunFolder], watcher: Watcher | None = None, threads: int | None = None
) -> Outcome:
    """Train the run of a folder alone, or the runs of several as one population, from their last checkpoint if any.

    The runs of a population begin, or go on, together. An interrupt (Ctrl-C) ends them after the running step, with a
    checkpoint. `threads` step the copies of a population's environment: all cores but one if not given.
    """
    watcher = watcher or Watcher()
    alone = isinstance(folders, RunFolder)
    members = [folders] if isinstance(folders, RunFolder) else list(folders)
    configs = [folder.config() for folder in members]
    with ExitStack() as locks:
        for folder in members:
            locks.enter_context(folder.locked())
        if alone:
            return _train_alone(members[0], configs[0], watcher)
        return _train_together(members, configs, watcher, threads)


def _train_alone(folder: RunFolder, config: RunConfig, watcher: Watcher) -> Outcome:
    saved = checkpoint.read(folder.checkpoint)
    if saved is not None and saved.finished:
        checkpoint.clear(folder)
        return Outcome(saved.step, finished=True, already=True)
    home = folder.population()
    if home is not None:
        raise ValueError(
            f"{folder.path} is trained in a population, whose state is in {home}: go on with all of its runs "
            "together, as they were started."
        )
    algorithm = build_algorithm(config.algorithm)
    copies = algorithm.environments
    env = registry.make(config.task) if copies == 1 else registry.make_vec(config.task, copies)
    driver = Lone(algorithm, plant_of(env), config.seed)
    try:
        return _Training([folder], [config], folder.checkpoint, driver, watcher).to_the_end()
    except ENDS as error:
        raise type(error)(f"{error} {_last_state(folder)}") from error


def _last_state(folder: RunFolder) -> str:
    saved = checkpoint.read(folder.checkpoint)
    if saved is None:
        return f"The run {folder.path} has no checkpoint yet."
    return f"The last checkpoint, of step {saved.step}, is in {folder.checkpoint}."


def _train_together(
    folders: Sequence[RunFolder], configs: Sequence[RunConfig], watcher: Watcher, threads: int | None
) -> Outcome:
    threads = threads or max(1, len(os.sched_getaffinity(0)) - 1)
    population = Population(
        [build_algorithm(config.algorithm) for config in configs],
        plant_of(registry.make_vec(configs[0].task, len(folders), threads=threads)),
        [config.seed for config in configs],
    )
    memory, home = check_memory(population.programs), folders[0].population() or checkpoint.home_of(folders)
    return _Training(folders, configs, home, population, watcher, memory, threads).to_the_end()


class _Training:
    """Runs whose state has one home."""

    def __init__(
        self,
        folders: Sequence[RunFolder],
        configs: Sequence[RunConfig],
        home: Path,
        driver: Lone | Population,
        watcher: Watcher,
        memory: str = "",
        threads: int = 1,
    ) -> None:
        self.folders, self.configs, self.home = folders, configs, home
        self.driver, self.watcher, self.memory = driver, watcher, memory
        self.config = configs[0]  # of what all share
        self.env = registry.make_vec(self.config.task, len(folders) * self.config.episodes, threads=threads)
        self.told: set[int] = set()

    def to_the_end(self) -> Outcome:
        driver, config = self.driver, self.config
        self._begin()
        self.clock, self.clock_step = time.perf_counter(), driver.step
        self._tell_failures()
        with halted_by(driver, (signal.SIGINT, signal.SIGTERM)):
            while driver.step < config.steps and driver.live.any() and not driver.halted:
                event = self._next_event()
                driver.advance(event, self.watcher.advanced)
                if driver.step < event:
                    break
                last = event == config.steps
                self._report(evaluated=last or event % config.eval_every == 0, last=last)
                if not last and event % config.checkpoint_every == 0:
                    self._save()
            finished = driver.step >= config.steps or not driver.live.any()
            if finished:
                self._tell_failures()
                self._save_policies()
                checkpoint.finish(self.home, self.folders, driver)
                self.watcher.saved()
            else:
                self._save()
        failures = tuple((self.folders[agent], reason) for agent, reason in driver.failures.items())
        return Outcome(driver.step, finished, failures=failures)

    def _begin(self) -> None:
        saved = checkpoint.read(self.home)
        self.watcher.begin(self.configs, saved.step if saved else 0, self.memory)
        if saved:
            checkpoint.restore(self.home, self.folders, self.driver)
        else:
            for folder in self.folders:
                checkpoint.clear(folder)
        sizes = saved.metrics_sizes if saved else [0] * len(self.folders)
        for folder, size in zip(self.folders, sizes, strict=True):
            folder.cut_metrics(size)
        if not saved:
            self.driver.start()

    def _next_event(self) -> int:
        config, step = self.config, self.driver.step
        intervals = (config.log_every, config.eval_every, config.checkpoint_every)
        return min(config.steps, *((step // every + 1) * every for every in intervals))

    def _report(self, *, evaluated: bool, last: bool) -> None:
        driver, config = self.driver, self.config
        lines: list[dict[str, float | list[float]]] = [{} for _ in self.folders]
        if last or driver.step % config.log_every == 0:
            rate = (driver.step - self.clock_step) / (time.perf_counter() - self.clock)
            for line, report in zip(lines, driver.tally.reports(), strict=True):
                line |= {**report, "time/steps_per_second": rate}
        if evaluated:
            begun = time.perf_counter()
            for agent, evaluation in evaluate_agents(driver, self.env, config.episodes).items():
                lines[agent] |= evaluation.metrics()
            self.watcher.evaluated(driver.step, time.perf_counter() - begun)
        self._tell_failures()
        for agent, line in enumerate(lines):
            if line and driver.live[agent]:
                self._log(agent, {"step": driver.step, **line})
        if any(lines):
            self.clock, self.clock_step = time.perf_counter(), driver.step

    def _log(self, agent: int, line: Line) -> None:
        self.folders[agent].log(line)
        self.watcher.logged(self.configs[agent], line)

    def _tell_failures(self) -> None:
        for agent in sorted(self.driver.failures.keys() - self.told):
            self.watcher.failed(self.configs[agent], self.driver.failures[agent])
            self.told.add(agent)

    def _save(self) -> None:
        self._save_policies()
        checkpoint.save(self.home, self.folders, self.driver)
        self.watcher.saved()

    def _save_policies(self) -> None:
        driver = self.driver
        for rows, policy in zip(driver.groups, jax.device_get(driver.policies), strict=True):
            for own, agent in enumerate(range(rows.start, rows.stop)):
                if driver.live[agent]:
                    own_policy, algorithm = driver.of_agent(policy, own), driver.algorithms[agent]
                    path, task = self.folders[agent].policy, self.config.task
                    save_policy(path, algorithm, driver.plant.spec, own_policy, task)
