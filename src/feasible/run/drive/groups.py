"""Groups: agents of a population whose algorithms are alike, each group one `vmap` of what a lone agent runs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import TypeVar

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, PyTree

from feasible.algorithms.base import Algorithm, Spec
from feasible.algorithms.merged import alike, merged
from feasible.run.drive.schedule import Due, due_after

Wanted = tuple[Due, bool]
"""The updates that follow a step, and whether the next action is one of the warm-up."""
Answer = TypeVar("Answer")
ENOUGH = 80  # agents of one group that are worth two programs (measured on an H200: docs/performance.md)


@dataclass(frozen=True)
class Group:
    """Agents next to each other in the population whose algorithms are alike."""

    rows: slice
    algorithms: tuple[Algorithm, ...]
    numbers: Algorithm
    """What differs between them: arrays with an entry an agent, and None instead of all else."""
    rest: Algorithm
    """All else."""

    @property
    def size(self) -> int:
        return len(self.algorithms)

    def vmap(self, function: Callable[..., Answer]) -> Callable[..., Answer]:
        """`function(algorithm, *arguments)` of one agent as one of the arguments of all of them."""

        def one(numbers: PyTree[Array], *arguments: PyTree[Array]) -> Answer:
            return function(eqx.combine(numbers, self.rest), *arguments)

        return partial(jax.vmap(one), self.numbers)

    def wanted(self, step: int) -> Wanted:
        algorithm = self.algorithms[0]
        return due_after(algorithm, step), step < algorithm.warmup


def grouped(algorithms: Sequence[Algorithm], spec: Spec, first: int = 0) -> list[Group]:
    """Neighbours that are alike, together; the first of them is that agent of the population."""
    groups = []
    for _, members in groupby(algorithms, key=lambda algorithm: alike(algorithm, _flat(spec))):
        own = tuple(members)
        parts = eqx.partition(merged(own, spec.low.dtype), lambda leaf: isinstance(leaf, np.ndarray))
        groups.append(Group(slice(first, first + len(own)), own, *parts))
        first += len(own)
    return groups


def in_groups(algorithms: Sequence[Algorithm]) -> list[int]:
    """An order in which those that are alike are neighbours: they become one group."""
    kinds, parts = ([alike(algorithm, flat) for algorithm in algorithms] for flat in (False, True))
    return sorted(
        range(len(algorithms)), key=lambda agent: (kinds.index(kinds[agent]), parts.index(parts[agent]), agent)
    )


def parts_of(algorithms: Sequence[Algorithm], spec: Spec) -> list[slice]:
    """Return the two parts of a population that take turns on the device, or all of it as one.

    They are cut apart between two groups, which costs nothing but a call to the host per step; or, if there are agents
    enough to make up for further programs, through a group.
    """
    agents = len(algorithms)
    kinds = [alike(algorithm, _flat(spec)) for algorithm in algorithms]
    cuts = [agent for agent in range(1, agents) if kinds[agent] != kinds[agent - 1]]
    cuts = [agent for agent in cuts if min(agent, agents - agent) >= agents / 4]
    if not cuts and agents >= ENOUGH:
        cuts = [agents // 2]
    if not cuts:
        return [slice(0, agents)]
    cut = min(cuts, key=lambda agent: abs(2 * agent - agents))
    return [slice(0, cut), slice(cut, agents)]


def _flat(spec: Spec) -> bool:
    return spec.region.hull_dim < spec.region.dim
