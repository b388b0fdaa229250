"""The driver of a population: all agents, a copy of the environment each, one compiled loop over the steps of all.

    the copies make a step -> the program stores all of it, updates, chooses and certifies the next actions -> ...

The loop runs on the device, some steps at a time, and calls the host for each step of the copies.

Every agent does what it would do alone (`feasible.run.driver`): the same seeds, keys and updates in the same order. One
that cannot go on (a loss that is not finite, say) is left out from there on and stops no other.
"""

from collections.abc import Callable, Sequence

import jax
import numpy as np
from jaxtyping import Array, Bool, Float, PyTree

from feasible.algorithms.base import Algorithm
from feasible.constraints import Judge
from feasible.run.drive.finite import finite, learned_fault
from feasible.run.drive.step import JUDGEMENTS, Carry
from feasible.run.population.programs import Leaves, PopulationPrograms, Program
from feasible.run.population.tallies import Tallies
from feasible.run.vector_plant import Steps, VectorPlant


class Population:
    """Training of several agents on copies of one environment. `start` or `restore` first, then `advance`."""

    def __init__(
        self,
        algorithms: Sequence[Algorithm],
        plant: VectorPlant,
        seeds: Sequence[int],
        programs: PopulationPrograms | None = None,
    ):
        if not len(algorithms) == plant.copies == len(seeds):
            raise ValueError(f"{len(algorithms)} agents need as many seeds and copies of the environment.")
        self.plant, self.seeds = plant, tuple(seeds)
        self.programs = programs or PopulationPrograms(algorithms, plant.spec)
        self.tallies = Tallies(len(algorithms))
        self.failures: dict[int, str] = {}
        """By agent: why it was left out."""
        self.step = 0
        self.halted = False
        """Set (by a signal, say) to end `advance` after the running loop, at most `programs.LONGEST` steps."""
        self._size = plant.spec.action_size
        self._rows = tuple(group.rows for group in self.programs.groups)
        self._warmups = np.array([algorithm.warmup for algorithm in algorithms])
        self._leaves: Leaves = []
        self._actions: Float[np.ndarray, "agents n"] = np.zeros((plant.copies, self._size), np.float32)
        self._seen: Float[np.ndarray, "agents o"] = np.zeros((plant.copies, plant.spec.observation_size), np.float32)
        """What the actions were chosen on."""
        self._told: list[tuple[Program, int, np.ndarray]] = []
        """The steps, and the reports on them by one program, that have not been counted yet."""

    @property
    def live(self) -> Bool[np.ndarray, " agents"]:
        """Which agents have not failed."""
        return self.tallies.live

    @property
    def carries(self) -> list[Carry]:
        """By group: the carries of its agents, stacked."""
        return self.programs.carries(self._leaves)

    @property
    def policies(self) -> list[PyTree[Array]]:
        """By group: the policies of its agents, stacked."""
        groups = zip(self.programs.groups, self.carries, strict=True)
        return [group.algorithms[0].policy(carry.algorithm) for group, carry in groups]

    def start(self) -> None:
        """Begin: first observations, initial states, first actions."""
        obs = self.plant.reset(self.seeds)
        self._leaves, report = self.programs.first(self.seeds, obs)
        self._begin(np.asarray(report), obs)

    def restore(self, carries: list[Carry], step: int, tallies: Tallies, failures: dict[int, str]) -> None:
        """Go on from a saved state; the environment has been restored by the caller."""
        self._leaves, self.step, self.tallies, self.failures = jax.tree.leaves(carries), step, tallies, failures
        self._actions = np.concatenate([np.asarray(carry.decision.executed) for carry in carries])
        self._idle()

    def restore_in_new_episodes(
        self, carries: list[Carry], step: int, tallies: Tallies, failures: dict[int, str]
    ) -> None:
        """The same for copies whose state cannot be saved: the running episodes are given up."""
        obs = self.plant.reset([seed + step for seed in self.seeds])
        self.step, self.tallies, self.failures = step, tallies, failures
        tallies.episode_return[:] = 0.0
        self._leaves, report = self.programs.begin(jax.tree.leaves(carries), obs, step)
        self._begin(np.asarray(report), obs)

    def advance(self, until: int, made: Callable[[int], None] = lambda step: None) -> None:
        """Make steps until `until` have been made in all; `made` hears of each. Ends early when no agent is left."""
        while self.step < until and not self.halted and self.live.any():
            self._stretch(until, made)

    def _stretch(self, until: int, made: Callable[[int], None]) -> None:
        """Make some steps that one program follows, in one dispatch of it."""
        program, loop = self.programs.stretch(self.step, until)
        first, packets = self.step, np.zeros((self.plant.copies, 2 * self.plant.spec.observation_size + 3), np.float32)
        errors: list[BaseException] = []

        def exchange(numbers: Float[np.ndarray, "agents r"]) -> Float[np.ndarray, "agents packet"]:
            nonlocal packets
            try:
                if self.step > first:
                    self._hear(program, numbers)
                if self.live.any() and not errors:
                    steps = self.plant.step(self._actions, self.step + 1)
                    packets = steps.packets
                    self.step += 1
                    self._count(steps)
                    made(self.step)
            except BaseException as error:  # raised again below, not in the hands of the device
                errors.append(error)
            return packets

        self.programs.exchange = exchange
        self._leaves, report = loop(self._leaves)
        numbers = np.asarray(report)
        if errors:
            raise errors[0]
        self._hear(program, numbers)
        self._tally()

    def fail(self, agent: int, reason: Exception) -> None:
        """Leave an agent out: its numbers stay as they are, its copy of the environment idles."""
        self._tally()  # what came before counts
        self.failures[agent] = str(reason)
        self.live[agent] = False

    def _count(self, steps: Steps) -> None:
        self._seen = self.plant.seen(steps)
        for agent, fault in steps.faults(self.step).items():
            if self.live[agent]:
                self.fail(agent, fault)
        self.tallies.add_steps(steps)

    def _hear(self, program: Program, numbers: Float[np.ndarray, "agents r"]) -> None:
        """The report on the present step, made by `program`."""
        self._take(numbers, program.own)
        self._told.append((program, self.step, numbers))

    def _begin(self, numbers: Float[np.ndarray, "agents r"], obs: Float[np.ndarray, "agents o"]) -> None:
        self._seen = obs
        self._take(numbers, ())
        self._judged([self.step], numbers[None])

    def _take(self, numbers: Float[np.ndarray, "agents r"], own: Sequence[tuple[str, ...]]) -> None:
        """Accept the next actions, if they are ones that may be executed."""
        size = self._size
        certified = numbers[:, size] <= numbers[:, size + 1]
        if not (certified.all() and finite(numbers)):
            certified &= np.isfinite(numbers).all(axis=1)
            for agent in np.flatnonzero(self.live & ~certified).tolist():
                self.fail(agent, self._explain(numbers[agent], self._seen[agent], own[agent] if own else ()))
        self._actions = numbers[:, :size].copy()  # the environments' own, to write to
        self._idle()

    def _tally(self) -> None:
        """Count what has been heard, many steps at a time."""
        if not self._told:
            return
        programs, steps, reports = zip(*self._told, strict=True)
        self._told.clear()
        numbers = np.stack(reports)
        self._judged(steps, numbers)
        self.tallies.add_metrics(programs[0], self._rows, numbers[..., self._size + len(JUDGEMENTS) :])

    def _judged(self, steps: Sequence[int], numbers: Float[np.ndarray, "steps agents r"]) -> None:
        judgements = numbers[..., self._size : self._size + len(JUDGEMENTS)]
        self.tallies.add_judgements(judgements, self._warmups <= np.asarray(steps)[:, None])

    def _idle(self) -> None:
        """Copies whose agent has failed take the action of another: something that an environment can step with."""
        if self.failures and self.live.any():
            actions = np.array(self._actions)
            actions[~self.live] = actions[np.argmax(self.live)]
            self._actions = actions

    def _explain(
        self, numbers: Float[np.ndarray, " r"], obs: Float[np.ndarray, " o"], own: tuple[str, ...]
    ) -> Exception:
        """Why an agent cannot go on: the set, the losses, the action; where one has gone, those after it follow."""
        judge, who = Judge(self.plant.constraint, "raise", batched=False), f" after step {self.step}"
        fault = judge.set_fault(obs, who)
        if fault is not None:
            return fault
        diverged = learned_fault(own, numbers[self._size + len(JUDGEMENTS) :], self.step)
        if diverged is not None:
            return diverged
        return judge.explain(obs, numbers[: self._size], who)
