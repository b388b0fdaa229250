"""Populations: agent-steps a second on HalfCheetah, by the number of agents, and where a step's time goes.

    python -m benchmarks.population [--agents 1 5 10 20 40 80] [--methods nfwpo ddpg-projection ...] [--seconds 5]

| column      | what it is                                                                                       |
|-------------|--------------------------------------------------------------------------------------------------|
| agent-steps | agents times steps a second, everything included but evaluations: what training runs at           |
| step        | milliseconds of one step of all agents                                                           |
| environment | of it: the copies' step, on `--threads` threads                                                  |
| handing     | of it: packets in and the dispatch, until the call is back                                       |
| device      | of it: waiting for the report, the device's work that the host does not hide                     |
| host        | of it: what is left, the counting                                                                |
| program     | the program alone, called again and again without an environment: what the device takes at least |

Agents are the methods' seeds in turn, so that 20 agents are 4 methods of 5 seeds.
"""

import argparse
import os
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

from feasible import tasks
from feasible.algorithms.base import Algorithm
from feasible.methods import build_algorithm
from feasible.run.population.driver import Population
from feasible.run.population.groups import in_groups
from feasible.run.population.memory import agent_bytes
from feasible.run.vector_plant import Steps, VectorPlant
from feasible.tasks import Preset

METHODS = ("nfwpo", "ddpg-projection", "ddpg-shaping", "ddpg-optlayer")
LAUNCHES = 200
SETTLED = 30  # steps before anything is timed
TOGETHER = 200  # steps between two looks at the clock


@dataclass
class Split:
    """Seconds of the parts of a step, summed over steps."""

    environment: float = 0.0
    handing: float = 0.0
    device: float = 0.0


class Watched(VectorPlant):
    """Copies whose steps are timed."""

    split = Split()

    def step(self, actions: np.ndarray) -> Steps:
        begun = time.perf_counter()
        steps = super().step(actions)
        self.split.environment += time.perf_counter() - begun
        return steps


class Timed:
    """A program whose call, and the wait for its report, are timed."""

    def __init__(self, function: "jax.stages.Wrapped", split: Split):
        self.function, self.split = function, split

    def __call__(self, leaves: list[jax.Array], packets: np.ndarray) -> tuple[list[jax.Array], "TimedReport"]:
        begun = time.perf_counter()
        leaves, report = self.function(leaves, packets)
        self.split.handing += time.perf_counter() - begun
        return leaves, TimedReport(report, self.split)


class TimedReport:
    """A report whose arrival is timed."""

    def __init__(self, report: jax.Array, split: Split):
        self.report, self.split = report, split

    def copy_to_host_async(self) -> None:
        self.report.copy_to_host_async()

    def __array__(self, dtype: object = None, copy: bool | None = None) -> np.ndarray:
        del dtype, copy
        begun = time.perf_counter()
        numbers = np.asarray(self.report)
        self.split.device += time.perf_counter() - begun
        return numbers


def algorithms(methods: Sequence[str], agents: int, settings: Preset, task: str) -> list[Algorithm]:
    """The methods in turn, without a warm-up; those that are alike are then neighbours."""
    known = tasks.find_task(task)
    chosen = []
    for agent in range(agents):
        algorithm = build_algorithm(known, methods[agent % len(methods)], settings)
        changes = {name: 0 for name in ("warmup", "learning_starts") if hasattr(algorithm, name)}
        chosen.append(replace(algorithm, **changes))
    return [chosen[agent] for agent in in_groups(chosen)]


def population(options: argparse.Namespace, agents: int) -> Population:
    """A population that has begun to learn, with its programs compiled."""
    chosen = algorithms(options.methods, agents, options.settings, options.task)
    plant = Watched(tasks.make_vec(options.task, agents, threads=options.threads))
    made = Population(chosen, plant, range(agents))
    made.start()
    made.advance(SETTLED)
    return made


def measure(options: argparse.Namespace, agents: int) -> list[str]:
    """One row of the table."""
    begun = time.perf_counter()
    made = population(options, agents)
    ready = time.perf_counter() - begun
    steps, seconds = _timed(made, options.seconds)
    split = _watch(made)
    counted, _ = _timed(made, options.seconds / 2)
    parts = [1e3 * part / counted for part in (split.environment, split.handing, split.device)]
    step = 1e3 * seconds / steps
    program = _program_alone(made)
    made.plant.close()
    if made.failures:
        raise RuntimeError(f"{len(made.failures)} agents failed: {next(iter(made.failures.values()))}")
    return [
        str(agents),
        str(len(made.programs.groups)),
        f"{agents * steps / seconds:,.0f}",
        f"{step:.3f}",
        *(f"{part:.3f}" for part in parts),
        f"{max(0.0, step - sum(parts)):.3f}",
        f"{program:.3f}",
        f"{sum(agent_bytes(made.programs)) / 1e9:.1f}",
        f"{ready:.0f}",
    ]


def _timed(made: Population, seconds: float) -> tuple[int, float]:
    """Steps made in about so many seconds, and the seconds."""
    first, begun = made.step, time.perf_counter()
    while time.perf_counter() - begun < seconds:
        made.advance(made.step + TOGETHER)
    return made.step - first, time.perf_counter() - begun


def _watch(made: Population) -> Split:
    """Time the parts of its steps from here on."""
    split, find = Split(), made.programs.program
    assert isinstance(made.plant, Watched)
    made.plant.split = split
    made.programs.program = lambda step: replace(find(step), function=Timed(find(step).function, split))  # pyright: ignore[reportAttributeAccessIssue, reportArgumentType]
    return split


def _program_alone(made: Population) -> float:
    """Milliseconds of the program, dispatched again and again without waiting for a report."""
    program = made.programs.program(made.step + 1).function
    function = program.function if isinstance(program, Timed) else program
    packets = jax.device_put(np.zeros((made.plant.copies, 2 * made.plant.spec.observation_size + 3), np.float32))
    leaves = made._leaves
    leaves, report = function(leaves, packets)
    jax.block_until_ready(report)
    begun = time.perf_counter()
    for _ in range(LAUNCHES):
        leaves, report = function(leaves, packets)
    jax.block_until_ready((leaves, report))
    seconds = time.perf_counter() - begun
    made._leaves = leaves
    return 1e3 * seconds / LAUNCHES


def profile(options: argparse.Namespace) -> None:
    """Write a JAX profile of 50 steps to a folder."""
    made = population(options, options.agents[0])
    with jax.profiler.trace(options.profile):
        made.advance(made.step + 50)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--agents", type=int, nargs="+", default=[1, 5, 10, 20, 40, 80])
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    parser.add_argument("--settings", choices=("fair", "paper"), default="fair")
    parser.add_argument("--task", default="halfcheetah")
    parser.add_argument("--seconds", type=float, default=5.0, help="of the measurement of each row")
    parser.add_argument("--threads", type=int, default=max(1, len(os.sched_getaffinity(0)) - 1))
    parser.add_argument("--profile", default=None, help="write a profile of the first number of agents here and end")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    if options.profile:
        profile(options)
        return
    console = Console()
    table = Table(
        title=f"{options.task}, {options.settings} settings, {', '.join(options.methods)}; {jax.local_devices()[0]}, "
        f"{options.threads} threads for the environment; milliseconds"
    )
    for column in ("agents", "groups", "agent-steps/s", "step", "environment", "handing", "device", "host", "program"):
        table.add_column(column, justify="right")
    table.add_column("GB", justify="right")
    table.add_column("ready, s", justify="right")
    for agents in options.agents:
        try:
            row = measure(options, agents)
        except (RuntimeError, ValueError) as failure:  # a device without room for so many: the table goes on
            console.print(f"{agents} agents: {str(failure).splitlines()[0][:300]}")
            continue
        print(" | ".join(row), flush=True)
        table.add_row(*row)
    console.print(table)


if __name__ == "__main__":
    main()
