"""The paper's tables and figures as grids of runs: exactly those that each of them needs.

    feasible reproduce table2 --steps-scale 0.01

The runs of all items are in one folder, so an item whose runs another one has trained needs no training.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from feasible.errors import unknown
from feasible.run.config import RunConfig
from feasible.run.launch import configure

_DDPG = ("ddpg-projection", "ddpg-shaping", "ddpg-optlayer")
_NEURAL = ("nfwpo", *_DDPG)
_ALL = (*_NEURAL, "sac-projection", "trpo-projection", "ppo-projection", "focops-projection")

Grid = Mapping[str, Sequence[str]]
"""Methods by task."""

_FIGURES: Mapping[str, Grid] = {
    "fig1": {"bss-3": ("fwpo", "tabular-projection", "tabular-shaping")},
    "fig2": {"bss-5": _NEURAL},
    "fig3": {"nsfnet": _NEURAL},
    "fig4": {"reacher": _ALL},
    "fig5": {"halfcheetah": _ALL},
    "fig6": {"halfcheetah-box": ("nfwpo", "trpo-capg", "ppo-capg")},
}
ITEMS: Mapping[str, Grid] = {
    "table1": {**_FIGURES["fig1"], **_FIGURES["fig2"], **_FIGURES["fig3"]},
    "table2": {**_FIGURES["fig4"], **_FIGURES["fig5"]},
    **_FIGURES,
    "all": {task: algos for grid in _FIGURES.values() for task, algos in grid.items()},
}
TITLES: Mapping[str, str] = {
    **{f"table{number}": f"Table {number} of the paper" for number in (1, 2)},
    **{f"fig{number}": f"Figure {number} of the paper" for number in range(1, 7)},
    "all": "The paper's tables and figures",
}
EVALUATIONS = 10  # the least that a shortened run has: its score is the mean of so many


def find_item(name: str) -> Grid:
    """The grid of that item; for another name an error that says which one may be meant."""
    if name in ITEMS:
        return ITEMS[name]
    raise unknown("item", name, ITEMS)


def paper_runs(
    item: str, seeds: Sequence[int], preset: str = "paper", steps_scale: float = 1.0, as_authors: bool = False
) -> list[RunConfig]:
    """The runs of an item, seed by seed; with `as_authors` also those that do what the authors' code does.

    `steps_scale` shortens the runs and nothing else, but evaluates them at least ten times; runs shorter than the
    warm-up do not learn.
    """
    grid = find_item(item)
    if not 0 < steps_scale <= 1:
        raise ValueError(f"steps_scale must be above 0 and at most 1, not {steps_scale}.")
    if not seeds or len(set(seeds)) < len(seeds):
        raise ValueError("seeds must name at least one, and each only once.")
    runs = []
    for seed in seeds:
        for task, algos in grid.items():
            for algo in algos:
                runs.append(configure(task, algo, seed, preset=preset))
                runs += _departing(task, algo, seed) if as_authors else []
    return [_shortened(config, steps_scale) for config in runs]


def for_accelerator(config: RunConfig) -> bool:
    """Whether a run is worth a place in a population: methods that learn at every step, where MuJoCo is stepped."""
    return config.task in ("reacher", "halfcheetah", "halfcheetah-box") and config.algo in (*_NEURAL, "sac-projection")


def run_folder(out: Path, steps_scale: float) -> Path:
    """Where the runs are; shortened ones are others than those of full length."""
    return out / ("runs" if steps_scale == 1 else f"runs-x{steps_scale:g}")


def _departing(task: str, algo: str, seed: int) -> list[RunConfig]:
    from feasible.paper.as_authors import is_known, run_config

    return [run_config(task, algo, seed)] if is_known(task, algo) else []


def _shortened(config: RunConfig, scale: float) -> RunConfig:
    if scale == 1:
        return config
    steps = max(1, round(config.steps * scale))
    interval = min(config.eval_every, max(1, steps // EVALUATIONS))
    return replace(config, steps=steps, eval_every=interval, log_every=min(config.log_every, interval))
