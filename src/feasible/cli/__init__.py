"""The command line: one function a command, its parameters are the options, its docstring the help.

Commands import what they need when they run, so that help is there at once.
"""

import importlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import tyro

from feasible.cli.comparison import STUDIES, compare, report, reproduce
from feasible.errors import sentence


def train(
    task: str,
    algo: str,
    seed: int = 0,
    steps: int | None = None,
    preset: str | None = None,
    set: tuple[str, ...] = (),
    variant: str = "",
    out: Path = Path("runs"),
    eval_every: int | None = None,
    episodes: int | None = None,
    checkpoint_every: int = 10_000,
    tensorboard: bool = False,
) -> None:
    """Train one agent on a task; the run's folder is OUT/TASK/ALGO/seed-SEED.

    Args:
        task: Name of the task (`feasible tasks`).
        algo: Name of the algorithm (`feasible algos`), or `recommended`.
        seed: Seed of everything random in the run.
        steps: Environment steps; the task's own number if not given.
        preset: Preset of the task (`feasible tasks`), or `default` for the method's own defaults. Omitted: the task's
            first; fair for `recommended`.
        set: Override hyper-parameters, for example batch_size=32.
        variant: Name that tells this run's folder from others of the same task and algorithm.
        out: Folder of all runs.
        eval_every: Steps between evaluations.
        episodes: Episodes per evaluation.
        checkpoint_every: Steps between checkpoints.
        tensorboard: Also write TensorBoard event files into the run's folder.
    """
    _one_thread()
    if tensorboard:
        from feasible.run.tensorboard import require_tensorboard

        require_tensorboard()
    from feasible.run.launch import changes_of, configure, new_run

    config = configure(
        task,
        algo,
        seed,
        steps=steps,
        preset=preset,
        changes=changes_of(set),
        variant=variant,
        eval_every=eval_every,
        episodes=episodes,
        checkpoint_every=checkpoint_every,
    )
    _train(new_run(out, config).path, tensorboard)


def resume(run: Annotated[Path, tyro.conf.Positional], tensorboard: bool = False) -> None:
    """Go on with a run from its last checkpoint, or from the beginning if it has none yet.

    Args:
        run: Folder of the run.
        tensorboard: Also write TensorBoard event files into the run's folder.
    """
    _one_thread()
    _know_studies()
    _train(run, tensorboard)


def evaluate(
    run: Annotated[Path, tyro.conf.Positional],
    episodes: int = 10,
    seed: int = 0,
    video: Path | None = None,
    task: str | None = None,
) -> None:
    """Play episodes with a run's policy and print their returns.

    Args:
        run: Folder of the run, or its policy file.
        episodes: How many episodes.
        seed: Seed of the episodes.
        video: Write the first episode to this file, an .mp4 or a .gif.
        task: The task to play, for a policy file that does not name its own.
    """
    _one_thread()
    _know_studies()
    from feasible.run.showing import show_evaluation

    show_evaluation(run, episodes, seed, video, task)


def export(run: Annotated[Path, tyro.conf.Positional], out: Path | None = None, task: str | None = None) -> None:
    """Write a run's policy, projection included, as one file that runs without this library.

    Args:
        run: Folder of the run, or its policy file.
        out: The file to write; policy.zip beside the policy if not given.
        task: The task whose constraint it has, for a policy file that does not name its own.
    """
    _one_thread()
    _know_studies()
    from feasible.run.export import export_run

    print(f"The policy as a program, with its description: {export_run(run, out, task)}")


def tasks() -> None:
    """What tasks there are, with their constraints and the paper's settings."""
    from feasible.cli.listing import print_tasks

    print_tasks()


def algos() -> None:
    """What algorithms there are."""
    from feasible.cli.listing import print_algos

    print_algos()


def demo(out: Path = Path("demo"), steps: int | None = None) -> None:
    """Train two methods on two tasks for a few minutes, compare them and draw the result.

    Args:
        out: Folder for the runs, the figures and the page.
        steps: Environment steps a run, instead of a budget for about five minutes in all.
    """
    _one_thread()
    from feasible.cli.demo import run_demo

    run_demo(out, steps)


COMMANDS = {
    "train": train,
    "evaluate": evaluate,
    "export": export,
    "resume": resume,
    "compare": compare,
    "report": report,
    "reproduce": reproduce,
    "tasks": tasks,
    "algos": algos,
    "demo": demo,
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command that the arguments (by default those of the process) name."""
    try:
        tyro.extras.subcommand_cli_from_dict(
            COMMANDS,
            prog="feasible",
            description="Reinforcement learning whose every action is feasible.",
            args=arguments,
        )
    except (ValueError, OSError, RuntimeError, FloatingPointError, MemoryError) as error:
        if os.environ.get("FEASIBLE_TRACEBACK"):
            raise
        print(f"feasible: {sentence(error)}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        print("feasible: interrupted.", file=sys.stderr)
        sys.exit(130)


def _train(run: Path, tensorboard: bool) -> None:
    from rich.console import Console

    from feasible.run.folder import RunFolder
    from feasible.run.progress import ProgressBar
    from feasible.run.train import train as train_run
    from feasible.run.watch import Watcher, Watchers

    console, folder = Console(), RunFolder(run)
    with ProgressBar(console) as bar:
        watchers: list[Watcher] = [bar]
        if tensorboard:
            from feasible.run.tensorboard import EventFiles

            watchers.append(EventFiles(run))
        outcome = train_run(folder, Watchers(watchers))
    if outcome.finished:
        news = "was finished before" if outcome.already else "finished"
        console.print(f"{run} {news}, at step {outcome.step}; its policy: {folder.policy}", markup=False)
        return
    console.print(f"Stopped at step {outcome.step} with a checkpoint. Go on with: feasible resume {run}", markup=False)
    sys.exit(130)


def _know_studies() -> None:
    """Runs may be of algorithms that only a study has."""
    for study in STUDIES:
        importlib.import_module(study)


def _one_thread() -> None:
    from feasible.run.sweep.processes import use_one_thread

    use_one_thread()
