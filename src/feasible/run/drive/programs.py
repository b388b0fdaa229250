"""The programs of a training run: each is one compiled dispatch per environment step.

The carry is donated from one dispatch to the next; only a packet and a report travel (`run.drive.wire`). Each array
that is handed in and back costs about a microsecond and a half: small ones travel together (`run.drive.packing`), and
what a step leaves as it is (the networks, where no update is due) is lent and not handed back.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Generic

import jax
import numpy as np
from jax.extend.core import jaxpr_as_fun
from jaxtyping import Array, Float, PRNGKeyArray, PyTree
from numpy.typing import NDArray

from feasible.algorithms.base import Algorithm, Metrics, Spec, State
from feasible.compiling import ToldOnce, said_if_long, soon
from feasible.run.drive.packing import Packing
from feasible.run.drive.schedule import Due, Schedule, due_after
from feasible.run.drive.step import Carry, Result, Step, flat
from feasible.run.drive.tally import Metered
from feasible.run.drive.wire import wire_of


@dataclass(frozen=True)
class Program:
    """A compiled `advance` for the same due updates."""

    function: Callable[[list[Array], NDArray], tuple[list[Array], Array]]
    """The packed leaves of a carry and a packet to those of the next carry and a report."""
    metered: Metered


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
        self.program = Schedule([algorithm], self._find).program
        self.obs = *self._step.rows, spec.observation_size
        obs = jax.ShapeDtypeStruct(self.obs, spec.low.dtype)
        begun, result = jax.make_jaxpr(self._step.first, return_shape=True)(jax.random.key(0), obs)
        self.shape: Carry[State] = result[0]
        self.structure, self._packing = jax.tree.structure(self.shape), Packing(jax.tree.leaves(self.shape))
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

    def _make(self, due: Due, warm: bool) -> Program:
        advance = partial(self._step.advance, due=due, warm=warm)
        packet = jax.ShapeDtypeStruct(self.packet, self.spec.low.dtype)
        leaves: list[Array] = jax.eval_shape(self.leaves, self.shape)

        def told(leaves: list[Array], packet: Array) -> tuple[list[Array], Array, Metrics]:
            result = advance(self.carry(leaves), packet)
            return *self._flat(result), result[2]

        jaxpr, results = jax.make_jaxpr(told, return_shape=True)(leaves, packet)
        pairs = zip(jaxpr.jaxpr.invars, jaxpr.jaxpr.outvars, strict=False)  # the report and the metrics come last
        changed = [place for place, (given, back) in enumerate(pairs) if place < len(leaves) and given is not back]
        kept = [place for place in range(len(leaves)) if place not in changed]
        advanced, structure = jaxpr_as_fun(jaxpr), jax.tree.structure(results)  # traced once

        def program(
            mine: list[Array], lent: list[Array], packet: Float[Array, "*c packet"]
        ) -> tuple[list[Array], Float[Array, " r"]]:
            self.traces += 1
            whole = dict(zip(changed, mine, strict=True)) | dict(zip(kept, lent, strict=True))
            result = advanced(*(whole[place] for place in sorted(whole)), packet)
            after, report, _ = jax.tree.unflatten(structure, result)
            return [after[place] for place in changed], report

        seldom = warm or (not due and all(every == 1 for every in self.algorithm.intervals.values()))
        options = soon() if seldom else None
        compiled = ToldOnce(_about(due, warm), jax.jit(program, donate_argnums=0, compiler_options=options))

        def function(leaves: list[Array], packet: NDArray) -> tuple[list[Array], Array]:
            new, report = compiled.call([leaves[place] for place in changed], [leaves[place] for place in kept], packet)
            after = list(leaves)
            for place, leaf in zip(changed, new, strict=True):
                after[place] = leaf
            return after, report

        metrics = tuple(sorted(results[2]))
        return Program(function, Metered((slice(0, 1),), (metrics,), (metrics,)))


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
