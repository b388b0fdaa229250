"""A report of many runs: how long reading and rendering take.

    python -m benchmarks.report [--runs 200] [--evaluations 1000] [--logs 5] [--out folder]

The runs are made up, with the metrics that real ones have: an evaluation every 5,000 steps and a line every 1,000.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from itertools import islice, product
from pathlib import Path

import numpy as np

from feasible.catalogue.registry import PAPERS
from feasible.paper.printed import PRINTED
from feasible.report.writing import write_report
from feasible.run.config import RunConfig
from feasible.run.launch import configure

TARGET = 20.0  # seconds for 200 runs of 1000 evaluations
VERSIONS = {"python": "3.11.7", "feasible": "0.1.0", "jax": "0.10.2"}


def write_run(out: Path, config: RunConfig, reached: int | None = None, versions: dict[str, str] | None = None) -> Path:
    """A made-up run folder: returns that rise towards the value that the paper prints, with noise."""
    generator = np.random.default_rng([config.seed, *config.name.encode()])
    folder = out / config.name
    folder.mkdir(parents=True)
    machine = {"system": "Linux", "cores": 2, "device": "cpu (cpu)"}
    described = {
        **asdict(config),
        "versions": versions or VERSIONS,
        "machine": machine,
        "command": ["feasible", "compare"],
    }
    (folder / "config.json").write_text(json.dumps(described, indent=1))
    goal = PRINTED.get((config.task, config.algo), 1000.0) * (1 + 0.05 * generator.normal())
    lines, violations, end = [], 0, config.steps if reached is None else reached
    for step in range(config.log_every, end + 1, config.log_every):
        learned = 1 - np.exp(-3 * step / config.steps)
        violations += int(generator.integers(0, config.log_every // 2 + 1))
        line: dict[str, float | list[float]] = {
            "step": step,
            "violation/proposed_count": violations,
            "violation/intended_count": violations // 2,
            "violation/executed_max": 3e-8,
            "train/episode_return": float(generator.normal()),
            "critic/loss": float(generator.normal()),
            "critic/value": float(generator.normal()),
            "time/steps_per_second": float(300 + generator.normal()),
        }
        if config.algo == "ddpg-optlayer":
            line |= {
                "actor/grad_proposed": float(0.1 * generator.random()),
                "actor/grad_executed": float(2 + generator.random()),
            }
        if config.task == "bss-3":
            line |= {"policy/distance_to_optimal": float(2000 * (1 - learned) + 50 * generator.random())}
        if step % config.eval_every == 0:
            worse = 1.5 * abs(goal) * (1 - learned)
            returns = goal - worse + 0.03 * abs(goal) * generator.normal(0, 1, config.episodes)
            line |= {
                "eval/return": float(returns.mean()),
                "eval/returns": returns.tolist(),
                "eval/executed_violation": 2e-8,
            }
        lines.append(line)
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def made_up(task: str, algo: str, seed: int, evaluations: int, logs: int = 5, variant: str = "") -> RunConfig:
    """A run of so many evaluations, with `logs` lines for each."""
    interval = 1000 * logs
    config = configure(task, algo, seed, steps=interval * evaluations, variant=variant, eval_every=interval)
    return replace(config, log_every=1000)


def grid(count: int, evaluations: int, logs: int) -> list[RunConfig]:
    """So many runs, five seeds a method, over all tasks; more of them than that are variants."""
    kinds = [(task.name, algo) for task in PAPERS.values() for algo in task.preset("paper")]
    named: Sequence[tuple[int, tuple[str, str], int]] = list(
        islice(((lap, kind, seed) for lap in range(count) for kind, seed in product(kinds, range(5))), count)
    )
    return [made_up(task, algo, seed, evaluations, logs, f"v{lap}" if lap else "") for lap, (task, algo), seed in named]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--evaluations", type=int, default=1000)
    parser.add_argument("--logs", type=int, default=5, help="lines of metrics an evaluation")
    parser.add_argument("--out", type=Path, help="keep the runs and the report in this folder")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        out = options.out or Path(temporary)
        for config in grid(options.runs, options.evaluations, options.logs):
            if not (out / "runs" / config.name).exists():
                write_run(out / "runs", config)
        size = sum(path.stat().st_size for path in (out / "runs").rglob("metrics.jsonl"))
        begun, worked = time.perf_counter(), time.process_time()
        report = write_report(out / "runs", out / "report")
        seconds, work = time.perf_counter() - begun, time.process_time() - worked
        page = report.page.stat().st_size
    print(f"{report.runs} runs with {size / 1e6:.0f} MB of metrics, a page of {page / 1e6:.1f} MB:")
    print(f"{seconds:.1f} s, {work:.1f} s of them on the processor")
    if (options.runs, options.evaluations) == (200, 1000):
        print(f"to reach: {TARGET:.0f} s, {'reached' if seconds < TARGET else 'missed'}")


if __name__ == "__main__":
    main()
