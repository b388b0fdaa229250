"""What has been counted of every agent of a population: `Tally` by rows, since one step is one call for all agents."""

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool, Float

from feasible.run.driver import Tally
from feasible.run.population.programs import Program
from feasible.run.vector_plant import Steps

COUNTED = ("live", "proposed_violations", "intended_violations", "executed_violation", "episode_return")


@dataclass
class Means:
    """Sums of one group's metrics since the last report."""

    rows: slice
    own: tuple[tuple[str, ...], ...]
    """By agent of the whole population: which of the metrics are its own."""
    sums: Float[np.ndarray, "k m"]
    count: int = 0


@dataclass
class Tallies:
    """One row an agent."""

    agents: int
    live: Bool[np.ndarray, " agents"] = field(init=False)
    """Whose rows are still counted: an agent that has failed keeps its last ones."""

    def __post_init__(self) -> None:
        self.live = np.ones(self.agents, bool)
        self.proposed_violations = np.zeros(self.agents, np.int64)
        self.intended_violations = np.zeros(self.agents, np.int64)
        self.executed_violation = np.zeros(self.agents)
        self.episode_return = np.zeros(self.agents)
        self.finished_returns: list[list[float]] = [[] for _ in range(self.agents)]
        self._means: dict[tuple[int, tuple[str, ...]], Means] = {}

    def add_steps(self, steps: Steps) -> None:
        """Rewards, and the returns of episodes that ended."""
        np.add(self.episode_return, steps.rewards, out=self.episode_return, where=self.live)
        if steps.ended.any():
            for agent in np.flatnonzero(steps.ended & self.live).tolist():
                self.finished_returns[agent].append(float(self.episode_return[agent]))
                self.episode_return[agent] = 0.0

    def add_judgements(
        self,
        judgements: Float[np.ndarray, "steps agents judgement"],
        past_warmup: Bool[np.ndarray, "steps agents"],
    ) -> None:
        """Violations of the actions that come next, in the order of `step.JUDGEMENTS`."""
        violation, _, proposed, intended = np.moveaxis(judgements, -1, 0)
        np.maximum(self.executed_violation, violation.max(axis=0), out=self.executed_violation, where=self.live)
        counted = self.live & past_warmup
        self.proposed_violations += np.sum((proposed > 0) & counted, axis=0)
        self.intended_violations += np.sum((intended > 0) & counted, axis=0)

    def add_metrics(
        self, program: Program, rows: tuple[slice, ...], values: Float[np.ndarray, "steps agents m"]
    ) -> None:
        """What the updates of some steps reported, `rows` by group."""
        for group, (names, own) in enumerate(zip(program.metrics, rows, strict=True)):
            if not names:
                continue
            key = group, names
            if key not in self._means:
                self._means[key] = Means(own, program.own, np.zeros((own.stop - own.start, len(names))))
            means = self._means[key]
            # Step after step, so that the sum does not depend on how many are counted together.
            means.sums = np.add.accumulate(np.concatenate([means.sums[None], values[:, own, : len(names)]]))[-1]
            means.count += len(values)

    def of(self, agent: int) -> Tally:
        """The agent's own, as a lone run has it."""
        means = {}
        for (_, names), group in self._means.items():
            if group.rows.start <= agent < group.rows.stop:
                sums = dict(zip(names, group.sums[agent - group.rows.start].tolist(), strict=True))
                own = group.own[agent]
                means[own] = np.array([*(sums[name] for name in own), group.count])
        return Tally(
            int(self.proposed_violations[agent]),
            int(self.intended_violations[agent]),
            float(self.executed_violation[agent]),
            float(self.episode_return[agent]),
            list(self.finished_returns[agent]),
            means,
        )

    def reports(self) -> list[dict[str, float]]:
        """The metrics of every agent since the last report; the means start anew."""
        reports = [self.of(agent).report() for agent in range(self.agents)]
        self.finished_returns = [[] for _ in range(self.agents)]
        self._means = {}
        return reports

    def as_plain(self) -> dict[str, object]:
        """All rows as JSON can hold them."""
        means = [
            [group, list(names), [part.rows.start, part.rows.stop], part.own, part.sums.tolist(), part.count]
            for (group, names), part in self._means.items()
        ]
        counted = {name: getattr(self, name).tolist() for name in COUNTED}
        return {**counted, "finished_returns": self.finished_returns, "means": means}

    @classmethod
    def from_plain(cls, plain: dict) -> "Tallies":
        tallies = cls(len(plain["live"]))
        for name in COUNTED:
            setattr(tallies, name, np.array(plain[name], getattr(tallies, name).dtype))
        tallies.finished_returns = plain["finished_returns"]
        for group, names, (start, stop), own, sums, count in plain["means"]:
            rows = slice(start, stop)
            tallies._means[group, tuple(names)] = Means(rows, tuple(map(tuple, own)), np.array(sums), count)
        return tallies
