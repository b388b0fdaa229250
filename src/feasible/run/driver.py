"""The driver: one agent, one environment, one compiled dispatch per step (several copies: `batch_driver`).

    the environment makes a step -> the program stores it, updates, chooses and certifies the next action -> ...

The driver counts what a run reports and stops it with a sentence at the first number that is not finite and at the
first action outside its feasible set. It knows nothing about the algorithm that it drives.
"""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Generic

import jax
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import NDArray

from feasible.algorithms.base import Algorithm, State
from feasible.constraints import Judge
from feasible.constraints.outcomes import restarted, stepped
from feasible.run.drive.finite import finite, learned_fault, observed_fault
from feasible.run.drive.step import JUDGEMENTS, Carry, pack
from feasible.run.environment import Plant
from feasible.run.programs import Programs


@dataclass
class Tally:
    """What has been counted: over the whole run, over the running episode, and since the last report."""

    proposed_violations: int = 0
    intended_violations: int = 0
    executed_violation: float = 0.0
    episode_return: float = 0.0
    finished_returns: list[float] = field(default_factory=list)
    means: dict[tuple[str, ...], Float[np.ndarray, " m+1"]] = field(default_factory=dict)
    """By the metrics of each program: their sums, and how often they were added."""
    episode_returns: list[float] = field(default_factory=list)
    """The running returns by copy, where an agent has several copies of its environment."""

    def add(self, names: tuple[str, ...], values: Float[np.ndarray, " m"]) -> None:
        if names not in self.means:
            self.means[names] = np.zeros(len(names) + 1)
        sums = self.means[names]
        sums[:-1] += values
        sums[-1] += 1

    def report(self) -> dict[str, float]:
        """The metrics since the last report, whose means start anew."""
        metrics: dict[str, float] = {
            "violation/proposed_count": self.proposed_violations,
            "violation/intended_count": self.intended_violations,
            "violation/executed_max": self.executed_violation,
        }
        if self.finished_returns:
            metrics["train/episode_return"] = sum(self.finished_returns) / len(self.finished_returns)
        totals: defaultdict[str, float] = defaultdict(float)
        counts: defaultdict[str, float] = defaultdict(float)
        for names, sums in self.means.items():
            for name, total in zip(names, sums.tolist(), strict=False):
                totals[name] += total
                counts[name] += sums[-1].item()
        # By name, not by first appearance: a resumed run writes the same bytes.
        metrics |= {name: totals[name] / counts[name] for name in sorted(totals)}
        self.finished_returns, self.means = [], {}
        return metrics

    def as_plain(self) -> dict[str, object]:
        """The tally as JSON can hold it."""
        means = [[list(names), sums.tolist()] for names, sums in self.means.items()]
        return {**{f.name: getattr(self, f.name) for f in fields(self)}, "means": means}

    @classmethod
    def from_plain(cls, plain: dict) -> "Tally":
        means = {tuple(names): np.array(sums) for names, sums in plain["means"]}
        return cls(**{**plain, "means": means})


class Driver(Generic[State]):
    """Training of one agent. `start` or `restore` first, then `advance` to any step."""

    def __init__(self, algorithm: Algorithm[State], plant: Plant, seed: int):
        self.algorithm, self.plant, self.seed = algorithm, plant, seed
        self.programs = Programs(algorithm, plant.spec)
        self.tally = Tally()
        self.step = 0
        self.halted = False
        """Set (by a signal, say) to end `advance` after the running step."""
        self._size = plant.spec.action_size
        self._leaves: list[Array] = []
        # The action to execute next; None while there is none that was judged at the present observation.
        self._action: NDArray | None = None

    @property
    def carry(self) -> Carry[State]:
        return self.programs.carry(self._leaves)

    @property
    def started(self) -> bool:
        return bool(self._leaves)

    def start(self) -> None:
        """Begin a run: the environment's first observation, the initial state, the first action."""
        obs = self._restart(self.seed)
        self._leaves, report = self.programs.first(jax.random.key(self.seed), obs)
        self._take(report, obs)

    def restore(self, carry: Carry[State], step: int, tally: Tally) -> None:
        """Go on from a saved state; the environment has been restored by the caller, or starts a new episode."""
        self._leaves, self.step, self.tally = jax.tree.leaves(carry), step, tally
        self._action = np.array(carry.decision.executed)

    def restore_in_new_episode(self, carry: Carry[State], step: int, tally: Tally) -> None:
        """The same for an environment whose state cannot be saved: the running episode is given up."""
        self.step, self.tally = step, replace(tally, episode_return=0.0)
        obs = self._restart(self.seed + step)
        warm = step < self.algorithm.warmup
        self._leaves, report = self.programs.begin(jax.tree.leaves(carry), obs, warm)
        self._take(report, obs)

    def reset(self) -> None:
        """Bring the environment to the beginning that a saved state is put into."""
        self.plant.env.reset(seed=self.seed)

    def advance(self, until: int, made: Callable[[int], None] = lambda step: None) -> None:
        """Make steps until `until` have been made in all; `made` hears of each."""
        env, tally, begin = self.plant.env, self.tally, self._size + len(JUDGEMENTS)
        size, shape = self.plant.spec.observation_size, (self.plant.spec.observation_size,)
        if self.plant.moved:
            self.restore_in_new_episode(self.carry, self.step, tally)
            tally = self.tally
        while self.step < until and not self.halted:
            action, self._action = self._action, None
            if action is None:
                raise RuntimeError(f"The run was stopped by an error at step {self.step} and cannot go on from there.")
            next_obs, reward, terminated, truncated, _ = stepped(env, action, shape, self.step + 1)
            reward, ended = float(reward), terminated or truncated
            tally.episode_return += reward
            seen = next_obs
            if ended:
                tally.finished_returns.append(tally.episode_return)
                tally.episode_return = 0.0
                seen, _ = restarted(env, shape, self.step + 1)
            self.step += 1
            packet = pack(next_obs, reward, terminated, truncated, seen)
            if not finite(packet):
                self._check(packet[:size], reward)
                self._check(packet[size : 2 * size], 0.0)
            program = self.programs.program(self.step)
            self._leaves, report = program.function(self._leaves, packet)
            numbers = self._take(report, seen)
            if program.metrics:
                tally.add(program.metrics, numbers[begin:])
            made(self.step)

    def _take(self, report: Array, obs: NDArray) -> Float[np.ndarray, " r"]:
        """Accept the next action, if it is one that may be executed."""
        numbers, size = np.asarray(report), self._size
        violation, tolerance, proposed, intended = numbers[size : size + len(JUDGEMENTS)].tolist()
        if not (violation <= tolerance and finite(numbers)):
            raise self._explain(numbers, np.asarray(obs, np.float32))
        tally = self.tally
        tally.executed_violation = max(tally.executed_violation, violation)
        if self.step >= self.algorithm.warmup:
            tally.proposed_violations += int(proposed)
            tally.intended_violations += int(intended)
        self._action = numbers[:size].copy()  # the environment's own, to write to
        return numbers

    def _restart(self, seed: int) -> Float[np.ndarray, " o"]:
        """Take the environment over at the beginning of an episode."""
        self.plant.take()
        obs, _ = restarted(self.plant.env, (self.plant.spec.observation_size,), self.step, seed=seed)
        obs = np.asarray(obs, np.float32)
        self._check(obs, 0.0)
        return obs

    def _check(self, obs: NDArray, reward: float) -> None:
        fault = observed_fault(obs, reward, self.step)
        if fault is not None:
            raise fault

    def _explain(self, numbers: Float[np.ndarray, " r"], obs: Float[np.ndarray, " o"]) -> Exception:
        """Why the run cannot go on: the set, the losses, the action; where one has gone, those after it only follow."""
        size, judge, who = self._size, Judge(self.plant.constraint, "raise", batched=False), f" after step {self.step}"
        fault = judge.set_fault(obs, who)
        if fault is not None:
            return fault
        metrics = self.programs.program(self.step).metrics if self.step else ()  # a resumed episode starts without
        diverged = learned_fault(metrics, numbers[size + len(JUDGEMENTS) :], self.step)
        if diverged is not None:
            return diverged
        return judge.explain(obs, numbers[:size], who)
