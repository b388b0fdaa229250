"""The programs of a population: loops over steps of all agents that stay on the device and ask the host in between.

Each group of agents whose algorithms are alike is one `vmap` of the same functions that a lone agent runs
(`feasible.run.drive.step`), all in one program. One report goes out for all agents of a part and one packet each comes
in, by a call from the device to the host (`exchange`), which costs a third of a dispatch from the host to the device.
Where there are two parts, the call hands over the report on one and brings the packets of the other: each part's
environments step while the device learns for the other.
Which parts of each group's update are due is settled before the program is made, as for a lone agent.
"""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import jaxpr_as_fun
from jaxtyping import Array, Float, PyTree, UInt32

from feasible.algorithms.base import Algorithm, Metrics, Spec
from feasible.compiling import ToldOnce, said_if_long
from feasible.run.drive.groups import Wanted, grouped
from feasible.run.drive.host_call import host_call
from feasible.run.drive.schedule import Due, Schedule
from feasible.run.drive.step import Carry, Result, Step, flat
from feasible.run.drive.tally import Metered
from feasible.run.drive.wire import wire_of

Leaves = list[Array]
Item = TypeVar("Item")


Exchange = Callable[[int, Float[np.ndarray, "agents r"]], Float[np.ndarray, "agents packet"]]
"""What the host does between two steps: from a part, and the report on the part before it, to the part's packets."""
Loop = Callable[[Leaves], tuple[Leaves, Array]]
Cycle = tuple["Program", ...]
"""Programs that follow upon each other, again and again: TD3's actor, for one, learns at every second step."""
LOOPS = 2
LONGEST = 50  # steps of one loop: nothing is saved by more, and what halts a population waits for the end of one
WIDEST = 4  # programs of a cycle: all of them are compiled together
FARTHEST = 50_000  # steps: a look at one takes some microseconds
QUIET = 3  # ends without a further loop, after which none is looked for
COMPILED = 4  # loops at a time; XLA mostly has one core busy with each


class PartStep(NamedTuple):
    """A step of the agents of one part."""

    step: Callable[[Leaves, Array], tuple[Leaves, Array]]
    """(leaves, packets) to (leaves, report), a pure function."""
    report: jax.ShapeDtypeStruct
    told: list[Metrics]
    """By group: what it tells of its update."""


@dataclass(frozen=True, eq=False)
class Program:
    """Steps of all agents for one set of due updates."""

    parts: tuple[PartStep, ...]
    metered: Metered


class PopulationPrograms:
    """The programs of a population on one task, made when first needed; carries travel as one list of leaves."""

    def __init__(self, algorithms: Sequence[Algorithm], spec: Spec, parts: Sequence[slice] | None = None):
        self.spec, self.algorithms = spec, tuple(algorithms)
        self.rows = tuple(parts or [slice(0, len(algorithms))])
        """By part: its agents."""
        self.parts = tuple(tuple(grouped(algorithms[rows], spec, rows.start)) for rows in self.rows)
        """By part: its groups."""
        self.groups = tuple(group for part in self.parts for group in part)
        self.exchange: Exchange = _no_exchange
        self.made: dict[tuple[Wanted, ...], Program] = {}
        self.loops: dict[Cycle, dict[int, Future[Loop]]] = {}
        """By their programs and number of steps: those compiled so far, or being compiled."""
        self._compiling = ThreadPoolExecutor(COMPILED, "compiling")
        self._own: dict[tuple[str, Due], tuple[str, ...]] = {}
        self._schedule = Schedule(self.algorithms, self._find)
        self.program = self._schedule.program
        agents = len(algorithms)
        self._packets = [
            jax.ShapeDtypeStruct((rows.stop - rows.start, wire_of(spec).packet), spec.low.dtype) for rows in self.rows
        ]
        keys = jax.ShapeDtypeStruct((agents, *_key_data(0).shape), jnp.uint32)
        obs = jax.ShapeDtypeStruct((agents, spec.observation_size), spec.low.dtype)
        self.shapes: list[Carry] = [result[0] for result in jax.eval_shape(self._first, keys, obs)]
        self.structure = jax.tree.structure(self.shapes)
        self._shapes = self._by_part(self.shapes)
        """By part: the shapes of its groups' carries."""
        self._compiled_first = ToldOnce(
            "the beginning of training", jax.jit(lambda keys, obs: _flat(self._first(keys, obs)))
        )
        self._compiled_begin = jax.jit(self._begin, donate_argnums=0, static_argnums=2)
        self._compiled_act = ToldOnce("the policies", jax.jit(self._act, static_argnums=2))

    def prepare(self, step: int, ends: Iterable[int]) -> None:
        """Begin to compile the loops that follow `step` steps, all at the same time.

        Steps are made in stretches, each to the next of `ends`. The search goes on until every update has had its turn
        and a few ends have brought no further loop.
        """
        known, last, quiet = self._schedule.known(step), step + FARTHEST, 0
        for until in ends:
            before = sum(map(len, self.loops.values()))
            while step < until:
                step += self._planned(step, until)[0]
            quiet = quiet + 1 if sum(map(len, self.loops.values())) == before else 0
            if (step >= known and quiet >= QUIET) or step >= last:
                break

    def close(self) -> None:
        """Compile no more than what is being compiled now, unless it is asked for again."""
        self._compiling.shutdown(wait=False, cancel_futures=True)
        self._compiling = ThreadPoolExecutor(COMPILED, "compiling")

    def stretch(self, step: int, until: int) -> tuple[int, Loop]:
        """The loop that follows `step` steps: how many of the steps up to `until` it makes, and the loop."""
        steps, loop = self._planned(step, until)
        with said_if_long(f"{steps} steps of all agents"):
            return steps, loop.result()

    def _planned(self, step: int, until: int) -> tuple[int, Future[Loop]]:
        """The same, as soon as it is known which loop it will be.

        Compiling takes longer than many steps: a cycle of programs has at most `LOOPS` loops, a program one of a single
        step as well, and a loop is used for stretches of up to twice its length. Cycles begin at multiples of their
        length, so that each is compiled in one order only, and are gone through twice at least.
        """
        ahead = [self.program(step + more) for more in range(1, min(LONGEST, until - step) + 1)]
        widths = [width for width in range(1, min(WIDEST, len(ahead)) + 1) if step % width == 0]
        widths = [width for width in widths if width == 1 or _repeated(ahead, width) > width]
        width = max(widths, key=lambda width: (_repeated(ahead, width), -width))
        cycle, most = tuple(ahead[:width]), _repeated(ahead, width)
        loops = self.loops.setdefault(cycle, {})
        steps = max((made for made in loops if made <= most), default=0)
        if 2 * steps < most and len(loops) < LOOPS:
            steps = most
        if not steps:
            cycle, steps = cycle[:1], 1
            loops = self.loops.setdefault(cycle, {})
        if steps not in loops or loops[steps].cancelled():
            loops[steps] = self._compiling.submit(self._loop, cycle, steps)
        return steps, loops[steps]

    def forget_exchange(self) -> None:
        """Let go of who exchanged: compiled loops keep this object, and so would keep them and their memory."""
        self.exchange = _no_exchange

    def asked(self, part: int, report: Float[np.ndarray, "agents r"]) -> Float[np.ndarray, "agents packet"]:
        """What the device calls: the exchange of the loop that runs."""
        return self.exchange(part, report)

    def step(
        self, program: Program, leaves: Leaves, report: Array, ask: Callable[[int, Array], Array]
    ) -> tuple[Leaves, Array]:
        """A step of all parts in turn: new leaves, and the report on the last part, like the one that is given.

        `ask` brings the packets of a part, in exchange for the report on the part before it.
        """
        made: Leaves = []
        for part, (own, of_part) in enumerate(zip(program.parts, self._parted(leaves), strict=True)):
            new, report = own.step(of_part, ask(part, report))
            made += new
        return made, report

    def _parted(self, leaves: Leaves) -> list[Leaves]:
        return _split(leaves, [len(jax.tree.leaves(shapes)) for shapes in self._shapes])

    def _by_part(self, groups: Sequence[Item]) -> list[list[Item]]:
        """What there is one of for each group."""
        return _split(groups, [len(part) for part in self.parts])

    def carries(self, leaves: Leaves) -> list[Carry]:
        """By group: the carries of its agents, stacked."""
        return jax.tree.unflatten(self.structure, leaves)

    def first(self, seeds: Sequence[int], obs: Float[np.ndarray, "agents o"]) -> tuple[Leaves, Array]:
        """The leaves of all carries of new runs, and the report on the first actions."""
        return self._compiled_first.call(np.stack([_key_data(seed) for seed in seeds]), obs)

    def begin(self, leaves: Leaves, obs: Float[np.ndarray, "agents o"], step: int) -> tuple[Leaves, Array]:
        """The same for runs that have made `step` steps, in new episodes."""
        return self._compiled_begin(leaves, obs, tuple(group.wanted(step)[1] for group in self.groups))

    def act(
        self, policies: list[PyTree[Array]], obs: Float[np.ndarray, "copies o"], episodes: int
    ) -> Float[np.ndarray, "copies n+2"]:
        """A certificate a row of acting without exploration, in `episodes` copies for each agent."""
        return np.asarray(self._compiled_act.call(policies, obs, episodes))

    def _find(self, step: int) -> Program:
        wanted = tuple(group.wanted(step) for group in self.groups)
        if wanted not in self.made:
            self.made[wanted] = self._make(wanted)
        return self.made[wanted]

    def _make(self, wanted: tuple[Wanted, ...]) -> Program:
        parts = [self._make_part(part, own) for part, own in enumerate(self._by_part(wanted))]
        metrics = tuple(tuple(sorted(of_group)) for part in parts for of_group in part.told)
        own = []
        for group, shape, names, (due, _) in zip(self.groups, self.shapes, metrics, wanted, strict=True):
            keys = [(repr(algorithm), due) for algorithm in group.algorithms]
            alone = len(set(keys)) == 1  # the group has no metrics but theirs
            for algorithm, key in zip(group.algorithms, keys, strict=True):
                if key not in self._own:  # tracing an update takes longer than many steps
                    self._own[key] = names if alone else _own_metrics(algorithm, self.spec, shape, due)
                own.append(self._own[key])
        return Program(tuple(parts), Metered(tuple(group.rows for group in self.groups), metrics, tuple(own)))

    def _make_part(self, part: int, wanted: Sequence[Wanted]) -> PartStep:
        groups, before = self.parts[part], self.rows[part].start
        leaves, structure = jax.tree.flatten(self._shapes[part])

        def whole(leaves: Leaves, packets: Float[Array, "agents packet"]) -> tuple[Leaves, Array, list[Metrics]]:
            results = []
            for group, carry, (due, warm) in zip(groups, jax.tree.unflatten(structure, leaves), wanted, strict=True):

                def one(algorithm: Algorithm, carry: Carry, packet: Array, due: Due = due, warm: bool = warm) -> Result:
                    return Step(algorithm, self.spec).advance(carry, packet, due=due, warm=warm)

                own = slice(group.rows.start - before, group.rows.stop - before)
                results.append(group.vmap(one)(carry, packets[own]))
            return *_flat(results), [result[2] for result in results]

        jaxpr, (_, report, told) = jax.make_jaxpr(whole, return_shape=True)(leaves, self._packets[part])
        traced = jaxpr_as_fun(jaxpr)  # once for all loops

        def step(leaves: Leaves, packets: Float[Array, "agents packet"]) -> tuple[Leaves, Array]:
            result = traced(*leaves, packets)
            return result[: len(leaves)], result[len(leaves)]

        return PartStep(step, report, told)

    def _loop(self, cycle: Cycle, steps: int) -> Loop:
        """So many steps with these programs in turn, compiled; the first report to the exchange is all zeros.

        With the number of steps known, the device need not wait for the host to hear whether to go on.
        """
        leaves, report = jax.tree.leaves(self.shapes), cycle[-1].parts[-1].report

        def ask(part: int, report: Array) -> Array:
            return host_call(partial(self.asked, part), self._packets[part], report)

        def run(leaves: Leaves) -> tuple[Leaves, Array]:
            def body(_: int, state: tuple[Leaves, Array]) -> tuple[Leaves, Array]:
                leaves, report = state
                for program in cycle:
                    leaves, report = self.step(program, leaves, report, ask)
                return leaves, report

            return jax.lax.fori_loop(0, steps // len(cycle), body, (leaves, jnp.zeros(report.shape, report.dtype)))

        # A leaf that a program reads nothing of is kept an argument all the same: only so can its memory be handed on.
        return jax.jit(run, donate_argnums=0, keep_unused=True).lower(leaves).compile()

    def _first(self, keys: UInt32[Array, "agents k"], obs: Float[Array, "agents o"]) -> list[Result]:
        def first(algorithm: Algorithm, key: Array, obs: Array) -> Result:
            return Step(algorithm, self.spec).first(jax.random.wrap_key_data(key), obs)

        return [group.vmap(first)(keys[group.rows], obs[group.rows]) for group in self.groups]

    def _begin(self, leaves: Leaves, obs: Float[Array, "agents o"], warm: tuple[bool, ...]) -> tuple[Leaves, Array]:
        results = []
        for group, carry, of_warmup in zip(self.groups, self.carries(leaves), warm, strict=True):

            def begin(algorithm: Algorithm, carry: Carry, obs: Array, of_warmup: bool = of_warmup) -> Result:
                return Step(algorithm, self.spec).begin(carry, obs, warm=of_warmup)

            results.append(group.vmap(begin)(carry, obs[group.rows]))
        return _flat(results)

    def _act(self, policies: list[PyTree[Array]], obs: Float[Array, "copies o"], episodes: int) -> Array:
        def of_agent(algorithm: Algorithm, policy: PyTree[Array], obs: Float[Array, "e o"]) -> Array:
            return jax.vmap(partial(Step(algorithm, self.spec).answer, policy))(obs)

        by_agent = obs.reshape(-1, episodes, obs.shape[-1])
        groups = zip(self.groups, policies, strict=True)
        answers = [group.vmap(of_agent)(policy, by_agent[group.rows]) for group, policy in groups]
        return jnp.concatenate(answers).reshape(len(obs), -1)


def _split(items: Sequence[Item], sizes: Sequence[int]) -> list[list[Item]]:
    return [list(items[last - size : last]) for size, last in zip(sizes, accumulate(sizes), strict=True)]


def _repeated(ahead: Sequence[Program], width: int) -> int:
    """How many steps the first `width` programs make in turn, in whole turns."""
    same = next((step for step, program in enumerate(ahead) if program is not ahead[step % width]), len(ahead))
    return same // width * width


def _no_exchange(part: int, report: Float[np.ndarray, "agents r"]) -> Float[np.ndarray, "agents packet"]:
    raise RuntimeError("A population's programs have no exchange with a host yet.")


def _own_metrics(algorithm: Algorithm, spec: Spec, stacked: Carry, due: Due) -> tuple[str, ...]:
    one = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), stacked)
    packet = jax.ShapeDtypeStruct((wire_of(spec).packet,), spec.low.dtype)
    advance = partial(Step(algorithm, spec).advance, due=due, warm=False)
    return tuple(sorted(jax.eval_shape(advance, one, packet)[2]))


def _flat(results: list[Result]) -> tuple[Leaves, Float[Array, "agents r"]]:
    """The leaves of all carries, and one report: a row an agent, as wide as the widest."""
    reports = [jax.vmap(lambda *result: flat(result)[1])(*result) for result in results]
    width = max(report.shape[1] for report in reports)
    rows = [jnp.pad(report, ((0, 0), (0, width - report.shape[1]))) for report in reports]
    return jax.tree.leaves([result[0] for result in results]), jnp.concatenate(rows)


def _key_data(seed: int) -> UInt32[np.ndarray, " k"]:
    return np.asarray(jax.random.key_data(jax.random.key(seed)))
