"""Groups: agents of a population whose algorithms are alike, each group one `vmap` of what a lone agent runs.

    the agents are dealt out to lanes (`dealt`) -> the agents of each lane that are alike are its groups (`grouped`)

Lanes advance apart from each other (`feasible.run.population.lanes`). What differs between agents of a group are
numbers that its programs take as arguments, so lanes with groups of the same kinds and sizes share their programs.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TypeVar

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, PyTree

from feasible.algorithms.base import Algorithm, Spec
from feasible.algorithms.merged import alike, merged
from feasible.run.step import due_after

Due = tuple[frozenset[str], bool]
"""The parts of an update that follow a step, and whether the next action is one of the warm-up."""
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Group:
    """Agents next to each other in a lane whose algorithms are alike."""

    rows: slice
    algorithms: tuple[Algorithm, ...]
    kind: int
    """The number of what they are alike in, over all lanes."""
    numbers: Algorithm
    """What differs between them: arrays with an entry an agent, and None in the place of all else."""
    rest: Algorithm
    """All else."""

    @property
    def size(self) -> int:
        return len(self.algorithms)

    def vmap(self, function: Callable[..., Answer]) -> Callable[..., Answer]:
        """`function(algorithm, *arguments)` of one agent as one of (numbers, *arguments) of all of them."""

        def one(numbers: PyTree[Array], *arguments: PyTree[Array]) -> Answer:
            return function(eqx.combine(numbers, self.rest), *arguments)

        return jax.vmap(one)

    def due(self, step: int) -> Due:
        algorithm = self.algorithms[0]
        return due_after(algorithm, step), step < algorithm.warmup


def grouped(lanes: Sequence[Sequence[Algorithm]], spec: Spec) -> list[list[Group]]:
    """By lane: neighbours that are alike, together. They are merged over all lanes, so that lanes differ in numbers."""
    parts = [[(kind, tuple(own)) for kind, own in groupby(algorithms, key=alike)] for algorithms in lanes]
    kinds: list[Hashable] = []
    for kind in (kind for lane in parts for kind, _ in lane):
        kinds += [kind] if kind not in kinds else []
    members = [[a for lane in parts for other, own in lane if other == kind for a in own] for kind in kinds]
    whole = [eqx.partition(merged(alike_ones, spec.low.dtype), _is_array) for alike_ones in members]
    taken = [0] * len(kinds)
    groups: list[list[Group]] = []
    for lane in parts:
        groups.append([])
        first = 0
        for alike_to, own in lane:
            kind = kinds.index(alike_to)
            share = slice(taken[kind], taken[kind] + len(own))
            numbers = jax.tree.map(lambda array, share=share: array[share], whole[kind][0])
            groups[-1].append(Group(slice(first, first + len(own)), own, kind, numbers, whole[kind][1]))
            taken[kind], first = share.stop, first + len(own)
    return groups


def in_groups(algorithms: Sequence[Algorithm]) -> list[int]:
    """An order in which those that are alike are neighbours: they become one group."""
    kinds = [alike(algorithm) for algorithm in algorithms]
    return sorted(range(len(algorithms)), key=lambda agent: (kinds.index(kinds[agent]), agent))


def dealt(algorithms: Sequence[Algorithm], lanes: int) -> list[list[int]]:
    """The agents of each lane: those that are alike in turn, so that lanes have as much of each as can be."""
    order = in_groups(algorithms)
    return [order[lane::lanes] for lane in range(min(lanes, len(order)))]


def _is_array(leaf: object) -> bool:
    return isinstance(leaf, np.ndarray)
