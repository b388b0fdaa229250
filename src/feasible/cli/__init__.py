"""The command line: one file a command, whose parameters are the options and whose docstring is the help.

Commands import what they need when they run, so that help is there at once.
"""

import functools
import io
import itertools
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stderr

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
    given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        if given == ["--version"]:
            import feasible

            print(f"feasible {feasible.__version__}")
            return
        call(COMMANDS, given)
    except (ValueError, OSError, RuntimeError, FloatingPointError, MemoryError) as error:
        if os.environ.get("FEASIBLE_TRACEBACK"):
            raise
        print(f"feasible: {sentence(error)}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        print("feasible: interrupted.", file=sys.stderr)
        sys.exit(130)


def call(commands: Mapping[str, Callable[..., None]], arguments: Sequence[str]) -> None:
    """Call the command that the arguments name with what they say."""
    said = io.StringIO()
    try:
        with redirect_stderr(said):
            command = tyro.extras.subcommand_cli_from_dict(
                {name: _chosen(command) for name, command in commands.items()},
                prog="feasible",
                description="Reinforcement learning whose every action is feasible. --version tells which this is.",
                args=arguments,
                config=(tyro.conf.OmitArgPrefixes, tyro.conf.DisallowNone),
            )
    except SystemExit:
        wrong = _wrong_value(said.getvalue(), arguments)
        if wrong is not None:
            raise ValueError(wrong) from None
        print(said.getvalue(), end="", file=sys.stderr)
        raise
    command()


def _chosen(command: Callable[..., None]) -> Callable[..., Callable[[], None]]:
    """The command as one that is parsed only: it returns what is to be called."""

    @functools.wraps(command)
    def chosen(*values: object, **options: object) -> Callable[[], None]:
        return functools.partial(command, *values, **options)

    return chosen


def _wrong_value(said: str, arguments: Sequence[str]) -> str | None:
    """What is wrong with the number that an option was given, if the parser's message, drawn as a box, says so."""
    text = " ".join(re.sub("[│╭╮╰╯─]", " ", said).split())
    found = re.search(r"Error parsing (--[\w-]+): .* Argument helptext: --[\w-]+ (\[?(?:INT|FLOAT))", text)
    if found is None:
        return None
    words = [word for argument in arguments for word in argument.split("=", 1)]
    at = [place for place, word in enumerate(words) if word.replace("_", "-") == found[1]][-1]
    values = itertools.takewhile(lambda word: not word.startswith("--"), words[at + 1 :])
    return f"{found[1]} must be {NUMBERS[found[2]]}, not {' '.join(values)[:80]!r}."


NUMBERS = {"INT": "a whole number", "[INT": "whole numbers", "FLOAT": "a number", "[FLOAT": "numbers"}
"""What the parser's words for values mean."""
