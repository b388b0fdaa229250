"""Populations: agent-steps per second on HalfCheetah, by the number of agents, and where a step's time goes.

    python -m benchmarks.population [--agents 1 5 10 20 40 80] [--methods nfwpo sac-projection:paper ...] [--seconds 5]

| column      | what it is                                                                                       |
|-------------|--------------------------------------------------------------------------------------------------|
| agent-steps | agents times steps per second, everything included but evaluations: what training runs at          |
| step        | milliseconds of one step of all agents                                                           |
| environment | the steps of all copies, on `--threads` threads; beside the device where there are two parts      |
| host        | of the step: how long the host has the device wait: for copies, checking and counting            |
| device      | of it: what is left, the device's work and its calls to the host                                 |
| program     | the steps alone, looped over without an environment and without calls: what the device takes     |
| ready       | seconds until all programs are compiled and 200 updates made; in the first row since the process began |

Agents are the methods' seeds in turn, so that 20 agents are 4 methods of 5 seeds. Programs are kept in FEASIBLE_CACHE.
"""

import argparse
import fcntl
import os
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

from feasible.algorithms.base import Algorithm
from feasible.algorithms.spec import spec_of
from feasible.catalogue import registry
from feasible.catalogue.registry import algorithm_of
from feasible.program_cache import keep_programs
from feasible.run.drive.groups import in_groups, parts_of
from feasible.run.drive.memory import agent_bytes
from feasible.run.drive.parts import Plants
from feasible.run.drive.plant import Steps, VectorPlant
from feasible.run.drive.population import Population
from feasible.run.drive.population_programs import Leaves, PopulationPrograms

METHODS = ("nfwpo", "ddpg-projection", "ddpg-shaping", "ddpg-optlayer")
LOOPED = 200  # steps of the program alone
SETTLED = 200  # steps before anything is timed: in stretches as long as the timed ones, whose loops are then compiled
TOGETHER = 200  # steps between two looks at the clock


@dataclass
class Split:
    """Seconds of the parts of a step, summed over steps."""

    environment: float = 0.0
    exchange: float = 0.0


class Watched(VectorPlant):
    """Copies whose steps are timed."""

    split = Split()

    def step(self, actions: np.ndarray, step: int) -> Steps:
        begun = time.perf_counter()
        steps = super().step(actions, step)
        self.split.environment += time.perf_counter() - begun
        return steps


class WatchedPrograms(PopulationPrograms):
    """Programs whose exchange with the host is timed."""

    split: Split | None = None

    def asked(self, part: int, report: np.ndarray) -> np.ndarray:
        begun = time.perf_counter()
        answer = super().asked(part, report)
        if self.split:
            self.split.exchange += time.perf_counter() - begun
        return answer


def algorithms(methods: Sequence[str], agents: int, preset: str, task: str) -> list[Algorithm]:
    """The methods in turn, without a warm-up; those that are alike are then neighbours."""
    known = registry.find_task(task)
    chosen = []
    for agent in range(agents):
        method, _, own = methods[agent % len(methods)].partition(":")
        algorithm = algorithm_of(known, method, own or preset)
        changes = {name: 0 for name in ("warmup", "learning_starts") if hasattr(algorithm, name)}
        chosen.append(replace(algorithm, **changes))
    return [chosen[agent] for agent in in_groups(chosen)]


def population(options: argparse.Namespace, agents: int) -> Population:
    """A population that has begun to learn, with its programs compiled."""
    chosen = algorithms(options.methods, agents, options.preset, options.task)
    spec = spec_of(registry.make_vec(options.task, 1))
    parts = parts_of(chosen, spec) if options.parts else [slice(0, agents)]
    plant = Plants(lambda copies: registry.make_vec(options.task, copies, threads=options.threads), parts, Watched)
    made = Population(chosen, plant, range(agents), WatchedPrograms(chosen, plant.spec, parts))
    made.prepare(0, [SETTLED])
    made.start()
    made.advance(SETTLED)
    return made


def measure(options: argparse.Namespace, agents: int, begun: float) -> list[str]:
    """One row of the table, of a population that was begun then."""
    made = population(options, agents)
    ready = time.perf_counter() - begun
    alone = _program_alone(made)
    print(f"{agents} agents are ready", flush=True)
    with in_turn(options.turn):
        steps, seconds = _timed(made, options.seconds)
        split = _watch(made)
        counted, _ = _timed(made, options.seconds / 2)
        program = alone()
    environment, exchange = (1e3 * part / counted for part in (split.environment, split.exchange))
    step = 1e3 * seconds / steps
    made.close()
    if made.failures:
        raise RuntimeError(f"{len(made.failures)} agents failed: {next(iter(made.failures.values()))}")
    return [
        str(agents),
        f"{len(made.programs.groups)} in {len(made.plant.of)}",
        f"{agents * steps / seconds:,.0f}",
        f"{step:.3f}",
        f"{environment:.3f}",
        f"{exchange:.3f}",
        f"{step - exchange:.3f}",
        f"{program:.3f}",
        f"{sum(agent_bytes(made.programs)) / 1e9:.1f}",
        f"{ready:.0f}",
    ]


def age() -> float:
    """Seconds since this process began (Linux)."""
    with open("/proc/self/stat") as told:
        begun = int(told.read().rpartition(")")[2].split()[19])
    return time.clock_gettime(time.CLOCK_BOOTTIME) - begun / os.sysconf("SC_CLK_TCK")


@contextmanager
def in_turn(file: str | None) -> Iterator[None]:
    """While no other process has its turn by this file: several compile at once and are timed one after the other."""
    if file is None:
        yield
        return
    with open(file, "w") as opened:
        fcntl.flock(opened, fcntl.LOCK_EX)
        yield


def _timed(made: Population, seconds: float) -> tuple[int, float]:
    """Steps made in about so many seconds, and the seconds."""
    first, begun = made.step, time.perf_counter()
    while time.perf_counter() - begun < seconds:
        made.advance(made.step + TOGETHER)
    return made.step - first, time.perf_counter() - begun


def _watch(made: Population) -> Split:
    """Time the parts of its steps from here on."""
    assert isinstance(made.programs, WatchedPrograms)
    Watched.split = made.programs.split = Split()
    return Watched.split


def _program_alone(made: Population) -> Callable[[], float]:
    """Compile a loop that the device goes through by itself; what then measures the milliseconds of a step of it."""
    programs = made.programs
    program = programs.program(made.step + 1)
    packets = [jax.numpy.zeros((plant.copies, made.plant.wire.packet), np.float32) for plant in made.plant.of]
    report = program.parts[-1].report

    def ask(part: int, report: jax.Array) -> jax.Array:
        return packets[part] + 0 * report[:1, :1]  # of this step: nothing to take out of the loop

    def steps(leaves: Leaves) -> tuple[Leaves, jax.Array]:
        def step(_: int, state: tuple[Leaves, jax.Array]) -> tuple[Leaves, jax.Array]:
            return programs.step(program, *state, ask)

        return jax.lax.fori_loop(0, LOOPED, step, (leaves, jax.numpy.zeros(report.shape, report.dtype)))

    loop = jax.jit(steps, donate_argnums=0).lower(made._leaves).compile()

    def measured() -> float:
        times = []
        for _ in range(4):
            begun = time.perf_counter()
            made._leaves, report = loop(made._leaves)
            np.asarray(report)
            times.append(time.perf_counter() - begun)
        return 1e3 * min(times) / LOOPED

    return measured


def profile(options: argparse.Namespace) -> None:
    """Write a JAX profile of 50 steps to a folder."""
    made = population(options, options.agents[0])
    with jax.profiler.trace(options.profile):
        made.advance(made.step + 50)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--agents", type=int, nargs="+", default=[1, 5, 10, 20, 40, 80])
    parser.add_argument("--methods", nargs="+", default=list(METHODS), help="each with :PRESET, if another")
    parser.add_argument("--preset", choices=("fair", "paper", "default"), default="fair")
    parser.add_argument("--task", default="halfcheetah")
    parser.add_argument("--seconds", type=float, default=5.0, help="of the measurement of each row")
    parser.add_argument("--threads", type=int, default=max(1, len(os.sched_getaffinity(0)) - 1))
    parser.add_argument(
        "--whole", dest="parts", action="store_false", help="all agents as one part, whatever their number"
    )
    parser.add_argument("--turn", default=None, help="a file by which several of these are timed one at a time")
    parser.add_argument("--profile", default=None, help="write a profile of the first number of agents here and end")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    keep_programs()
    if options.profile:
        profile(options)
        return
    console = Console()
    table = Table(
        title=f"{options.task}, {options.preset} preset, {', '.join(options.methods)}; {jax.local_devices()[0]}, "
        f"{options.threads} threads for the environment; milliseconds"
    )
    for column in ("agents", "groups in parts", "agent-steps/s", "step", "environment", "host", "device", "program"):
        table.add_column(column, justify="right")
    table.add_column("GB", justify="right")
    table.add_column("ready, s", justify="right")
    for agents in options.agents:
        try:
            row = measure(options, agents, time.perf_counter() - (age() if agents == options.agents[0] else 0))
        except (RuntimeError, ValueError) as failure:  # a device without room for so many: the table goes on
            console.print(f"{agents} agents: {str(failure).splitlines()[0][:300]}")
            continue
        print(" | ".join(row), flush=True)
        table.add_row(*row)
    console.print(table)


if __name__ == "__main__":
    main()
