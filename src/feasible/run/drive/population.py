"""The loop of a population: all agents, a copy of the environment each, one compiled loop over the steps of all.

    the copies make a step -> the program stores all of it, updates, chooses and certifies the next actions -> ...

The loop runs on the device, some steps at a time, and calls the host for each step of the copies. A large population is
in two parts: while the device learns for one, the copies of the other make their step.

Every agent does what it would do alone (`feasible.run.drive.lone`): the same seeds, keys and updates in the same order.
One that cannot go on (a loss that is not finite, say) is left out from there on and stops no other.
"""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import jax
import numpy as np
from jaxtyping import Array, Bool, Float, PyTree

from feasible.algorithms.base import Algorithm
from feasible.run.drive.faults import finite, refusal, unable
from feasible.run.drive.parts import Plants, joined
from feasible.run.drive.plant import Steps
from feasible.run.drive.population_programs import Leaves, PopulationPrograms
from feasible.run.drive.step import Carry
from feasible.run.drive.tally import UNMETERED, Metered, Tally

Tree = TypeVar("Tree")


class Population:
    """Training of several agents on copies of one environment. `start` or `restore` first, then `advance`."""

    def __init__(
        self,
        algorithms: Sequence[Algorithm],
        plant: Plants,
        seeds: Sequence[int],
        programs: PopulationPrograms | None = None,
    ):
        if not len(algorithms) == plant.copies == len(seeds):
            raise ValueError(f"{len(algorithms)} agents need as many seeds and copies of the environment.")
        self.plant, self.seeds, self.algorithms = plant, tuple(seeds), tuple(algorithms)
        self.programs = programs or PopulationPrograms(algorithms, plant.spec, plant.rows)
        self.tally = Tally(plant.wire, [algorithm.warmup for algorithm in algorithms])
        self.failures: dict[int, str] = {}
        """By agent: why it was left out."""
        self.step = 0
        self.halted = False
        """Set (by a signal, say) to end `advance` after the running loop, at most `LONGEST` steps."""
        self._leaves: Leaves = []
        self._actions: Float[np.ndarray, "agents n"] = np.zeros((plant.copies, plant.wire.action), np.float32)
        self._seen: Float[np.ndarray, "agents o"] = np.zeros((plant.copies, plant.wire.observation), np.float32)
        """What the actions were chosen on."""
        self._stepping = ThreadPoolExecutor(1, "environment")
        self._steps: list[Steps] = []
        """By part: the present step, of those that have made it."""
        self._told: list[Float[np.ndarray, "part r"]] = []
        """By part: the report on it, of those that have sent theirs."""

    @property
    def live(self) -> Bool[np.ndarray, " agents"]:
        """Which agents have not failed."""
        return self.tally.live

    @property
    def started(self) -> bool:
        return bool(self._leaves)

    @property
    def groups(self) -> Sequence[slice]:
        """The agents of each part of the state."""
        return [group.rows for group in self.programs.groups]

    @property
    def shapes(self) -> list[Carry]:
        return self.programs.shapes

    @property
    def carries(self) -> list[Carry]:
        """By group: the carries of its agents, stacked."""
        return self.programs.carries(self._leaves)

    @property
    def policies(self) -> list[PyTree[Array]]:
        """By group: the policies of its agents, stacked."""
        groups = zip(self.programs.groups, self.carries, strict=True)
        return [group.algorithms[0].policy(carry.algorithm) for group, carry in groups]

    def of_agent(self, tree: Tree, own: int) -> Tree:
        """The part of one agent of what is stacked, by its place in the group."""
        return jax.tree.map(lambda leaf: leaf[own], tree)

    def prepare(self, step: int, ends: Iterable[int]) -> None:
        """Begin to compile what follows `step` steps, in threads; each call of `advance` goes to the next of `ends`."""
        self.programs.prepare(step, ends)

    def start(self) -> None:
        """Begin: first observations, initial states, first actions."""
        self._seen = self.plant.reset(self.seeds)
        for agent, algorithm in enumerate(self.algorithms):
            fault = unable(algorithm, self.plant.spec, self._seen[agent])
            if fault is not None:
                self.fail(agent, fault)
        self._leaves, report = self.programs.first(self.seeds, self._seen)
        self._take_all(np.asarray(report))

    def restore(self, carries: list[Carry], step: int) -> None:
        """Go on from a saved state; the environment, the tally and the failures have been restored by the caller."""
        self._leaves, self.step = jax.tree.leaves(carries), step
        self._actions = np.concatenate([np.asarray(carry.decision.executed) for carry in carries])
        self._idle()

    def restore_in_new_episodes(self, carries: list[Carry], step: int) -> None:
        """The same for copies whose state cannot be saved: the running episodes are given up."""
        self._seen = self.plant.reset([seed + step for seed in self.seeds], step)
        self.step = step
        self.tally.begin_episodes()
        self._leaves, report = self.programs.begin(jax.tree.leaves(carries), self._seen, step)
        self._take_all(np.asarray(report))

    def reset(self) -> None:
        """Bring the copies to the beginning that a saved state is put into."""
        self.plant.reset(self.seeds)

    def advance(self, until: int, made: Callable[[int], None] = lambda step: None) -> None:
        """Step until `until` total steps, calling `made(step)` after each. Ends early when no agent is left."""
        while self.step < until and not self.halted and self.live.any():
            self._stretch(until, made)

    def _stretch(self, until: int, made: Callable[[int], None]) -> None:
        """Make some steps in one dispatch of a program."""
        length, loop = self.programs.stretch(self.step, until)
        if self.halted:  # while it was compiled
            return
        last, parts, told, errors = self.step + length, len(self.plant.of), False, list[BaseException]()
        packets = [np.zeros((plant.copies, self.plant.wire.packet), np.float32) for plant in self.plant.of]
        self._steps, self._told = [], []
        running = [self._begin_step(part, self.step + 1) for part in range(parts)]

        def exchange(part: int, numbers: Float[np.ndarray, "part r"]) -> Float[np.ndarray, "part packet"]:
            nonlocal told
            if errors or not self.live.any():
                return packets[part]
            try:
                if told:  # the first report of a loop is none
                    before, number = (part or parts) - 1, self.step + (part > 0)  # whose it is, and after which step
                    self._take(before, numbers, number, self.programs.program(number).metered)
                    if number < last and self.live.any():
                        running[before] = self._begin_step(before, number + 1)
                told = True
                if self.live.any():
                    steps = running[part]()
                    packets[part] = steps.packets
                    if self._count(part, steps):
                        made(self.step)
            except BaseException as error:  # raised again below, not in the hands of the device
                errors.append(error)
            return packets[part]

        self.programs.exchange = exchange
        try:
            self._leaves, report = loop(self._leaves)
            numbers = np.asarray(report)
        finally:
            self._stepping.submit(int).result()  # no copy is making a step any more
            self.programs.forget_exchange()
        if errors:
            raise errors[0]
        if self.live.any():
            self._take(parts - 1, numbers, last, self.programs.program(last).metered)

    def _begin_step(self, part: int, number: int) -> Callable[[], Steps]:
        """Let the copies of a part make a step, in a thread if there are others. Return what waits for it."""
        actions = self._actions[self.plant.rows[part]].copy()  # its own, to write to
        step = partial(self.plant.of[part].step, actions, number)

        def on_the_processor() -> Steps:  # as the calls of the device do: it has enough to do
            with jax.default_device(jax.local_devices(backend="cpu")[0]):
                return step()

        return step if len(self.plant.of) == 1 else self._stepping.submit(on_the_processor).result

    def close(self) -> None:
        """End its threads and close its environments, of which none is making a step."""
        self.programs.close()
        self._stepping.shutdown()
        self.plant.close()

    def fail(self, agent: int, reason: Exception) -> None:
        """Leave an agent out: its numbers stay as they are, its copy of the environment idles."""
        self.tally.fail(agent)
        self.failures[agent] = str(reason)

    def acting(self, episodes: int) -> Callable[[Float[np.ndarray, "c o"]], Float[np.ndarray, "c n+2"]]:
        """From observations, `episodes` of each agent in turn, to certificates of what the present policies do.

        They act on the processor, from a copy: the device is free to go on, and its steps overwrite the policies.
        """
        policies = jax.device_put(jax.device_get(self.policies), jax.devices("cpu")[0])
        return lambda obs: self.programs.act(policies, obs, episodes)

    def _count(self, part: int, steps: Steps) -> bool:
        """Accept what the copies of a part have seen. Return whether every part has now made the step."""
        rows = self.plant.rows[part]
        self._seen[rows] = steps.seen
        for own, fault in steps.faults(self.step + 1).items():
            if self.live[rows.start + own]:
                self.fail(rows.start + own, fault)
        self._steps.append(steps)
        if part + 1 < len(self.plant.of):
            return False
        self.tally.add_steps(joined(self._steps))
        self._steps = []
        self.step += 1
        return True

    def _take(self, part: int, numbers: Float[np.ndarray, "part r"], step: int, metered: Metered) -> None:
        """Accept the next actions of a part, if they are ones that may be executed; `step` have been made."""
        wire, own = self.plant.wire, self.plant.rows[part]
        rows, metrics = wire.read(numbers, 1)
        violation, tolerance = wire.certificate(rows)
        certified = violation <= tolerance
        if not (certified.all() and finite(numbers)):
            certified = certified & np.isfinite(numbers).all(axis=1)
            for row in np.flatnonzero(self.live[own] & ~certified).tolist():
                agent = own.start + row
                action, told = wire.executed(rows)[row], metered.of(agent, metrics[row])
                self.fail(
                    agent, refusal(self.algorithms[agent], self.plant.spec, self._seen[agent], action, told, step)
                )
        self._actions[own] = wire.executed(rows)
        self._idle()
        self._told.append(numbers)
        if part + 1 == len(self.plant.of):
            self.tally.add_report(metered, step, _stacked(self._told))
            self._told = []

    def _take_all(self, numbers: Float[np.ndarray, "agents r"]) -> None:
        """The same for all agents, of actions that no update precedes."""
        for part, rows in enumerate(self.plant.rows):
            self._take(part, numbers[rows], self.step, UNMETERED)

    def _idle(self) -> None:
        """Copies whose agent has failed take the action of another: something that an environment can step with."""
        if self.failures and self.live.any():
            self._actions[~self.live] = self._actions[np.argmax(self.live)]


def _stacked(reports: Sequence[Float[np.ndarray, "part r"]]) -> Float[np.ndarray, "agents r"]:
    """The rows of all, as wide as the widest."""
    if len(reports) == 1:
        return reports[0]
    stacked, first = np.zeros((sum(map(len, reports)), max(report.shape[1] for report in reports)), np.float32), 0
    for report in reports:
        stacked[first : first + len(report), : report.shape[1]] = report
        first += len(report)
    return stacked
