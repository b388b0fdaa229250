"""`feasible evaluate`: the returns of a run's policy, in a table, and a film of one episode."""

import warnings
from pathlib import Path

import jax
import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from feasible.algorithms.spec import spec_of
from feasible.catalogue import registry
from feasible.constraints.outcomes import flattened
from feasible.run.drive.programs import Policy, compiled_policy
from feasible.run.drive.wire import wire_of
from feasible.run.evaluate import Evaluation, evaluate, evaluation_seeds
from feasible.run.loading import load_run
from feasible.run.validity import WHOLE, check_whole

KINDS = (".mp4", ".gif")


def show_evaluation(run: Path, episodes: int, seed: int, video: Path | None, task: str | None = None) -> None:
    """Evaluate the policy of a run's folder or of a policy file, print the result, write the film."""
    if episodes < 1:
        raise ValueError(f"episodes must be at least 1, not {episodes}.")
    check_whole("episodes", episodes, *WHOLE["episodes"])
    check_whole("seed", seed, *WHOLE["seed"])
    if video is not None and video.suffix.lower() not in KINDS:
        raise ValueError(f"video must end in {' or '.join(KINDS)}, not {video.name!r}.")
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


def film(act: Policy, policy: object, task: str, seed: int, path: Path) -> None:
    """Write one episode as a film; the frames go to the file as they come."""
    import imageio.v2 as imageio  # brings its encoders along: only for films

    env = registry.make(task, render_mode="rgb_array")
    wire, layout = wire_of(spec_of(env)), env.layout
    obs, _ = env.reset(seed=seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    rate = float(env.metadata.get("render_fps", 30))
    if path.suffix.lower() == ".mp4":
        writer = imageio.get_writer(path, fps=rate, macro_block_size=1)
    else:
        writer = imageio.get_writer(path, duration=1000 / rate, loop=0)
    with warnings.catch_warnings(), writer:
        # JAX warns of every fork; this one only starts the encoder.
        warnings.filterwarnings("ignore", message=r"os\.fork\(\) was called", category=RuntimeWarning)
        running = True
        while running:
            writer.append_data(_even(np.asarray(env.render())))  # pyright: ignore[reportAttributeAccessIssue]
            seen = np.asarray(flattened(obs, layout, 0), np.float32)
            row = np.asarray(act(policy, seen[None]))[0]
            obs, _, terminated, truncated, _ = env.step(wire.executed(row).copy())
            running = not (terminated or truncated)
    env.close()


def _even(frame: np.ndarray) -> np.ndarray:
    """The frame with even sides, as encoders of films want them."""
    height, width = frame.shape[:2]
    return frame[: height - height % 2, : width - width % 2]


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
