"""Speed of the environments on one CPU thread against plain loops and Gymnasium, and how threads help.

    python -m benchmarks.environments [--rounds 15]

Ours and the reference take turns within one run on one core, so that a busy machine slows both; a ratio is the
median over the rounds. Microseconds are for one step of one copy.
"""

import argparse
import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle
from typing import cast

# Read when JAX starts: the constraint of the last row must not take a second core.
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import gymnasium as gym
import numpy as np
from jaxtyping import Float
from rich.console import Console
from rich.table import Table

import feasible
from feasible.envs.bike_sharing import BikeSharingVectorEnv, advance, bike_system
from feasible.envs.network import NSFNetEnv, NSFNetVectorEnv
from tests.envs.bike_sharing_reference import PlainBikeSharing, play_loop
from tests.envs.network_reference import RandomSource, ReferenceNetwork

# Seconds for which each side runs in a round.
SLICE = 0.05
BIKE_COPIES = 1024
NETWORK_COPIES = 64
ROBOT_COPIES = 32


@dataclass(frozen=True)
class Side:
    """Something that can be stepped: one `call` plays `steps` steps."""

    call: Callable[[], object]
    steps: int = 1


@dataclass(frozen=True)
class Contest:
    """Ours against a reference, and how many times faster it is meant to be."""

    title: str
    ours: Side
    reference: Side
    target: float | None = None


def network_actions(kind: str) -> Float[np.ndarray, "actions paths"]:
    """Rates of 10 on every path (light), or random rates brought to the set's boundary (full links)."""
    if kind == "light":
        return np.full((1, 9), 10.0)
    polytope = feasible.make("nsfnet").constraint(np.zeros(40))
    random = np.random.default_rng(0).uniform(0.0, 100.0, (8, 9))
    return np.stack([np.asarray(polytope.project(rates), dtype=np.float64) for rates in random])


def network_contests() -> Iterator[Contest]:
    for kind in ("light", "full"):
        actions = network_actions(kind)
        plain, source = ReferenceNetwork(RandomSource(0)), cycle(actions.tolist())
        single, copies = NSFNetEnv(episode_length=10**9), NSFNetVectorEnv(NETWORK_COPIES, episode_length=10**9)
        single.reset(seed=0)
        copies.reset(seed=0)
        one = cycle(actions)
        many = cycle([np.tile(rates, (NETWORK_COPIES, 1)) for rates in actions])
        reference = Side(lambda plain=plain, source=source: plain.step(next(source)))
        # Long enough that queues are what they stay.
        for _ in range(60):
            reference.call()
            single.step(next(one))
            copies.step(next(many))
        load = {"light": "10 packets/s on every path", "full": "full links"}[kind]
        yield Contest(f"NSFNET, {load}: env.step", Side(lambda e=single, a=one: e.step(next(a))), reference, 100.0)
        yield Contest(
            f"NSFNET, {load}: {NETWORK_COPIES} copies",
            Side(lambda e=copies, a=many: e.step(next(a)), NETWORK_COPIES),
            reference,
            100.0,
        )


def bike_actions(stations: int, copies: int) -> Float[np.ndarray, "actions copies stations"]:
    """Integer allocations: the initial one with a few bikes moved around the ring."""
    moves = np.random.default_rng(0).integers(0, 4, (20, copies, stations))
    return bike_system(stations).initial + moves - np.roll(moves, 1, axis=-1)


def bike_contests() -> Iterator[Contest]:
    for stations in (3, 5):
        system = bike_system(stations)
        actions = bike_actions(stations, BIKE_COPIES)
        order = [[station, *others] for station, others in enumerate(system.neighbours.tolist())]
        capacities = system.capacities.tolist()
        copies = BikeSharingVectorEnv(BIKE_COPIES, stations)
        copies.reset(seed=0)
        demand = copies.get_state()["demand"][:, 0].astype(np.float64)
        start = np.tile(system.initial, (BIKE_COPIES, 1))
        many = cycle(actions)
        yield Contest(
            f"BSS-{stations}, {BIKE_COPIES} copies: the step alone",
            Side(lambda s=system, x=start, d=demand, a=many: advance(s, x, d, next(a)), BIKE_COPIES),
            Side(_plain_step(start, demand, actions, capacities, order)),
            100.0,
        )
        plain, one = PlainBikeSharing(capacities, order, system.bikes, 0), cycle(actions[:, 0].tolist())
        reference = Side(lambda p=plain, a=one: p.step(next(a)))
        yield Contest(
            f"BSS-{stations}, {BIKE_COPIES} copies: env.step with demand, checks and resets",
            Side(lambda e=copies, a=many: e.step(next(a)), BIKE_COPIES),
            reference,
            100.0,
        )
        constrained = feasible.make_vec(f"bss-{stations}", BIKE_COPIES, on_infeasible="project")
        constrained.reset(seed=0)
        proposals = cycle(np.random.default_rng(1).uniform(0.0, 35.0, (20, BIKE_COPIES, stations)))
        yield Contest(
            f"BSS-{stations}, {BIKE_COPIES} copies: the same behind the constraint, projecting",
            Side(lambda e=constrained, a=proposals: e.step(next(a)), BIKE_COPIES),
            reference,
        )


def _plain_step(
    start: Float[np.ndarray, "copies stations"],
    demand: Float[np.ndarray, "copies i j"],
    actions: Float[np.ndarray, "actions copies stations"],
    capacities: list[float],
    order: list[list[int]],
) -> Callable[[], object]:
    """The plain loop on the copies' own demand and actions, one after the other."""
    pairs = list(zip(demand.tolist(), actions[0].tolist(), strict=True))
    feed = cycle(pairs)
    bikes = start[0].tolist()

    def step() -> object:
        wanted, action = next(feed)
        return play_loop(bikes, wanted, action, capacities, order)

    return step


def robot_contests() -> Iterator[Contest]:
    for task in ("halfcheetah", "reacher"):
        copies = feasible.make_vec(task, ROBOT_COPIES).env
        copies.reset(seed=0)
        shape = (50, *copies.action_space.shape)  # pyright: ignore[reportOptionalIterable]
        actions = np.random.default_rng(0).uniform(-1.0, 1.0, shape).astype(np.float32)
        # Under the constraint, and what makes states restorable, lies what gymnasium.make gives.
        single = cast(gym.Wrapper, feasible.make(task).env).env
        assert single.spec is not None
        many = cycle(actions)
        ours = Side(lambda e=copies, a=many: e.step(next(a)), ROBOT_COPIES)
        for rival, env in (("gymnasium.make", single), ("the same without its wrappers", single.unwrapped)):
            yield Contest(
                f"{single.spec.id}, {ROBOT_COPIES} copies against {rival}",
                ours,
                Side(_gymnasium_step(env, single, actions[:, 0])),
                1.0,
            )


def _gymnasium_step(env: gym.Env, whole: gym.Env, actions: Float[np.ndarray, "steps entries"]) -> Callable[[], object]:
    feed = cycle(actions)
    left = 0

    def step() -> None:
        nonlocal left
        if left == 0:
            whole.reset()
            left = 50 if actions.shape[1] == 2 else 1000
        left -= 1
        env.step(next(feed))

    return step


def thread_counts() -> list[int]:
    """1, 2, 4, ... up to the cores that this process may use."""
    cores = len(os.sched_getaffinity(0))
    return [count for count in (1, 2, 4, 8, 16, 32) if count <= cores]


def threaded() -> Iterator[tuple[str, dict[int, Side]]]:
    """Copies on different numbers of threads."""
    rates = np.full((256, 9), 10.0)
    torques = np.random.default_rng(0).uniform(-1.0, 1.0, (256, 6)).astype(np.float32)
    for task, actions in (("nsfnet", rates), ("halfcheetah", torques)):
        sides: dict[int, Side] = {}
        for count in thread_counts():
            env = feasible.make_vec(task, 256, threads=count).env
            env.reset(seed=0)
            for _ in range(5):
                env.step(actions)
            sides[count] = Side(lambda e=env, a=actions: e.step(a), 256)
        yield f"{task}, 256 copies", sides


@contextmanager
def one_core() -> Iterator[None]:
    """Keep this process on one core."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(allowed)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def in_turns(sides: list[Side], rounds: int) -> list[list[float]]:
    """Seconds a step of each side in each round; a round gives every side its slice of time."""
    calls = [max(1, round(SLICE / _seconds(side, 1))) for side in sides]
    return [
        [_seconds(side, count) / count / side.steps for side, count in zip(sides, calls, strict=True)]
        for _ in range(rounds)
    ]


def _seconds(side: Side, calls: int) -> float:
    # The first call brings code and data back into the caches.
    side.call()
    start = time.perf_counter()
    for _ in range(calls):
        side.call()
    return time.perf_counter() - start


def print_contests(console: Console, groups: Sequence[Iterator[Contest]], rounds: int) -> None:
    table = Table(title="One CPU thread: microseconds a step of one copy", title_justify="left")
    table.add_column("")
    for heading in ("ours", "reference", "ratio", "target"):
        table.add_column(heading, justify="right", no_wrap=True)
    for contests in groups:
        for contest in contests:
            samples = in_turns([contest.ours, contest.reference], rounds)
            ratio = statistics.median(reference / ours for ours, reference in samples)
            medians = (_microseconds(side) for side in zip(*samples, strict=True))
            table.add_row(contest.title, *medians, f"{ratio:.3g}x", _verdict(contest.target, ratio))
        table.add_section()
    console.print(table)


def _microseconds(seconds: Sequence[float]) -> str:
    value = 1e6 * statistics.median(seconds)
    return f"{value:,.0f}" if value >= 100.0 else f"{value:.3g}"


def _verdict(target: float | None, ratio: float) -> str:
    return "" if target is None else f"{target:g}x {'reached' if ratio >= target else 'MISSED'}"


def print_threads(console: Console, rounds: int) -> None:
    table = Table(title="Threads: times as fast as one", title_justify="left")
    table.add_column("")
    for count in thread_counts():
        table.add_column(f"{count}", justify="right")
    for title, sides in threaded():
        samples = in_turns(list(sides.values()), rounds)
        gains = (statistics.median(times[0] / times[place] for times in samples) for place in range(len(sides)))
        table.add_row(title, *(f"{gain:.2f}" for gain in gains))
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description="Speed of the environments.")
    parser.add_argument("--rounds", type=int, default=15, help="turns of each side; the median counts")
    rounds = parser.parse_args().rounds
    console = Console(width=120)
    with one_core():
        print_contests(console, (network_contests(), bike_contests(), robot_contests()), rounds)
    print_threads(console, rounds)


if __name__ == "__main__":
    main()
