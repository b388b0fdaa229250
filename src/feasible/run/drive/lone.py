"""The loop of one agent: one environment, or several copies of it, and one compiled dispatch per step of all.

    the environment makes a step -> the program stores it, updates, chooses and certifies the next action -> ...

The driver counts what a run reports and stops it with a sentence at the first number that is not finite and at the
first action outside its feasible set. It knows nothing about the algorithm that it drives. Steps are counted over all
copies together.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Generic, TypeVar

import jax
import numpy as np
from jaxtyping import Array, Bool, Float, PyTree

from feasible.algorithms.base import Algorithm, State
from feasible.run.drive.faults import finite, refusal, unable
from feasible.run.drive.plant import Plant
from feasible.run.drive.programs import Programs, compiled_policy
from feasible.run.drive.step import Carry
from feasible.run.drive.tally import UNMETERED, Metered, Tally

Tree = TypeVar("Tree")


class Lone(Generic[State]):
    """Training of one agent. `start` or `restore` first, then `advance` to any step."""

    def __init__(self, algorithm: Algorithm[State], plant: Plant, seed: int):
        if algorithm.environments != plant.copies:
            raise ValueError(
                f"copies: the algorithm steps {algorithm.environments} copies of its environment at once, "
                f"but it was given {plant.copies}; make a vector of as many with feasible.make_vec, or "
                "constrain one of Gymnasium's."
            )
        self.algorithm, self.plant, self.seed = algorithm, plant, seed
        self.programs = Programs(algorithm, plant.spec)
        self.tally = Tally(plant.wire, [algorithm.warmup], plant.copies)
        self.failures: dict[int, str] = {}
        """None: an agent alone that cannot go on ends its run."""
        self.step = 0
        self.halted = False
        """Set (by a signal, say) to end `advance` after the running step."""
        self._leaves: list[Array] = []
        # The actions to execute next; None while there are none that were judged at the present observations.
        self._actions: Float[np.ndarray, "copies n"] | None = None

    groups: Sequence[slice] = (slice(0, 1),)
    """One part of the state, of one agent: what a trainer and a checkpoint ask a population for, by group."""

    @property
    def seeds(self) -> tuple[int, ...]:
        return (self.seed,)

    @property
    def algorithms(self) -> tuple[Algorithm[State], ...]:
        return (self.algorithm,)

    @property
    def shapes(self) -> list[Carry[State]]:
        return [self.programs.shape]

    @property
    def carries(self) -> list[Carry[State]]:
        return [self.carry]

    @property
    def policies(self) -> list[PyTree[Array]]:
        return [self.policy]

    def of_agent(self, tree: Tree, own: int) -> Tree:
        """Nothing is stacked."""
        del own
        return tree

    @property
    def live(self) -> Bool[np.ndarray, " 1"]:
        return self.tally.live

    @property
    def started(self) -> bool:
        return bool(self._leaves)

    @property
    def carry(self) -> Carry[State]:
        return self.programs.carry(self._leaves)

    @property
    def policy(self) -> PyTree[Array]:
        return self.algorithm.policy(self.carry.algorithm)

    def start(self) -> None:
        """Begin a run: first observations, the initial state, first actions."""
        obs = self._reset()
        fault = unable(self.algorithm, self.plant.spec, obs[0])
        if fault is not None:
            raise fault
        self._leaves, report = self.programs.first(jax.random.key(self.seed), obs.reshape(self.programs.obs))
        self._take(report, obs, UNMETERED)

    def restore(self, carries: list[Carry[State]], step: int) -> None:
        """Go on from a saved state; the environment and the tally have been restored by the caller."""
        (carry,) = carries
        self._leaves, self.step = self.programs.leaves(carry), step
        self._actions = np.array(carry.decision.executed).reshape(self.plant.copies, -1)

    def restore_in_new_episodes(self, carries: list[Carry[State]], step: int) -> None:
        """The same for an environment whose state cannot be saved: running episodes are given up."""
        self.step = step
        self.tally.begin_episodes()
        obs, warm = self._reset(), step < self.algorithm.warmup
        leaves = self.programs.leaves(carries[0])
        self._leaves, report = self.programs.begin(leaves, obs.reshape(self.programs.obs), warm)
        self._take(report, obs, UNMETERED)

    def reset(self) -> None:
        """Bring the environment to the beginning that a saved state is put into."""
        self.plant.reset([self.seed + copy for copy in range(self.plant.copies)])

    def advance(self, until: int, made: Callable[[int], None] = lambda step: None) -> None:
        """Make steps until `until` have been made in all, or a state that can be saved has come that was waited for;
        `made` hears of each."""
        plant, tally, packet = self.plant, self.tally, self.programs.packet
        if plant.moved:
            self.restore_in_new_episodes(self.carries, self.step)
        while self.step < until and not self.halted:
            actions, self._actions = self._actions, None
            if actions is None:
                raise RuntimeError(f"The run was stopped by an error at step {self.step} and cannot go on from there.")
            steps = plant.step(actions, self.step + plant.copies)
            self.step += plant.copies
            for fault in steps.faults(self.step).values():
                raise fault
            tally.add_steps(steps)
            program = self.programs.program(self.step)
            packets = steps.packets.reshape(packet)
            self._leaves, report = program.function(self._leaves, packets, self.step - plant.copies)
            self._take(report, steps.seen, program.metered)
            made(self.step)
            if plant.awaited is not None and plant.restorable:
                return

    def fail(self, agent: int, reason: Exception) -> None:
        """An agent alone that cannot go on ends its run."""
        del agent
        raise reason

    def acting(self, episodes: int) -> Callable[[Float[np.ndarray, "c o"]], Float[np.ndarray, "c n+2"]]:
        """From observations to certificates of what the present policy does without exploration."""
        del episodes  # all copies are of one agent
        policy = self.policy
        return lambda obs: np.asarray(self._policy(policy, obs))

    @cached_property
    def _policy(self) -> Callable:
        return compiled_policy(self.algorithm, self.plant.spec)

    def _reset(self) -> Float[np.ndarray, "copies o"]:
        return self.plant.reset([self.seed + self.step + copy for copy in range(self.plant.copies)], self.step)

    def _take(self, report: Array, seen: Float[np.ndarray, "copies o"], metered: Metered) -> None:
        """Accept the next actions, if each is one that may be executed."""
        wire, numbers = self.plant.wire, np.asarray(report)[None]
        rows, metrics = wire.read(numbers, self.plant.copies)
        if not (wire.permits(rows) and finite(numbers)):
            violation, tolerance = wire.certificate(rows)
            copy = int(np.argmax(~(violation <= tolerance)))
            of = f" of copy {copy}" if self.plant.copies > 1 else ""
            action, told = wire.executed(rows)[copy], metered.of(0, metrics[0])
            raise refusal(self.algorithm, self.plant.spec, seen[copy], action, told, self.step, of)
        self.tally.add_report(metered, self.step, numbers)
        self._actions = wire.executed(rows).copy()  # the environments' own, to write to
