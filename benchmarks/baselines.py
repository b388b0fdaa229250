"""TD3, SAC, PPO and TRPO against the field: unconstrained HalfCheetah, the same settings and budget on both sides.

    python -m benchmarks.baselines speed    [--methods PPO] [--rounds 6]
    python -m benchmarks.baselines learning [--methods TD3] [--seeds 5] [--jobs 2] [--out FILE]

Peers are Stable-Baselines3's TD3, SAC and PPO and sb3-contrib's TRPO with their defaults (TD3 with exploration noise of
0.1, a warm-up of 10,000 steps and batches of 100); ours have the same sizes, rates, discounts and lengths (and the
action box for a constraint). Speed: all sides, each a process of its own, take turns on one core with one thread, ours
set up as `feasible train` is; SBX, Stable-Baselines3 in JAX, which has no TRPO, is there, too. Rates are by processor
time, so that other programs on the machine disturb little.
Learning: the return of 10 episodes without exploration at the end of the budget, for every seed.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

# Read when JAX and PyTorch start: one thread each, and one core, so that none of the two waits for another to wake.
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.environ["OMP_NUM_THREADS"] = "1"

if hasattr(os, "sched_setaffinity") and "timed" in sys.argv:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

import gymnasium as gym
import numpy as np
from rich.console import Console
from rich.table import Table
from scipy import stats

import feasible
from feasible.agents import PPO, SAC, TD3, TRPO, Agent
from feasible.run.sweep.processes import use_one_thread

METHODS: dict[str, tuple[type[Agent], dict[str, object], int]] = {
    "SAC": (
        SAC,
        {
            "hidden_layers": (256, 256),
            "rate": 3e-4,
            "batch_size": 256,
            "entropy_weight": 1.0,
            "entropy_target": -6.0,
            "warmup": 100,
            "learning_starts": 100,
        },
        10_000,
    ),
    "TD3": (TD3, {"noise": 0.1, "target_noise": 0.2, "warmup": 10_000}, 100_000),
    "PPO": (PPO, {"normalised": False}, 100_000),
    "TRPO": (TRPO, {"normalised": False, "minibatch": 128, "epochs": 10, "products": 15}, 100_000),
}
"""Ours, its settings where they are not those of the peer already, and the budget."""
# Steps that include the same share of updates, and those before that have none.
ROUND = {"SAC": 250, "TD3": 250, "PPO": 2_048, "TRPO": 2_048}
BEFORE = {"SAC": 100, "TD3": 10_000, "PPO": 0, "TRPO": 0}
TARGETS = {"SAC": 2.5, "PPO": 4.0, "TRPO": 3.0}


def ours(name: str, seed: int) -> Agent:
    kind, settings, _ = METHODS[name]
    return kind(feasible.make("halfcheetah-box"), seed=seed, **settings)  # pyright: ignore[reportArgumentType]


def peer(name: str, seed: int):
    import torch  # pyright: ignore[reportMissingImports]
    from sb3_contrib import TRPO as ContribTRPO  # noqa: N811  # pyright: ignore[reportMissingImports]
    from stable_baselines3 import PPO as SB3PPO  # pyright: ignore[reportMissingImports]
    from stable_baselines3 import SAC as SB3SAC  # pyright: ignore[reportMissingImports]
    from stable_baselines3 import TD3 as SB3TD3  # pyright: ignore[reportMissingImports]
    from stable_baselines3.common.noise import NormalActionNoise  # pyright: ignore[reportMissingImports]

    torch.set_num_threads(1)
    kind = {"TD3": SB3TD3, "SAC": SB3SAC, "PPO": SB3PPO, "TRPO": ContribTRPO}[name]
    noise = NormalActionNoise(np.zeros(6), np.full(6, 0.1))
    own = {"batch_size": 100, "learning_starts": 10_000, "action_noise": noise} if name == "TD3" else {}
    return kind("MlpPolicy", gym.make("HalfCheetah-v5"), device="cpu", seed=seed, **own)


def jax_peer(name: str, seed: int):
    """The same of SBX."""
    import sbx  # pyright: ignore[reportMissingImports]
    from stable_baselines3.common.noise import NormalActionNoise  # pyright: ignore[reportMissingImports]

    noise = NormalActionNoise(np.zeros(6), np.full(6, 0.1))
    sizes = {"policy_kwargs": {"net_arch": [400, 300]}, "batch_size": 100, "learning_starts": 10_000}
    own = {**sizes, "action_noise": noise} if name == "TD3" else {}
    return getattr(sbx, name)("MlpPolicy", gym.make("HalfCheetah-v5"), seed=seed, **own)


SIDES: dict[str, Callable[[str, int], Any]] = {"ours": ours, "peer": peer, "sbx": jax_peer}


def learned(name: str, side: str, seed: int, steps: int) -> float:
    """Mean return of 10 episodes after training."""
    if side == "ours":
        return ours(name, seed).learn(steps).evaluate(10, seed=seed).mean
    model = peer(name, seed)
    model.learn(steps, log_interval=1_000_000)
    env, returns = gym.make("HalfCheetah-v5"), []
    for episode in range(10):
        obs, _ = env.reset(seed=1_000 + 10 * seed + episode)
        total, over = 0.0, False
        while not over:
            action, _ = model.predict(obs, deterministic=True)
            obs, reward, terminated, truncated, _ = env.step(action)
            total, over = total + float(reward), terminated or truncated
        returns.append(total)
    return float(np.mean(returns))


def stepper(name: str, side: str) -> Callable[[int], object]:
    """Makes so many steps of training, past the first updates."""
    model = SIDES[side](name, 0)
    first = BEFORE[name] + 2 * ROUND[name]
    if side == "ours":
        return model.learn(first).learn
    model.learn(first, log_interval=1_000_000)
    return lambda steps: model.learn(steps, log_interval=1_000_000, reset_num_timesteps=False)


def timed(name: str, side: str) -> None:
    """Make a round of steps for every line that comes in, and answer with the steps per second of processor time."""
    if side == "ours":
        use_one_thread()
    make = stepper(name, side)
    print("ready", flush=True)
    for _ in sys.stdin:
        start = time.process_time()
        make(ROUND[name])
        print(ROUND[name] / (time.process_time() - start), flush=True)


class Side:
    """A side in a process of its own, which works only when it is asked to."""

    def __init__(self, name: str, side: str):
        words = [sys.executable, "-m", "benchmarks.baselines", "timed", name, side]
        self._process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self._answer("ready")

    def rate(self) -> float:
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return float(self._answer("."))

    def close(self) -> None:
        self._process.kill()
        self._process.wait()

    def _answer(self, holding: str) -> str:
        """The next line with that in it; libraries print lines of their own."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if holding in line and (holding == "ready" or line[0].isdigit()):
                return line
        raise RuntimeError("A side ended before its time.")


def speed(methods: Sequence[str], rounds: int) -> Table:
    result = Table(title="Steps per second of training, HalfCheetah, one thread")
    for column in ("", "ours", "Stable-Baselines3", "ratio", "target", "SBX", "ratio"):
        result.add_column(column, justify="left" if not column else "right")
    for name in methods:
        sides = {side: Side(name, side) for side in SIDES if side != "sbx" or name != "TRPO"}
        rates: dict[str, list[float]] = {side: [] for side in sides}
        for _ in range(rounds):
            for side, process in sides.items():
                rates[side].append(process.rate())
        for process in sides.values():
            process.close()
        faster = {
            side: statistics.median(own / other for own, other in zip(rates["ours"], rates[side], strict=True))
            for side in sides
        }
        cells = {side: [f"{statistics.median(rates[side]):,.0f}", f"{faster[side]:.2f}x"] for side in sides}
        target = TARGETS.get(name)
        judged = "" if target is None else f"{target}x, {'reached' if faster['peer'] >= target else 'missed'}"
        result.add_row(name, cells["ours"][0], *cells["peer"], judged, *cells.get("sbx", ["none", ""]))
    return result


def learning(methods: Sequence[str], seeds: int, jobs: int, out: Path | None) -> Table:
    """Every run in a process of its own, so many at a time; those that `out` holds already are not made again."""
    known = json.loads(out.read_text()) if out is not None and out.exists() else {}
    waiting = [(name, side, seed) for name in methods for seed in range(seeds) for side in ("peer", "ours")]
    running: dict[tuple[str, str, int], subprocess.Popen[str]] = {}
    returns = {key: known[" ".join(map(str, key))] for key in waiting if " ".join(map(str, key)) in known}
    waiting = [key for key in waiting if key not in returns]
    while waiting or running:
        while waiting and len(running) < jobs:
            key = waiting.pop(0)
            words = [sys.executable, "-m", "benchmarks.baselines", "one", *map(str, key)]
            running[key] = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        time.sleep(0.2)
        for key, process in list(running.items()):
            if process.poll() is not None:
                assert process.stdout is not None
                said = process.stdout.read().split()
                del running[key]
                if process.returncode:
                    raise RuntimeError(f"{key} ended with code {process.returncode}")
                returns[key] = float(said[-1])
                if out is not None:
                    out.write_text(json.dumps({" ".join(map(str, k)): value for k, value in returns.items()}, indent=1))
    result = Table(title=f"Return after training, HalfCheetah, {seeds} seeds: mean and standard deviation")
    for column in ("", "steps", "ours", "Stable-Baselines3", "difference, 95%", "in standard errors"):
        result.add_column(column, justify="left" if not column else "right")
    for name in methods:
        steps = METHODS[name][2]
        own, other = (np.array([returns[name, side, seed] for seed in range(seeds)]) for side in ("ours", "peer"))
        error = np.sqrt((own.var(ddof=1) + other.var(ddof=1)) / seeds)
        sides = [f"{x.mean():,.0f} +- {x.std(ddof=1):,.0f}" for x in (own, other)]
        apart, reach = own.mean() - other.mean(), _welch(own, other) * error
        interval = f"{apart - reach:+,.0f} to {apart + reach:+,.0f}"
        result.add_row(name, f"{steps:,}", *sides, interval, f"{apart / error:+.1f}")
    return result


def _welch(own: np.ndarray, other: np.ndarray) -> float:
    """Student's quantile for the 95% interval of a difference of means whose variances differ."""
    parts = [x.var(ddof=1) / len(x) for x in (own, other)]
    freedom = sum(parts) ** 2 / sum(part**2 / (len(x) - 1) for part, x in zip(parts, (own, other), strict=True))
    return float(stats.t.ppf(0.975, freedom))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    fast = commands.add_parser("speed")
    fast.add_argument("--rounds", type=int, default=6)
    fast.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    learn = commands.add_parser("learning")
    learn.add_argument("--seeds", type=int, default=5)
    learn.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    learn.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    learn.add_argument("--out", type=Path, default=None, help="write every return to this file as it comes")
    one, alone = commands.add_parser("one"), commands.add_parser("timed")
    for part in (one, alone):
        part.add_argument("name", choices=METHODS)
        part.add_argument("side", choices=SIDES)
    one.add_argument("seed", type=int)
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    if options.command == "one":
        print(learned(options.name, options.side, options.seed, METHODS[options.name][2]))
    elif options.command == "timed":
        timed(options.name, options.side)
    elif options.command == "speed":
        Console().print(speed(options.methods, options.rounds))
    else:
        Console().print(learning(options.methods, options.seeds, options.jobs, options.out))


if __name__ == "__main__":
    main()
