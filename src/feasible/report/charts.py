"""The curves of a report before they are drawn: which metrics of which groups, for which figure of the paper."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from feasible.paper.printed import FIGURES, REFERENCES
from feasible.report.groups import Band, Group, by_task
from feasible.report.runs import Series


@dataclass(frozen=True)
class Kind:
    """A kind of figure: its metrics, each with what tells its line from the others of the same method."""

    name: str
    title: str
    axis: str
    says: str
    metrics: tuple[tuple[str, str], ...]
    on_page_only: bool = False


KINDS = (
    Kind("return", "Return", "return", "mean return of an evaluation's episodes", (("eval/return", ""),)),
    Kind(
        "violations",
        "Infeasible proposals",
        "infeasible proposals so far",
        "proposed actions outside the set so far, after the warm-up",
        (("violation/proposed_count", ""),),
    ),
    Kind(
        "intended",
        "Infeasible before noise",
        "infeasible outputs so far",
        "the policy's outputs outside the set so far, exploration noise left off",
        (("violation/intended_count", ""),),
        on_page_only=True,
    ),
    Kind(
        "gradients",
        "Gradients at the projection layer",
        "norm of the gradient",
        "norm of the critic's gradient by the action, after and before the layer",
        (("actor/grad_executed", "after"), ("actor/grad_proposed", "before")),
    ),
    Kind(
        "distance",
        "Distance to the optimum",
        "distance to the optimal policy",
        "L2 distance of the table's actions, summed over allocations",
        (("policy/distance_to_optimal", ""),),
    ),
)


@dataclass(frozen=True)
class Line:
    """One method's curve: the mean over seeds, and every seed by itself."""

    method: str
    title: str
    band: Band
    seeds: tuple[tuple[int, Series], ...]
    secondary: bool
    """Whether it is the second of the method's two lines."""


@dataclass(frozen=True)
class Chart:
    """One figure: a kind on a task."""

    task: str
    kind: Kind
    stands_for: str
    """The paper's figure, if it is one of its own."""
    lines: tuple[Line, ...]
    references: tuple[tuple[str, float], ...]
    """Levels to compare with, by what reaches them."""

    @property
    def name(self) -> str:
        return f"{self.task}-{self.kind.name}"


def spread(count: int, most: int) -> Int[np.ndarray, " k"]:
    """Places spread evenly over a curve of so many points, the first and the last among them."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).astype(int))


def all_charts(groups: Sequence[Group]) -> list[Chart]:
    """By task and kind; only those that some group has all metrics of."""
    charts = []
    for task, members in by_task(groups).items():
        for kind in KINDS:
            lines = [line for group in members for line in _lines(group, kind)]
            if lines:
                references = REFERENCES.get(task, ()) if kind.name == "return" else ()
                charts.append(Chart(task, kind, FIGURES.get((task, kind.name), ""), tuple(lines), references))
    return charts


def _lines(group: Group, kind: Kind) -> list[Line]:
    lines = []
    for number, (metric, label) in enumerate(kind.metrics):
        band = group.band(metric)
        if band is None:
            return []
        seeds = tuple((run.seed, run.series[metric]) for run in group.runs if metric in run.series)
        title = f"{group.title}, {label}" if label else group.title
        lines.append(Line(group.method, title, band, seeds, secondary=number > 0))
    return lines
