"""The runs of one task as a population: from their folders to their ends, saved and resumed as a whole.

Every run leaves the folder that it would leave alone: config.json, metrics.jsonl, policy.feasible, a last checkpoint.
"""

import os
import signal
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import jax

from feasible.algorithms.description import build_algorithm
from feasible.catalogue import registry
from feasible.run import checkpoint
from feasible.run.config import RunConfig
from feasible.run.disk.archive import write_atomically
from feasible.run.drive.groups import in_groups
from feasible.run.drive.interrupt import halted_by
from feasible.run.drive.memory import check_memory
from feasible.run.folder import RunFolder
from feasible.run.policy import save_policy
from feasible.run.population import checkpoint as saving
from feasible.run.population.driver import Population
from feasible.run.population.evaluation import evaluate_population
from feasible.run.sweep.processes import ERRORS
from feasible.run.sweep.sweep import Failure
from feasible.run.training import Line
from feasible.run.vector_plant import VectorPlant

SHARED = ("task", "steps", "eval_every", "episodes", "log_every", "checkpoint_every")


class PopulationWatcher:
    """What a person sees of a population; this one shows nothing."""

    def begin(self, configs: Sequence[RunConfig], step: int, memory: str) -> None:
        """Before anything is allocated; `memory` says what the agents take."""

    def advanced(self, step: int) -> None: ...

    def logged(self, config: RunConfig, line: Line) -> None: ...

    def evaluated(self, step: int, seconds: float) -> None: ...

    def failed(self, config: RunConfig, reason: str) -> None:
        """Once for each run that cannot go on, when the others' next lines are due."""


def train_population(
    folders: Sequence[RunFolder], watcher: PopulationWatcher | None = None, threads: int | None = None
) -> list[Failure]:
    """Train the runs of one task to their ends as one population; the failures.

    Runs that are finished are not repeated; those that were stopped together go on together. An interrupt (Ctrl-C)
    saves all of them and raises. `threads` step the copies of the environment: all cores but one if not given.
    """
    watcher = watcher or PopulationWatcher()
    threads = threads or max(1, len(os.sched_getaffinity(0)) - 1)
    waiting, failures = [], []
    for folder in folders:
        saved = checkpoint.read(folder.checkpoint)
        # One with its last checkpoint already, whose population was killed while it ended, goes with the others.
        if saved is None or folder.population() is not None:
            waiting.append(folder)
        elif saved.finished:
            saving.clear(folder)
        else:
            failures.append(Failure(folder, f"it was begun alone: go on with `feasible resume {folder.path}`"))
    for members, home in _together(waiting):
        with ExitStack() as locks:
            for folder in members:
                locks.enter_context(folder.locked())
            failures += _Run(members, home, watcher, threads).to_the_end()
    return failures


def _together(folders: Sequence[RunFolder]) -> list[tuple[list[RunFolder], Path]]:
    """The runs by the population that they were saved in, those that begin last, each with the population's folder."""
    known: dict[Path, list[RunFolder]] = {}
    new: list[RunFolder] = []
    for folder in folders:
        home = folder.population()
        if home is None:
            new.append(folder)
        else:
            known.setdefault(home, []).append(folder)
    ordered = []
    for home, members in known.items():
        by_path = {folder.path.resolve(): folder for folder in members}
        paths = [(home / run).resolve() for run in saving.read(home).runs]
        missing = [path for path in paths if path not in by_path]
        if missing:
            raise ValueError(
                f"{members[0].path} is trained together with {missing[0]}: a population goes on as a whole, with all "
                "of its runs."
            )
        ordered.append(([by_path[path] for path in paths], home))
    if new:
        _check_shared(new)
        new = [new[run] for run in in_groups([build_algorithm(folder.config().algorithm) for folder in new])]
        ordered.append((new, saving.home_of(new)))
    return ordered


def _check_shared(folders: Sequence[RunFolder]) -> None:
    first, *others = [folder.config() for folder in folders]
    for other in others:
        for name in SHARED:
            one, two = getattr(first, name), getattr(other, name)
            if one != two:
                raise ValueError(
                    f"{name} is {one!r} of {first.name} and {two!r} of {other.name}: the runs of a population share it."
                )


class _Run:
    def __init__(self, folders: Sequence[RunFolder], home: Path, watcher: PopulationWatcher, threads: int) -> None:
        self.folders, self.home, self.watcher = list(folders), home, watcher
        self.configs = [folder.config() for folder in folders]
        self.config = self.configs[0]
        task, episodes, agents = self.config.task, self.config.episodes, len(folders)
        self.population = Population(
            [build_algorithm(config.algorithm) for config in self.configs],
            VectorPlant(registry.make_vec(task, agents, threads=threads)),
            [config.seed for config in self.configs],
        )
        self.told: set[int] = set()
        self.memory = check_memory(self.population.programs)
        self.episodes = registry.make_vec(task, agents * episodes, threads=threads)

    def to_the_end(self) -> list[Failure]:
        population, config = self.population, self.config
        saved = saving.read(self.home) if (self.home / saving.STATE).exists() else None
        self.watcher.begin(self.configs, saved.step if saved else 0, self.memory)
        self._begin(saved)
        self.clock, self.clock_step = time.perf_counter(), population.step
        self._tell_failures()
        with halted_by(population, (signal.SIGINT, signal.SIGTERM)):
            while population.step < config.steps and population.live.any():
                event = self._next_event()
                population.advance(event, self.watcher.advanced)
                if population.step < event:
                    break
                last = event == config.steps
                self._report(evaluated=last or event % config.eval_every == 0, last=last)
                if population.halted:
                    break
                if not last and event % config.checkpoint_every == 0:
                    self._save()
            if population.live.any() and population.step < config.steps:
                self._save()
                raise KeyboardInterrupt
            self._tell_failures()
            self._save_policies()
            saving.finish(self.home, self.folders, population)
        return [self._failure(agent, reason) for agent, reason in population.failures.items()]

    def _begin(self, saved: saving.Saved | None) -> None:
        if saved:
            saving.restore(self.home, self.folders, self.population)
            sizes = saved.metrics_sizes
        else:
            sizes = [0] * len(self.folders)
            for folder in self.folders:
                checkpoint.drop_replay(folder.checkpoint)
            self.population.start()
        for folder, size in zip(self.folders, sizes, strict=True):
            folder.cut_metrics(size)

    def _next_event(self) -> int:
        config, step = self.config, self.population.step
        intervals = (config.log_every, config.eval_every, config.checkpoint_every)
        return min(config.steps, *((step // every + 1) * every for every in intervals))

    def _report(self, *, evaluated: bool, last: bool) -> None:
        population, config = self.population, self.config
        lines: list[dict[str, float | list[float]]] = [{} for _ in self.folders]
        if last or population.step % config.log_every == 0:
            rate = (population.step - self.clock_step) / (time.perf_counter() - self.clock)
            for line, report in zip(lines, population.tallies.reports(), strict=True):
                line |= {**report, "time/steps_per_second": rate}
        if evaluated:
            begun = time.perf_counter()
            evaluations = evaluate_population(population, self.episodes, config.episodes)
            for agent, evaluation in evaluations.items():
                lines[agent] |= evaluation.metrics()
            self.watcher.evaluated(population.step, time.perf_counter() - begun)
        self._tell_failures()
        for agent, line in enumerate(lines):
            if line and population.live[agent]:
                line = {"step": population.step, **line}
                self.folders[agent].log(line)
                self.watcher.logged(self.configs[agent], line)
        if any(lines):
            self.clock, self.clock_step = time.perf_counter(), population.step

    def _tell_failures(self) -> None:
        for agent in sorted(self.population.failures.keys() - self.told):
            self.watcher.failed(self.configs[agent], self.population.failures[agent])
            self.told.add(agent)

    def _save(self) -> None:
        self._save_policies()
        saving.save(self.home, self.folders, self.population)

    def _save_policies(self) -> None:
        population = self.population
        for group, policy in zip(population.programs.groups, jax.device_get(population.policies), strict=True):
            for own, algorithm in enumerate(group.algorithms):
                agent = group.rows.start + own
                if population.live[agent]:
                    row = jax.tree.map(lambda leaf, own=own: leaf[own], policy)
                    save_policy(self.folders[agent].policy, algorithm, population.plant.spec, row, self.config.task)

    def _failure(self, agent: int, reason: str) -> Failure:
        write_atomically(self.folders[agent].path / ERRORS, f"{reason}\n".encode())
        return Failure(self.folders[agent], reason)
