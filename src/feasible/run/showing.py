"""`feasible evaluate`: the returns of a run's policy, in a table, and a film of one episode."""

from pathlib import Path

import jax
import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from feasible.catalogue import registry
from feasible.run.drive.programs import compiled_policy
from feasible.run.evaluate import Evaluation, evaluate, evaluation_seeds
from feasible.run.film import check_film, film
from feasible.run.loading import load_run
from feasible.run.validity import WHOLE, check_whole


def show_evaluation(run: Path, episodes: int, seed: int, video: Path | None, task: str | None = None) -> None:
    """Evaluate the policy of a run's folder or of a policy file, print the result, write the film."""
    if episodes < 1:
        raise ValueError(f"episodes must be at least 1, not {episodes}.")
    check_whole("episodes", episodes, *WHOLE["episodes"])
    check_whole("seed", seed, *WHOLE["seed"])
    if video is not None:
        check_film(video)
    trained = load_run(run, task)
    policy = trained.policy
    act = compiled_policy(trained.algorithm, trained.spec)
    env = registry.make_vec(trained.task, episodes)
    seeds = evaluation_seeds(seed, 0, episodes)
    console = Console()
    console.print(_table(trained.name, evaluate(act, policy, env, seeds)))
    if video is not None:
        film(act, policy, trained.task, seeds[0], video)
        console.print(f"Film of the first episode: {video}", markup=False)


def film_run(run: Path, path: Path, width: int | None = None, most: int | None = None) -> None:
    """Film the first episode of a run's policy, or its first `most` steps."""
    trained = load_run(run)
    act = compiled_policy(trained.algorithm, trained.spec)
    film(act, trained.policy, trained.task, evaluation_seeds(0, 0, 1)[0], path, width, most)


def _table(name: str, evaluation: Evaluation) -> Table:
    table = Table(title=f"{escape(name)}: {len(evaluation.returns)} episodes without exploration on {jax.devices()[0]}")
    table.add_column("episode", justify="right")
    table.add_column("return", justify="right")
    for number, value in enumerate(evaluation.returns, 1):
        table.add_row(str(number), f"{value:.2f}")
    spread = f" ± {np.std(evaluation.returns):.2f}" if len(evaluation.returns) > 1 else ""
    table.add_section()
    table.add_row("mean", f"{evaluation.mean:.2f}{spread}", style="bold")
    table.caption = f"Largest violation of an executed action: {evaluation.executed_violation:.1e}"
    return table
