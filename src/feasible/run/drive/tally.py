"""What has been counted of every agent: over its whole run, over running episodes, and since the last report.

A row an agent; of an agent with several copies of its environment, returns are counted by copy. What programs report
is counted many steps at a time: that costs about a microsecond a step.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from numpy.typing import NDArray

from feasible.run.drive.plant import Steps
from feasible.run.drive.wire import Wire

COUNTED = ("live", "proposed_violations", "intended_violations", "executed_violation", "episode_returns")
TOGETHER = 64  # reports that are counted at a time


@dataclass(frozen=True)
class Metered:
    """Which metrics the reports of a program hold."""

    rows: tuple[slice, ...]
    """By group of agents."""
    names: tuple[tuple[str, ...], ...]
    """By group: the metrics in its agents' rows, those of all of them together."""
    own: tuple[tuple[str, ...], ...]
    """By agent: the metrics that it reports alone."""

    def of(self, agent: int, values: Float[np.ndarray, " m"]) -> dict[str, float]:
        """An agent's own metrics, from its row of a report."""
        for rows, names in zip(self.rows, self.names, strict=True):
            if rows.start <= agent < rows.stop:
                found = dict(zip(names, values.tolist(), strict=False))
                return {name: found[name] for name in self.own[agent]}
        return {}


UNMETERED = Metered((), (), ())
"""Reports without an update before them."""


@dataclass
class _Means:
    """Sums of one group's metrics since the last report."""

    metered: Metered
    sums: Float[np.ndarray, "k m"]
    count: int = 0


class Tally:
    """The counters of agents whose warm-ups are so long; proposals are counted after them."""

    def __init__(self, wire: Wire, warmups: Sequence[int], copies: int = 1):
        agents = len(warmups)
        self.live: Bool[np.ndarray, " agents"] = np.ones(agents, bool)
        """Whose rows are still counted: an agent that has failed keeps its last ones."""
        self._wire, self._copies, self._warmups = wire, copies, np.asarray(warmups)
        self.proposed_violations = np.zeros(agents, np.int64)
        self.intended_violations = np.zeros(agents, np.int64)
        self.executed_violation = np.zeros(agents)
        self.episode_returns = np.zeros(agents * copies)
        self.finished_returns: list[list[float]] = [[] for _ in range(agents)]
        self._means: dict[tuple[int, tuple[str, ...]], _Means] = {}
        self._heard: list[tuple[Metered, int, Float[np.ndarray, "agents r"]]] = []
        self._rewards: list[Sequence[float] | NDArray] = []
        self._ended: list[Sequence[bool] | NDArray] = []
        """What has not been counted yet."""

    def add_steps(self, steps: Steps) -> None:
        """Rewards, and the returns of episodes that ended."""
        self._rewards.append(steps.rewards)
        self._ended.append(steps.ended)
        if len(self._rewards) >= TOGETHER:
            self._count_returns()

    def _count_returns(self) -> None:
        if not self._rewards:
            return
        live = np.repeat(self.live, self._copies)
        rewards, ended = np.where(live, np.array(self._rewards, np.float64), 0.0), np.array(self._ended) & live
        self._rewards, self._ended, first = [], [], 0
        for last in [*(np.flatnonzero(ended.any(axis=1)) + 1).tolist(), len(rewards)]:
            # Step after step, so that the sum does not depend on how many are counted together.
            rows = np.concatenate([self.episode_returns[None], rewards[first:last]])
            self.episode_returns = np.add.accumulate(rows)[-1]
            for row in np.flatnonzero(ended[last - 1]).tolist() if last > first else ():
                self.finished_returns[row // self._copies].append(float(self.episode_returns[row]))
                self.episode_returns[row] = 0.0
            first = last

    def add_report(self, metered: Metered, step: int, report: Float[np.ndarray, "agents r"]) -> None:
        """What a program said of the update after `step` and of the actions that come next."""
        self._heard.append((metered, step, report))
        if len(self._heard) >= TOGETHER:
            self.settle()

    def settle(self) -> None:
        """Count what has been made and heard, those reports together that hold the same metrics."""
        self._count_returns()
        by_metrics: dict[tuple[tuple[str, ...], ...], list[tuple[Metered, int, Float[np.ndarray, "agents r"]]]] = {}
        for heard in self._heard:
            by_metrics.setdefault(heard[0].names, []).append(heard)
        self._heard = []
        for (metered, *_), steps, reports in (zip(*heard, strict=True) for heard in by_metrics.values()):
            judged, metrics = self._wire.read(np.stack(reports), self._copies)
            self._judge(judged, self._warmups <= np.asarray(steps)[:, None])
            self._add_metrics(metered, metrics)

    def fail(self, agent: int) -> None:
        """Count no more of an agent; what came before counts."""
        self.settle()
        self.live[agent] = False

    def begin_episodes(self) -> None:
        """The running episodes are given up."""
        self._count_returns()
        self.episode_returns[:] = 0.0

    def _judge(self, judged: Float[np.ndarray, "steps rows r"], past_warmup: Bool[np.ndarray, "steps agents"]) -> None:
        agents = -1, len(self.live), self._copies
        violation, _ = self._wire.certificate(judged)
        worst = violation.reshape(agents).max(axis=(0, 2))
        np.maximum(self.executed_violation, worst, out=self.executed_violation, where=self.live)
        counted = (self.live & past_warmup)[:, :, None]
        proposed, intended = (outside.reshape(agents) > 0 for outside in self._wire.proposals(judged))
        self.proposed_violations += np.sum(proposed & counted, axis=(0, 2))
        self.intended_violations += np.sum(intended & counted, axis=(0, 2))

    def _add_metrics(self, metered: Metered, values: Float[np.ndarray, "steps agents m"]) -> None:
        for group, (names, own) in enumerate(zip(metered.names, metered.rows, strict=True)):
            if not names:
                continue
            key = group, names
            if key not in self._means:
                self._means[key] = _Means(metered, np.zeros((own.stop - own.start, len(names))))
            means = self._means[key]
            # Step after step, so that the sum does not depend on how many are counted together.
            means.sums = np.add.accumulate(np.concatenate([means.sums[None], values[:, own, : len(names)]]))[-1]
            means.count += len(values)

    def reports(self) -> list[dict[str, float]]:
        """The metrics of every agent since the last report; the means start anew."""
        self.settle()
        reports = [self._report(agent) for agent in range(len(self.live))]
        self.finished_returns = [[] for _ in self.live]
        self._means = {}
        return reports

    def _report(self, agent: int) -> dict[str, float]:
        metrics: dict[str, float] = {
            "violation/proposed_count": int(self.proposed_violations[agent]),
            "violation/intended_count": int(self.intended_violations[agent]),
            "violation/executed_max": float(self.executed_violation[agent]),
        }
        finished = self.finished_returns[agent]
        if finished:
            metrics["train/episode_return"] = sum(finished) / len(finished)
        totals: defaultdict[str, float] = defaultdict(float)
        counts: defaultdict[str, int] = defaultdict(int)
        for (group, _), means in self._means.items():
            rows = means.metered.rows[group]
            if rows.start <= agent < rows.stop:
                for name, total in means.metered.of(agent, means.sums[agent - rows.start]).items():
                    totals[name] += total
                    counts[name] += means.count
        # By name, not by first appearance: a resumed run writes the same bytes.
        return metrics | {name: totals[name] / counts[name] for name in sorted(totals)}

    def as_plain(self) -> dict[str, object]:
        """All rows as JSON can hold them."""
        self.settle()
        means = [
            [group, names, _plain(part.metered), part.sums.tolist(), part.count]
            for (group, names), part in self._means.items()
        ]
        counted = {name: getattr(self, name).tolist() for name in COUNTED}
        return {**counted, "finished_returns": self.finished_returns, "means": means}

    def restore(self, plain: Mapping) -> None:
        """Go on from what `as_plain` gave of as many agents and copies."""
        for name in COUNTED:
            before = getattr(self, name)
            saved = np.array(plain[name], before.dtype)
            if saved.shape != before.shape:
                raise ValueError(f"{name} has shape {saved.shape}, not {before.shape}.")
            setattr(self, name, saved)
        self.finished_returns = [list(map(float, returns)) for returns in plain["finished_returns"]]
        self._means, self._heard, self._rewards, self._ended = {}, [], [], []
        for group, names, metered, sums, count in plain["means"]:
            self._means[group, tuple(names)] = _Means(_metered(metered), np.array(sums), count)


def _plain(metered: Metered) -> list[object]:
    return [[[rows.start, rows.stop] for rows in metered.rows], metered.names, metered.own]


def _metered(plain: Sequence) -> Metered:
    rows, names, own = plain
    return Metered(tuple(slice(*ends) for ends in rows), tuple(map(tuple, names)), tuple(map(tuple, own)))
