"""The trainer: runs from their folders to their ends, one alone or several as a population.

Start or go on, log, evaluate, checkpoint, finish. Every run leaves the same folder, however it was trained:
config.json, metrics.jsonl, policy.feasible, a last checkpoint.
"""

import math
import os
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import jax

from feasible.algorithms.base import Spec
from feasible.algorithms.description import build_algorithm
from feasible.algorithms.spec import spec_of
from feasible.catalogue import registry
from feasible.constraints import ConstrainedVectorEnv
from feasible.errors import EmptySetError, InfeasibleActionError, InvalidStepError
from feasible.run.config import RunConfig
from feasible.run.disk import checkpoint
from feasible.run.drive.faults import NotFiniteError
from feasible.run.drive.groups import parts_of
from feasible.run.drive.interrupt import halted_by
from feasible.run.drive.lone import Lone
from feasible.run.drive.memory import check_memory
from feasible.run.drive.parts import Plants
from feasible.run.drive.plant import plant_of
from feasible.run.drive.population import Population
from feasible.run.evaluate import AgentsEvaluation
from feasible.run.folder import RunFolder, about_spec
from feasible.run.policy import save_policy
from feasible.run.record import Lines, Record
from feasible.run.watch import Watcher

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
    saved: int | None = None
    """The step of the last checkpoint of a run that has not finished; None where there is none."""


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


def train_on(
    folder: RunFolder, config: RunConfig, driver: Lone, env: ConstrainedVectorEnv | None, watcher: Watcher
) -> Outcome:
    """Train the run of a folder, which the caller has locked, with a driver and copies for evaluations at hand."""
    home = folder.population()
    if home is not None:
        raise ValueError(
            f"{folder.path} is trained in a population, whose state is in {home}: go on with all of its runs "
            "together, as they were started."
        )
    check_same_task(folder, driver.plant.spec)
    try:
        return Training([folder], [config], folder.checkpoint, driver, env, watcher).to_the_end()
    except ENDS as error:
        raise type(error)(f"{error} {_last_state(folder)}") from error


def _train_alone(folder: RunFolder, config: RunConfig, watcher: Watcher) -> Outcome:
    saved = checkpoint.read(folder.checkpoint)
    if saved is not None and saved.finished:
        checkpoint.clear(folder)
        return Outcome(saved.step, finished=True, already=True)
    algorithm = build_algorithm(config.algorithm)
    copies = algorithm.environments
    env = registry.make(config.task) if copies == 1 else registry.make_vec(config.task, copies)
    episodes = registry.make_vec(config.task, config.episodes)
    try:
        return train_on(folder, config, Lone(algorithm, plant_of(env), config.seed), episodes, watcher)
    finally:
        env.close()
        episodes.close()


def _last_state(folder: RunFolder) -> str:
    saved = checkpoint.read(folder.checkpoint)
    if saved is None:
        return f"The run {folder.path} has no checkpoint yet."
    return f"The last checkpoint, of step {saved.step}, is in {folder.checkpoint}."


def _train_together(
    folders: Sequence[RunFolder], configs: Sequence[RunConfig], watcher: Watcher, threads: int | None
) -> Outcome:
    task, threads = configs[0].task, threads or max(1, len(os.sched_getaffinity(0)) - 1)
    algorithms = [build_algorithm(config.algorithm) for config in configs]
    home = folders[0].population() or checkpoint.home_of(folders)
    saved = checkpoint.read(home)

    def copies(number: int) -> ConstrainedVectorEnv:
        rounds = math.ceil(number / threads)  # no more threads than make as few of them: evaluations take the others
        return registry.make_vec(task, number, threads=math.ceil(number / rounds))

    with ExitStack() as opened:
        # Evaluations have until the next one, and training is not to wait for cores.
        env = registry.make_vec(task, len(folders) * configs[0].episodes, threads=max(1, threads // 3))
        opened.callback(env.close)
        spec = spec_of(env)
        for folder in folders:
            check_same_task(folder, spec)
        parts = (saved.parts or [slice(0, len(folders))]) if saved else parts_of(algorithms, spec)
        population = Population(algorithms, Plants(copies, parts), [config.seed for config in configs])
        opened.callback(population.close)
        memory = check_memory(population.programs)
        return Training(folders, configs, home, population, env, watcher, memory).to_the_end()


class Training:
    """Runs whose state has one home, or, without folders and home, a run that leaves nothing behind.

    Evaluations are played in `env`; without one there are none. Those of a population are played by another thread
    while it trains on, at the longest until the next one. What is to be logged or saved meanwhile waits for it.
    """

    def __init__(
        self,
        folders: Sequence[RunFolder],
        configs: Sequence[RunConfig],
        home: Path | None,
        driver: Lone | Population,
        env: ConstrainedVectorEnv | None,
        watcher: Watcher,
        memory: str = "",
    ) -> None:
        self.folders, self.configs, self.home, self.env = folders, configs, home, env
        self.driver, self.watcher, self.memory = driver, watcher, memory
        self.config = configs[0]  # of what all share
        self.record = Record(folders, configs, driver, watcher)
        self.saved: int | None = None
        self._save_due = False

    def to_the_end(self) -> Outcome:
        """From where the driver is, if it has begun, or from the last checkpoint, or from the beginning."""
        driver, config = self.driver, self.config
        self._begin()
        self.clock, self.clock_step = time.perf_counter(), driver.step
        self.record.tell_failures()
        with self.record, halted_by(driver, (signal.SIGINT, signal.SIGTERM)):
            while driver.step < config.steps and driver.live.any() and not driver.halted:
                event = self._next_event(driver.step)
                driver.advance(event, self.watcher.advanced)
                if driver.step == event:
                    last = event == config.steps
                    self._report(evaluated=last or event % config.eval_every == 0, last=last)
                    self._save_due |= not last and event % config.checkpoint_every == 0
                    if self._save_due and not self.record.still_playing():
                        self._save_soon()
                if driver.plant.awaited is not None and driver.plant.restorable:
                    self.record.end_evaluation()
                    self._save()
            self.record.end_evaluation()
            finished = driver.step >= config.steps or not driver.live.any()
            if finished:
                self._finish()
            elif driver.plant.restorable or not driver.plant.exact:
                self._save()
        failures = tuple((self.folders[agent], reason) for agent, reason in driver.failures.items())
        return Outcome(driver.step, finished, failures=failures, saved=None if finished else self.saved)

    def _begin(self) -> None:
        driver = self.driver
        if driver.started:
            self.watcher.begin(self.configs, driver.step, self.memory)
            return
        saved = checkpoint.read(self.home) if self.home else None
        begun = saved.step if saved else 0
        self.watcher.begin(self.configs, begun, self.memory)
        if isinstance(driver, Population):
            driver.prepare(begun, self._events(begun))
        if saved and self.home:
            if not checkpoint.restore(self.home, self.folders, driver) and driver.plant.exact:
                self.watcher.warned(
                    "The environment did not begin its episode as it did before: its reset does not follow its seed. "
                    "This run goes on in a new episode, and its numbers are not those of an undisturbed one."
                )
            self.saved = saved.step
        else:
            for folder in self.folders:
                checkpoint.clear(folder)
        sizes = saved.metrics_sizes if saved else [0] * len(self.folders)
        for folder, size in zip(self.folders, sizes, strict=True):
            folder.cut_metrics(size)
        if not saved:
            driver.start()
        if self.home and not driver.plant.exact:
            self.watcher.warned(
                f"The {driver.plant.copies} copies of the environment cannot be saved (it has no get_state and no "
                "set_state): where this run is resumed, new episodes begin, and its numbers are others."
            )

    def _next_event(self, step: int) -> int:
        config = self.config
        intervals = (config.log_every, config.eval_every, config.checkpoint_every)
        return min(config.steps, *((step // every + 1) * every for every in intervals))

    def _events(self, step: int) -> Iterator[int]:
        while step < self.config.steps:
            step = self._next_event(step)
            yield step

    def _report(self, *, evaluated: bool, last: bool) -> None:
        driver, config = self.driver, self.config
        lines: Lines = [{} for _ in self.configs]
        if last or driver.step % config.log_every == 0:
            rate = (driver.step - self.clock_step) / (time.perf_counter() - self.clock)
            for line, report in zip(lines, driver.tally.reports(), strict=True):
                line |= {**report, "time/steps_per_second": rate}
        if evaluated and self.env is not None:
            self.record.end_evaluation()
            evaluation = AgentsEvaluation(driver, self.env, config.episodes)
            self.record.evaluate(evaluation, lines, beside=isinstance(driver, Population) and not last)
        else:
            self.record.log(lines)
        if evaluated or any(lines):
            self.clock, self.clock_step = time.perf_counter(), driver.step

    def _save_soon(self) -> None:
        """Save now, or, where only the beginnings of episodes can be saved, at the next one."""
        self._save_due = False
        plant = self.driver.plant
        if plant.restorable or not plant.exact:
            self._save()
        elif self.home:
            if plant.awaited is not None:
                self.watcher.warned(
                    f"No episode has ended since a checkpoint was due, so there is none after step {self.saved or 0}: "
                    "the environment has no get_state, and only beginnings of episodes can be saved."
                )
            plant.awaited = self.config.seed

    def _save(self) -> None:
        self.driver.plant.awaited = None
        if self.home:
            self._save_policies()
            checkpoint.save(self.home, self.folders, self.driver)
            self.saved = self.driver.step
            self.watcher.saved()

    def _finish(self) -> None:
        self.record.tell_failures()
        if self.home:
            self._save_policies()
            checkpoint.finish(self.home, self.folders, self.driver)
            self.watcher.saved()

    def _save_policies(self) -> None:
        driver = self.driver
        for rows, policy in zip(driver.groups, jax.device_get(driver.policies), strict=True):
            for own, agent in enumerate(range(rows.start, rows.stop)):
                if driver.live[agent]:
                    own_policy, algorithm = driver.of_agent(policy, own), driver.algorithms[agent]
                    path, task = self.folders[agent].policy, self.config.task
                    save_policy(path, algorithm, driver.plant.spec, own_policy, task)


def check_same_task(folder: RunFolder, spec: Spec) -> None:
    """Refuse to go on with a run on an environment of other sizes, bounds or length than it was begun on."""
    begun, now = folder.about(), about_spec(spec)
    for name in [name for name in now if name in begun]:
        if begun[name] != now[name] and None not in (begun[name], now[name]):  # not every environment says its length
            raise ValueError(
                f"{name} of the environment is {now[name]}, but the run {folder.path} was begun with {begun[name]}: go "
                "on with the environment that it was begun on, or train anew."
            )
