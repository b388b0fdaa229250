"""The command line: one file a command, whose parameters are the options and whose docstring is the help.

Commands import what they need when they run, so that help is there at once.
"""

import os
import sys
from collections.abc import Callable, Mapping, Sequence

import tyro

from feasible.cli import compare, demo, evaluate, export, listing, report, reproduce, resume, train
from feasible.errors import sentence

COMMANDS: dict[str, Callable[..., None]] = {
    "train": train.train,
    "evaluate": evaluate.evaluate,
    "export": export.export,
    "resume": resume.resume,
    "compare": compare.compare,
    "report": report.report,
    "reproduce": reproduce.reproduce,
    "tasks": listing.tasks,
    "algos": listing.algos,
    "demo": demo.demo,
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command that the arguments (by default those of the process) name."""
    try:
        call(COMMANDS, arguments)
    except (ValueError, OSError, RuntimeError, FloatingPointError, MemoryError) as error:
        if os.environ.get("FEASIBLE_TRACEBACK"):
            raise
        print(f"feasible: {sentence(error)}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        print("feasible: interrupted.", file=sys.stderr)
        sys.exit(130)


def call(commands: Mapping[str, Callable[..., None]], arguments: Sequence[str] | None) -> None:
    """Call the command that the arguments name with what they say."""
    tyro.extras.subcommand_cli_from_dict(
        dict(commands),
        prog="feasible",
        description="Reinforcement learning whose every action is feasible.",
        args=arguments,
        config=(tyro.conf.OmitArgPrefixes, tyro.conf.DisallowNone),
    )
