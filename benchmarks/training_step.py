"""One training step, everything included: environment, action, storage, update. HalfCheetah, 400-300, batch 16.

    python -m benchmarks.training_step [--rounds 8] [--steps 250] [--profile FOLDER]

| row          | what it is                                                                                      |
|--------------|-------------------------------------------------------------------------------------------------|
| ours         | NFWPO under the paper's constraint, as `feasible train` runs it                                  |
| box          | the same with the box as constraint: what is left without the geometry                           |
| solvers      | the same update with one QP (Clarabel) and one LP (HiGHS) solved a sample: the way of the peers  |
| SB3, SBX     | DDPG of Stable-Baselines3 (PyTorch) and SBX (JAX), without any constraint                        |

All take turns on one core with one thread, in one process that is set up as that of `feasible train`; times are of the
processor, ratios medians over the rounds, so that other programs on the machine disturb little. The bound is the time
that the update's floating-point operations and bytes take at the rates which this core reaches in the same run, on
matrix products of the update's own shapes and on sums over arrays of its own sizes.
"""

import argparse
import os
import statistics
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace

# Read when JAX and PyTorch start: one thread each.
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.environ["OMP_NUM_THREADS"] = "1"

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

import feasible
from benchmarks.roofline import Roofline, update_roofline
from benchmarks.solver_set import SolverSet
from feasible.algorithms.actor_rules import FrankWolfe
from feasible.algorithms.ddpg import DDPG
from feasible.constraints import Constraint
from feasible.run.drive.lone import Lone
from feasible.run.drive.plant import plant_of
from feasible.run.sweep.processes import use_one_thread
from feasible.sets import Box, WeightedL1Box

BATCH, UNITS, WARMUP = 16, (400, 300), 100
REPLAY = 1_000_000
TARGET = 5.0
SOLVER_STEPS = 5

# Makes so many steps.
Stepper = Callable[[int], None]


def ours(constraint: Constraint | None) -> Lone:
    """NFWPO on HalfCheetah, past its warm-up; another constraint instead of the task's where given."""
    made = plant_of(feasible.make("halfcheetah"))
    if constraint is not None:
        made.constraint, made.spec = constraint, replace(made.spec, constraint=constraint)
    algorithm = DDPG(
        rule=FrankWolfe(0.01), noise=0.1, warmup=WARMUP, batch_size=BATCH, replay_size=REPLAY, hidden_layers=UNITS
    )
    driver = Lone(algorithm, made, 0)
    driver.start()
    driver.advance(WARMUP + 1)
    return driver


def stepper(driver: Lone) -> Stepper:
    return lambda steps: driver.advance(driver.step + steps)


def by_solvers(obs: Array) -> SolverSet:
    return SolverSet(WeightedL1Box(obs[-6:], 20.0, 1.0))


def unit_box(obs: Array) -> Box:
    return Box(jnp.full(6, -1.0, obs.dtype), jnp.ones(6, obs.dtype))


def stable_baselines() -> Stepper | None:
    """DDPG of Stable-Baselines3 at the same sizes."""
    try:
        import stable_baselines3  # pyright: ignore[reportMissingImports]
        import torch  # pyright: ignore[reportMissingImports]
    except ImportError:
        return None
    torch.set_num_threads(1)
    return _learner(stable_baselines3.DDPG)


def sbx() -> Stepper | None:
    """DDPG of SBX, Stable-Baselines3 in JAX."""
    try:
        import sbx as peer  # pyright: ignore[reportMissingImports]
    except ImportError:
        return None
    return _learner(peer.DDPG)


def _learner(peer: Callable) -> Stepper:
    from stable_baselines3.common.noise import NormalActionNoise  # pyright: ignore[reportMissingImports]

    model = peer(
        "MlpPolicy",
        gym.make("HalfCheetah-v5"),
        batch_size=BATCH,
        learning_starts=WARMUP,
        buffer_size=REPLAY,
        train_freq=1,
        gradient_steps=1,
        tau=1e-3,
        action_noise=NormalActionNoise(np.zeros(6), np.full(6, 0.1)),
        policy_kwargs={"net_arch": list(UNITS)},
        device="cpu",
        seed=0,
    )
    model.learn(WARMUP + 50, log_interval=1_000_000)
    return lambda steps: model.learn(steps, log_interval=1_000_000, reset_num_timesteps=False)


def in_turns(sides: Mapping[str, tuple[Stepper, int]], rounds: int) -> dict[str, list[float]]:
    """Seconds of processor time a step of each side, a number a round."""
    seconds: dict[str, list[float]] = {title: [] for title in sides}
    for _ in range(rounds):
        for title, (step, count) in sides.items():
            start = time.process_time()
            step(count)
            seconds[title].append((time.process_time() - start) / count)
    return seconds


def environment_alone() -> Stepper:
    """HalfCheetah itself with given actions: the part that no trainer can avoid."""
    env = plant_of(feasible.make("halfcheetah")).env
    env.reset(seed=0)
    actions: NDArray = np.random.default_rng(0).uniform(-1, 1, (64, 6)).astype(np.float32)

    def steps(count: int) -> None:
        for k in range(count):
            *_, truncated, _ = env.step(actions[k % 64])
            if truncated:
                env.reset()

    return steps


def table(seconds: Mapping[str, list[float]], bound: Roofline) -> Table:
    result = Table(title=f"A training step: HalfCheetah, {UNITS[0]}-{UNITS[1]}, batch {BATCH}, one thread")
    for column in ("", "ms per step", "ours is faster by"):
        result.add_column(column, justify="left" if not column else "right")
    for title, values in seconds.items():
        ratios = [other / own for other, own in zip(values, seconds["ours"], strict=True)]
        times = "" if title == "ours" else f"{statistics.median(ratios):.2f}x"
        result.add_row(title, f"{1e3 * statistics.median(values):.3f}", times)
    own = statistics.median(seconds["ours"])
    geometry = statistics.median(
        1 - without / full for full, without in zip(seconds["ours"], seconds["box"], strict=True)
    )
    simulator = statistics.median(seconds["environment alone"])
    least = bound.seconds + simulator
    result.caption = (
        f"Geometry: {100 * geometry:.1f}% of the step (ours against box).\n"
        f"Bound: {bound.flops / 1e6:.1f} Mflop at {bound.flop_rate / 1e9:.1f} Gflop/s "
        f"= {1e3 * bound.flop_seconds:.3f} ms, {bound.bytes / 1e6:.1f} MB at {bound.byte_rate / 1e9:.1f} GB/s "
        f"= {1e3 * bound.byte_seconds:.3f} ms, environment {1e3 * simulator:.3f} ms: "
        f"together {1e3 * least:.3f} ms; ours takes {own / least:.2f} times that."
    )
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--steps", type=int, default=250, help="steps a round")
    parser.add_argument("--profile", default=None, help="write a JAX profile of our steps to this folder and end")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    use_one_thread()
    driver = ours(None)
    if options.profile:
        with jax.profiler.trace(options.profile):
            stepper(driver)(options.steps)
        return
    candidates = {
        "ours": (stepper(driver), options.steps),
        "box": (stepper(ours(unit_box)), options.steps),
        "solvers": (stepper(ours(by_solvers)), SOLVER_STEPS),
        "Stable-Baselines3 DDPG": (stable_baselines(), options.steps),
        "SBX DDPG": (sbx(), options.steps),
        "environment alone": (environment_alone(), options.steps),
    }
    sides = {title: (step, count) for title, (step, count) in candidates.items() if step is not None}
    in_turns(sides, 1)
    seconds = in_turns(sides, options.rounds)
    console = Console()
    console.print(table(seconds, update_roofline(driver.carry.algorithm, BATCH)))
    if "Stable-Baselines3 DDPG" in seconds:
        ratio = statistics.median(
            peer / own for peer, own in zip(seconds["Stable-Baselines3 DDPG"], seconds["ours"], strict=True)
        )
        console.print(
            f"Against Stable-Baselines3: {ratio:.2f}x, {'reached' if ratio >= TARGET else 'missed'} ({TARGET}x)."
        )
    console.print(f"Traces during the run: {driver.programs.traces} for {len(driver.programs.made)} programs.")
    rows: Float[Array, "capacity width"] = driver.carry.algorithm.replay.rows
    console.print(f"Replay of {REPLAY:,} transitions: {rows.nbytes / 1e6:.0f} MB.")


if __name__ == "__main__":
    main()
