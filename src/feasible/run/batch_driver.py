"""The driver of one agent with several copies of its environment: one compiled dispatch steps them all.

`step` counts the steps of all copies together, so it grows by their number. Everything else is as in `driver`.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Generic

import jax
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import NDArray

from feasible.algorithms.base import Algorithm, State
from feasible.constraints import Judge
from feasible.run.drive.finite import finite, learned_fault
from feasible.run.drive.step import JUDGEMENTS, Carry
from feasible.run.driver import Tally
from feasible.run.programs import Programs
from feasible.run.vector_plant import VectorPlant


class BatchDriver(Generic[State]):
    """Training of one agent on copies of an environment. `start` or `restore` first, then `advance` to any step."""

    def __init__(self, algorithm: Algorithm[State], plant: VectorPlant, seed: int):
        if algorithm.environments != plant.copies:
            raise ValueError(
                f"copies: the algorithm steps {algorithm.environments} copies of its environment at once, "
                f"but it was given {plant.copies}."
            )
        self.algorithm, self.plant, self.seed = algorithm, plant, seed
        self.programs = Programs(algorithm, plant.spec)
        self.tally = Tally(episode_returns=[0.0] * plant.copies)
        self.step = 0
        self.halted = False
        """Set (by a signal, say) to end `advance` after the running step."""
        self._size = plant.spec.action_size
        self._leaves: list[Array] = []
        # The actions to execute next; None while there are none that were judged at the present observations.
        self._actions: NDArray | None = None

    @property
    def carry(self) -> Carry[State]:
        return self.programs.carry(self._leaves)

    @property
    def started(self) -> bool:
        return bool(self._leaves)

    def start(self) -> None:
        """Begin a run: the first observations, the initial state, the first actions."""
        obs = self._reset(0)
        self._leaves, report = self.programs.first(jax.random.key(self.seed), obs)
        self._take(report, obs)

    def restore(self, carry: Carry[State], step: int, tally: Tally) -> None:
        """Go on from a saved state; the environments have been restored by the caller."""
        self._leaves, self.step, self.tally = jax.tree.leaves(carry), step, tally
        self._actions = np.array(carry.decision.executed)

    def restore_in_new_episode(self, carry: Carry[State], step: int, tally: Tally) -> None:
        """The same for environments whose state cannot be saved: the running episodes are given up."""
        self.step, self.tally = step, replace(tally, episode_returns=[0.0] * self.plant.copies)
        obs = self._reset(step)
        self._leaves, report = self.programs.begin(jax.tree.leaves(carry), obs, step < self.algorithm.warmup)
        self._take(report, obs)

    def reset(self) -> None:
        """Bring the environments to the beginning that a saved state is put into."""
        self._reset(0)

    def advance(self, until: int, made: Callable[[int], None] = lambda step: None) -> None:
        """Make steps until `until` have been made in all; `made` hears of each round."""
        plant, tally, copies = self.plant, self.tally, self.plant.copies
        begin = copies * (self._size + len(JUDGEMENTS))
        while self.step < until and not self.halted:
            actions, self._actions = self._actions, None
            if actions is None:
                raise RuntimeError(f"The run was stopped by an error at step {self.step} and cannot go on from there.")
            steps = plant.step(actions, self.step + copies)
            self.step += copies
            steps.check(self.step)
            for copy, reward in enumerate(steps.rewards.tolist()):
                tally.episode_returns[copy] += reward
                if steps.ended[copy]:
                    tally.finished_returns.append(tally.episode_returns[copy])
                    tally.episode_returns[copy] = 0.0
            program = self.programs.program(self.step)
            self._leaves, report = program.function(self._leaves, steps.packets)
            numbers = self._take(report, plant.seen(steps))
            if program.metrics:
                tally.add(program.metrics, numbers[begin:])
            made(self.step)

    def _reset(self, step: int) -> Float[np.ndarray, "copies o"]:
        return self.plant.reset([self.seed + step + copy for copy in range(self.plant.copies)])

    def _take(self, report: Array, obs: Float[np.ndarray, "copies o"]) -> Float[np.ndarray, " r"]:
        """Accept the next actions, if each is one that may be executed."""
        numbers, size = np.asarray(report), self._size
        width, copies = size + len(JUDGEMENTS), self.plant.copies
        rows = numbers[: copies * width].reshape(copies, width)
        violation, tolerance, proposed, intended = rows[:, size:].T
        if not ((violation <= tolerance).all() and finite(numbers)):
            raise self._explain(numbers, rows, obs)
        tally = self.tally
        tally.executed_violation = max(tally.executed_violation, float(violation.max()))
        if self.step >= self.algorithm.warmup:
            tally.proposed_violations += int(proposed.sum())
            tally.intended_violations += int(intended.sum())
        self._actions = rows[:, :size].copy()  # the environments' own, to write to
        return numbers

    def _explain(self, numbers: NDArray, rows: NDArray, obs: NDArray) -> Exception:
        """Why the run cannot go on: a set, the losses, an action; where one has gone, those after it only follow."""
        size, judge = self._size, Judge(self.plant.constraint, "raise", batched=False)
        copy = int(np.argmax(~(rows[:, size] <= rows[:, size + 1])))
        who = f" of copy {copy} after step {self.step}"
        fault = judge.set_fault(obs[copy], who)
        if fault is not None:
            return fault
        metrics = self.programs.program(self.step).metrics if self.step else ()
        diverged = learned_fault(metrics, numbers[rows.size :], self.step)
        if diverged is not None:
            return diverged
        return judge.explain(obs[copy], rows[copy, :size], who)
