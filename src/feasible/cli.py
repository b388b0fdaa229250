"""The command line: one function a command, its parameters are the options, its docstring the help.

Commands import what they need when they run, so that help is there at once.
"""

from collections.abc import Sequence

import tyro


def tasks() -> None:
    """What tasks there are, with their constraints and the paper's settings."""
    from feasible.listing import print_tasks

    print_tasks()


COMMANDS = {"tasks": tasks}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command that the arguments (by default those of the process) name."""
    tyro.extras.subcommand_cli_from_dict(
        COMMANDS,
        prog="feasible",
        description="Reinforcement learning whose every action is feasible.",
        args=arguments,
    )


if __name__ == "__main__":
    main()
