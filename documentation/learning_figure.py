"""The figure of the front page: two methods learn Reacher under its torque limit, from the run folders of a comparison.

    feasible compare --tasks reacher --algos nfwpo ddpg-projection --seeds 0 1 2 --preset fair --steps 20000 \\
        --eval-every 1000
    python -m documentation.learning_figure runs
"""

import argparse
import io
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from documentation.marked import ROOT
from feasible.catalogue.registry import METHODS
from feasible.run.folder import read_metrics

PATH = ROOT / "docs" / "pictures" / "reacher.svg"
COLOURS = {"nfwpo": "tab:blue", "ddpg-projection": "tab:orange"}


def curve(runs: Path, metric: str) -> tuple[np.ndarray, np.ndarray]:
    """Steps, and the metric of every seed at each of them."""
    found = []
    for path in sorted(runs.glob("seed-*/metrics.jsonl")):
        lines = [line for line in read_metrics(path) if metric in line]
        found.append({line["step"]: line[metric] for line in lines})
    steps = sorted(set.intersection(*(set(one) for one in found)))
    return np.array(steps), np.array([[one[step] for step in steps] for one in found])


def drawn(runs: Path) -> bytes:
    with mpl.rc_context({"svg.hashsalt": "feasible", "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=(8.0, 2.9), layout="constrained")
        left, right = figure.subplots(1, 2)
        for method, colour in COLOURS.items():
            for axes, metric in ((left, "eval/return"), (right, "violation/proposed_count")):
                steps, values = curve(runs / "reacher" / f"{method}+fair", metric)
                axes.plot(steps, values.mean(0), color=colour, label=METHODS[method].title)
                axes.fill_between(steps, values.min(0), values.max(0), color=colour, alpha=0.2, linewidth=0)
                axes.set_xlabel("environment steps")
                axes.set_xticks(range(0, int(steps[-1]) + 1, 5_000))
        left.set_title("Return of ten episodes")
        right.set_title("Infeasible proposals (executed: none)")
        left.legend(frameon=False, loc="best")
        contents = io.BytesIO()
        figure.savefig(contents, format="svg", metadata={"Date": None})
    return contents.getvalue()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("runs", type=Path, help="folder of the runs")
    PATH.write_bytes(drawn(parser.parse_args().runs))


if __name__ == "__main__":
    main()
