"""The programs of a training run: each is one compiled dispatch per environment step.

The carry is donated from one dispatch to the next; only a packet and a report travel (`run.drive.wire`). Each array
that is handed in and back costs about a microsecond and a half: small ones travel together (`run.drive.packing`), and
what a step leaves as it is (the networks, where no update is due) is lent and not handed back.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Generic

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Var, jaxpr_as_fun
from jaxtyping import Array, Float, PRNGKeyArray, PyTree
from numpy.typing import NDArray

from feasible.algorithms.base import Algorithm, Metrics, Spec, State
from feasible.compiling import ToldOnce, said_if_long, soon
from feasible.run.drive.chance import Cut, drawn_for
from feasible.run.drive.packing import SMALL, Packing
from feasible.run.drive.schedule import Due, Schedule, due_after
from feasible.run.drive.step import Carry, Result, Step, flat
from feasible.run.drive.tally import Metered
from feasible.run.drive.wire import wire_of

FEW = 8  # rounds of steps


@dataclass(frozen=True)
class Program:
    """A compiled `advance` for the same due updates."""

    function: Callable[[list[Array], NDArray, int], tuple[list[Array], Array]]
    """The packed leaves of a carry, a packet and how many steps came before to the next leaves and a report."""
    metered: Metered


@dataclass(frozen=True)
class Traced:
    """A step that has been traced, over the leaves of a carry."""

    cut: Cut
    kept: frozenset[int]
    """The leaves, by place, that it leaves as they are."""
    read: frozenset[int]
    """The leaves, by place, that it reads."""
    metrics: tuple[str, ...]


def _when(carry: Carry) -> tuple[Array, Array]:
    return carry.key, carry.step


class Programs(Generic[State]):
    """The programs of one algorithm on one task, made when first needed.

    Carries travel as lists of packed leaves: pytrees of modules cost more to take apart than some steps take.
    """

    def __init__(self, algorithm: Algorithm[State], spec: Spec):
        self.algorithm = algorithm
        self.spec = spec
        self.traces = 0
        self._step = Step(algorithm, spec)
        self.packet = *self._step.rows, wire_of(spec).packet
        """The shape of what a step's program is told: no row axis where there is one copy."""
        self.made: dict[tuple[Due, bool], Program] = {}
        self._known: dict[tuple[Due, bool], Traced] = {}
        self.program = Schedule([algorithm], self._find).program
        self.obs = *self._step.rows, spec.observation_size
        obs = jax.ShapeDtypeStruct(self.obs, spec.low.dtype)
        begun, result = jax.make_jaxpr(self._step.first, return_shape=True)(jax.random.key(0), obs)
        self.shape: Carry[State] = result[0]
        self.structure = jax.tree.structure(self.shape)
        self._packing = Packing(jax.tree.leaves(self.shape), self._steady())
        whole = jax.tree.structure(result)

        def beginning(key: PRNGKeyArray, obs: Float[Array, "*c o"]) -> tuple[list[Array], Array]:
            return self._flat(jax.tree.unflatten(whole, jaxpr_as_fun(begun)(key, obs)))

        first = jax.jit(beginning, compiler_options=soon())  # traced above, and not again
        self._first = ToldOnce("the beginning of training", first)
        begin = jax.jit(
            lambda leaves, obs, warm: self._flat(self._step.begin(self.carry(leaves), obs, warm=warm)),
            donate_argnums=0,
            static_argnums=2,
            compiler_options=soon(),
        )
        self._begin = ToldOnce("the beginning of new episodes", begin)

    def first(self, key: PRNGKeyArray, obs: NDArray) -> tuple[list[Array], Array]:
        """The packed leaves of the first carry, and a report on the first actions."""
        return self._first.call(key, obs)

    def begin(self, leaves: list[Array], obs: NDArray, warm: bool) -> tuple[list[Array], Array]:
        """The same at the beginning of new episodes."""
        return self._begin.call(leaves, obs, warm)

    def _find(self, step: int) -> Program:
        wanted = due_after(self.algorithm, step), step < self.algorithm.warmup
        if wanted not in self.made:
            self.made[wanted] = self._make(*wanted)
        return self.made[wanted]

    def carry(self, leaves: list[Array]) -> Carry[State]:
        """The carry of packed leaves."""
        return jax.tree.unflatten(self.structure, self._packing.unpack(leaves))

    def leaves(self, carry: Carry[State]) -> list[Array]:
        """The packed leaves of a carry."""
        return self._packing.pack(jax.tree.leaves(carry))

    def _flat(self, result: Result[State]) -> tuple[list[Array], Array]:
        leaves, report = flat(result)
        return self._packing.pack(leaves), report

    def _steady(self) -> frozenset[int]:
        """The leaves, by place, that a step without an update leaves as they are, if there are such steps."""
        if all(every == 1 for every in self.algorithm.intervals.values()):
            return frozenset()
        return self._traced((), False).kept

    def _traced(self, due: Due, warm: bool) -> Traced:
        if (due, warm) not in self._known:
            self._known[due, warm] = self._trace(due, warm)
        return self._known[due, warm]

    def _trace(self, due: Due, warm: bool) -> Traced:
        """A step over the leaves of a carry, unpacked: told the run's key and the number of steps before it."""
        advance = partial(self._step.advance, due=due, warm=warm)
        packet = jax.ShapeDtypeStruct(self.packet, self.spec.low.dtype)

        def told(leaves: list[Array], packet: Array, key: Array, step: Array) -> tuple[list[Array], Array, Metrics]:
            carry = jax.tree.unflatten(self.structure, leaves)
            after, judged, metrics = advance(eqx.tree_at(_when, carry, (key, step)), packet)
            step = carry.step + self.algorithm.environments
            return *flat((eqx.tree_at(_when, after, (carry.key, step)), judged, metrics)), metrics

        given = jax.tree.leaves(self.shape), packet, self.shape.key, self.shape.step
        jaxpr, results = jax.make_jaxpr(told, return_shape=True)(*given)
        taken, back = jaxpr.jaxpr.invars, jaxpr.jaxpr.outvars  # leaves first; the report and the metrics come last
        kept = frozenset(place for place, (one, other) in enumerate(zip(taken, back, strict=False)) if one is other)
        atoms = [atom for equation in jaxpr.jaxpr.eqns for atom in equation.invars]
        atoms += [atom for place, atom in enumerate(back) if place not in kept]
        used = {atom for atom in atoms if isinstance(atom, Var)}
        read = frozenset(place for place, one in enumerate(taken) if one in used)
        return Traced(Cut(jaxpr, 2), kept, read, tuple(sorted(results[2])))

    def _make(self, due: Due, warm: bool) -> Program:
        traced, packing = self._traced(due, warm), self._packing
        shapes: list[Array] = jax.eval_shape(self.leaves, self.shape)
        kept = [place for place, part in enumerate(packing.parts) if traced.kept.issuperset(part)]
        changed = [place for place in range(len(packing.parts)) if place not in kept]
        leaves = jax.tree.leaves(self.shape)
        key = packing.parts.index([place for place, leaf in enumerate(leaves) if leaf is self.shape.key])
        kept = [place for place in kept if place == key or traced.read.intersection(packing.parts[place])]
        # What is written anew whole need not be written in place: XLA would copy it first.
        donated = [place for place in changed if shapes[place].size > SMALL]
        small = [place for place in changed if place not in donated]
        often = not warm and self._is_often(due)
        numbers = drawn_for(traced.cut, self.algorithm.environments, often=often)

        def program(
            mine: list[Array], lent: list[Array], tables: list[Array], packet: Float[Array, "*c packet"]
        ) -> tuple[list[Array], Float[Array, " r"]]:
            self.traces += 1
            whole = {place: jnp.zeros(shape.shape, shape.dtype) for place, shape in enumerate(shapes)}  # never read
            whole |= zip([*donated, *small, *kept], [*mine, *lent], strict=True)
            before = packing.unpack([whole[place] for place in sorted(whole)])
            drawn = numbers.of(tables, *_when(jax.tree.unflatten(self.structure, before)))
            result = traced.cut.rest([*before, packet], drawn)
            after = packing.pack(result[: len(before)])
            return [after[place] for place in changed], result[len(before)]

        options = soon() if warm or not (due or often) else None
        compiled = ToldOnce(_about(due, warm), jax.jit(program, donate_argnums=0, compiler_options=options))

        def function(leaves: list[Array], packet: NDArray, step: int) -> tuple[list[Array], Array]:
            mine, lent = [leaves[place] for place in donated], [leaves[place] for place in (*small, *kept)]
            new, report = compiled.call(mine, lent, numbers.tables(leaves[key], step), packet)
            after = list(leaves)
            for place, leaf in zip(changed, new, strict=True):
                after[place] = leaf
            return after, report

        return Program(function, Metered((slice(0, 1),), (traced.metrics,), (traced.metrics,)))

    def _is_often(self, due: Due) -> bool:
        """Whether the program of these updates, or of none, runs at least every few rounds of steps."""
        intervals = self.algorithm.intervals
        if not due:
            return any(every > 1 for every in intervals.values())
        rounds = max(intervals[part] for parts in due for part in parts) / self.algorithm.environments
        return rounds <= FEW


# (policy, observations) -> a certificate a row.
Policy = Callable[[PyTree[Array], Float[np.ndarray, "c o"]], Float[Array, "c n+2"]]


def compiled_policy(algorithm: Algorithm, spec: Spec) -> Policy:
    """Acting without exploration on a batch of observations, in one call."""
    answer, known = jax.jit(jax.vmap(Step(algorithm, spec).answer, in_axes=(None, 0))), set[int]()

    def act(policy: PyTree[Array], obs: Float[np.ndarray, "c o"]) -> Float[Array, "c n+2"]:
        if len(obs) in known:
            return answer(policy, obs)
        at_once = f" for {len(obs)} observations at once" if len(obs) > 1 else ""
        with said_if_long(f"the policy{at_once}"):
            answers = answer(policy, obs)
        known.add(len(obs))
        return answers

    return act


def _about(due: Due, warm: bool) -> str:
    """What a program of steps does, for people."""
    parts = sorted({part.replace("_", " ") for update in due for part in update})
    if parts:
        return f"the update ({', '.join(parts)})"
    return "the steps before learning" if warm else "the steps without an update"
