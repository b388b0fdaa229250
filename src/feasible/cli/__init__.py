"""The command line: one file per command, whose parameters are the options and whose docstring is the help.

Commands import what they need when they run, so help appears at once.
"""

import functools
import inspect
import io
import itertools
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stderr

import tyro

from feasible.cli import compare, demo, evaluate, export, listing, report, reproduce, resume, train
from feasible.cli.examples import examples_of
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
        if given in ([], ["-h"], ["--help"]):
            print(overview(COMMANDS))
            sys.exit(0 if given else 2)
        call(COMMANDS, given)
    except (ValueError, OSError, RuntimeError, FloatingPointError, MemoryError) as error:
        if os.environ.get("FEASIBLE_TRACEBACK"):
            raise
        print(f"feasible: {sentence(error)}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        print("feasible: interrupted.", file=sys.stderr)
        sys.exit(130)


def overview(commands: Mapping[str, Callable[..., None]]) -> str:
    """The help of the program: each command in one line, which is the first of its docstring."""
    lines = [
        f"  {name:<11}{(inspect.getdoc(command) or '').partition(chr(10))[0]}" for name, command in commands.items()
    ]
    return "\n".join(
        [
            "usage: feasible COMMAND [OPTIONS]",
            "",
            "Reinforcement learning whose every executed action is feasible.",
            "",
            "commands:",
            *lines,
            "",
            "Options and examples of a command: feasible COMMAND --help",
            "The version: feasible --version",
        ]
    )


def call(commands: Mapping[str, Callable[..., None]], arguments: Sequence[str]) -> None:
    """Call the command that the arguments name with what they say."""
    parsed(commands, arguments)()


def parsed(commands: Mapping[str, Callable[..., None]], arguments: Sequence[str]) -> Callable[[], None]:
    """The call that the arguments stand for; they are refused, or answered with help, by leaving the program."""
    said = io.StringIO()
    try:
        with redirect_stderr(said):
            return tyro.extras.subcommand_cli_from_dict(
                {name: _chosen(command) for name, command in commands.items()},
                prog="feasible",
                description="Reinforcement learning whose every executed action is feasible.",
                args=arguments,
                config=(tyro.conf.OmitArgPrefixes, tyro.conf.DisallowNone),
            )
    except SystemExit as end:
        wrong = _wrong_value(said.getvalue(), arguments)
        if wrong is not None:
            raise ValueError(wrong) from None
        print(said.getvalue(), end="", file=sys.stderr)
        if end.code == 0 and arguments[0] in commands:
            print(examples_of(arguments[0]))
        raise


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
