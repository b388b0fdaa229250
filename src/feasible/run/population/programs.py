"""The programs of a population: one compiled dispatch for one step of all agents.

Agents whose algorithms are alike are one group, and each group is one `vmap` of the same functions that a lone agent
runs (`feasible.run.step`), all in one program. One packet of numbers goes in for all agents and one report comes back.
Which parts of each group's update are due is settled before the program is made, as for a lone agent.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import groupby
from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree, UInt32

from feasible.algorithms.base import Algorithm, Spec
from feasible.algorithms.merged import alike, merged
from feasible.run.step import Carry, Result, Step, due_after, numbers_of

Due = tuple[frozenset[str], bool]
"""The parts of an update that follow a step, and whether the next action is one of the warm-up."""
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Group:
    """Agents next to each other in the population whose algorithms are alike."""

    rows: slice
    algorithms: tuple[Algorithm, ...]
    spec: Spec

    @property
    def size(self) -> int:
        return len(self.algorithms)

    @cached_property
    def merged(self) -> Algorithm:
        return merged(self.algorithms, self.spec.low.dtype)

    def vmap(self, function: Callable[..., Answer]) -> Callable[..., Answer]:
        """`function(algorithm, *arguments of one agent)` over the agents, each with its own algorithm."""
        numbers, rest = eqx.partition(self.merged, lambda leaf: isinstance(leaf, np.ndarray))

        def one(numbers: PyTree[Array], *arguments: PyTree[Array]) -> Answer:
            return function(eqx.combine(numbers, rest), *arguments)

        return partial(jax.vmap(one), numbers)

    def due(self, step: int) -> Due:
        algorithm = self.algorithms[0]
        return due_after(algorithm, step), step < algorithm.warmup

    def advanced(self, carry: Carry, packets: Float[Array, "k packet"], due: Due) -> Result:
        """One step of every agent."""

        def advance(algorithm: Algorithm, carry: Carry, packet: Array) -> Result:
            return Step(algorithm, self.spec).advance(carry, packet, due=due[0], warm=due[1])

        return self.vmap(advance)(carry, packets)


def grouped(algorithms: Sequence[Algorithm], spec: Spec) -> list[Group]:
    """Neighbours that are alike, together."""
    groups, first = [], 0
    for _, members in groupby(algorithms, key=alike):
        known = tuple(members)
        groups.append(Group(slice(first, first + len(known)), known, spec))
        first += len(known)
    return groups


def in_groups(algorithms: Sequence[Algorithm]) -> list[int]:
    """An order in which those that are alike are neighbours: they become one group."""
    kinds = [alike(algorithm) for algorithm in algorithms]
    return sorted(range(len(algorithms)), key=lambda agent: (kinds.index(kinds[agent]), agent))


@dataclass(frozen=True)
class Program:
    """A compiled step of all agents for one set of due updates."""

    function: "jax.stages.Wrapped"
    metrics: tuple[tuple[str, ...], ...]
    """By group: the names of the metrics in its rows of the report, those of all its agents together."""
    own: tuple[tuple[str, ...], ...]
    """By agent: the metrics that it would report alone."""


class PopulationPrograms:
    """The programs of a population on one task, made when first needed; carries travel as one list of leaves."""

    def __init__(self, algorithms: Sequence[Algorithm], spec: Spec):
        self.spec = spec
        self.algorithms = tuple(algorithms)
        self.groups = grouped(algorithms, spec)
        self.traces = 0
        self.made: dict[tuple[Due, ...], Program] = {}
        self._settled = max(max(a.warmup, a.updates_after) for a in algorithms)
        self._period = math.lcm(*(every for a in algorithms for every in a.intervals.values()))
        self._by_phase: dict[int, Program] = {}
        keys = jax.ShapeDtypeStruct((len(algorithms), *_key_data(0).shape), jnp.uint32)
        obs = jax.ShapeDtypeStruct((len(algorithms), spec.observation_size), spec.low.dtype)
        self.shapes: list[Carry] = [result[0] for result in jax.eval_shape(self._first, keys, obs)]
        self.structure = jax.tree.structure(self.shapes)
        self._compiled_first = jax.jit(lambda keys, obs: _flat(self._first(keys, obs)))
        self.begin = jax.jit(
            lambda leaves, obs, warm: _flat(self._begin(self.carries(leaves), obs, warm)),
            donate_argnums=0,
            static_argnums=2,
        )

    def carries(self, leaves: list[Array]) -> list[Carry]:
        """By group: the carries of its agents, stacked."""
        return jax.tree.unflatten(self.structure, leaves)

    def first(self, seeds: Sequence[int], obs: Float[np.ndarray, "agents o"]) -> tuple[list[Array], Array]:
        """The leaves of all carries of new runs, and the report on the first actions."""
        return self._compiled_first(np.stack([_key_data(seed) for seed in seeds]), obs)

    def program(self, step: int) -> Program:
        """The program that follows environment step `step`."""
        if step <= self._settled:
            return self._find(step)
        phase = step % self._period
        if phase not in self._by_phase:
            self._by_phase[phase] = self._find(step)
        return self._by_phase[phase]

    def warm(self, step: int) -> tuple[bool, ...]:
        """By group: whether the action after that step is one of the warm-up."""
        return tuple(group.due(step)[1] for group in self.groups)

    def _find(self, step: int) -> Program:
        wanted = tuple(group.due(step) for group in self.groups)
        if wanted not in self.made:
            self.made[wanted] = self._make(wanted)
        return self.made[wanted]

    def _make(self, wanted: tuple[Due, ...]) -> Program:
        packets = jax.ShapeDtypeStruct((len(self.algorithms), 2 * self.spec.observation_size + 3), self.spec.low.dtype)

        def advance(carries: list[Carry], packets: Float[Array, "agents packet"]) -> list[Result]:
            parts = zip(self.groups, carries, wanted, strict=True)
            return [group.advanced(carry, packets[group.rows], due) for group, carry, due in parts]

        def program(leaves: list[Array], packets: Float[Array, "agents packet"]) -> tuple[list[Array], Array]:
            self.traces += 1
            return _flat(advance(self.carries(leaves), packets))

        metrics = [tuple(sorted(result[2])) for result in jax.eval_shape(advance, self.shapes, packets)]
        own = [
            _own_metrics(algorithm, self.spec, shape, due[0])
            for group, shape, due in zip(self.groups, self.shapes, wanted, strict=True)
            for algorithm in group.algorithms
        ]
        return Program(jax.jit(program, donate_argnums=0), tuple(metrics), tuple(own))

    def _first(self, keys: UInt32[Array, "agents k"], obs: Float[Array, "agents o"]) -> list[Result]:
        def first(algorithm: Algorithm, key: Array, obs: Array) -> Result:
            return Step(algorithm, self.spec).first(jax.random.wrap_key_data(key), obs)

        return [group.vmap(first)(keys[group.rows], obs[group.rows]) for group in self.groups]

    def _begin(self, carries: list[Carry], obs: Float[Array, "agents o"], warm: tuple[bool, ...]) -> list[Result]:
        results = []
        for group, carry, of_warmup in zip(self.groups, carries, warm, strict=True):

            def begin(algorithm: Algorithm, carry: Carry, obs: Array, of_warmup: bool = of_warmup) -> Result:
                return Step(algorithm, self.spec).begin(carry, obs, warm=of_warmup)

            results.append(group.vmap(begin)(carry, obs[group.rows]))
        return results


def _own_metrics(algorithm: Algorithm, spec: Spec, stacked: Carry, due: frozenset[str]) -> tuple[str, ...]:
    one = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), stacked)
    packet = jax.ShapeDtypeStruct((2 * spec.observation_size + 3,), spec.low.dtype)
    advance = partial(Step(algorithm, spec).advance, due=due, warm=False)
    return tuple(sorted(jax.eval_shape(advance, one, packet)[2]))


def _flat(results: list[Result]) -> tuple[list[Array], Float[Array, "agents r"]]:
    """The leaves of all carries, and one report: a row an agent, as wide as the widest."""
    reports = [jax.vmap(lambda *result: numbers_of(result))(*result) for result in results]
    width = max(report.shape[1] for report in reports)
    rows = [jnp.pad(report, ((0, 0), (0, width - report.shape[1]))) for report in reports]
    return jax.tree.leaves([result[0] for result in results]), jnp.concatenate(rows)


def _key_data(seed: int) -> UInt32[np.ndarray, " k"]:
    return np.asarray(jax.random.key_data(jax.random.key(seed)))
