"""The code blocks of the pages: found, and run as they are written or in the short form that they state.

A fenced block of `python`, `bash` or `console` is a promise that it works. The line before its fence may say more:

    <!-- short: 100_000 -> 60; (400, 300) -> (8, 8) -->   the tests replace these texts, the long form is run by hand
    <!-- long -->                                         commands that the tests check without running them
    <!-- raises -->                                       the block ends with the error that the next `text` block shows
    <!-- module: mine -->                                 what the page has defined is the module `mine` for commands
    <!-- needs: torch -->                                 run where the package is found, else only compiled; a short
                                                          form may follow: <!-- needs: torch; short: 9_000 -> 60 -->

The python blocks of a page are one program. A `console` block shows commands after `$ ` and what they print.
"""

import functools
import importlib.util
import io
import re
import shlex
import tomllib
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from documentation.marked import ROOT
from feasible.cli import COMMANDS, call, main
from feasible.paper.items import find_item
from feasible.run.launch import changes_of, grid

RUN = ("python", "bash", "console")
_FENCE = re.compile(
    r"(?:^<!-- (?P<mark>[^\n]*?) -->\n+)?^```(?P<language>\w+)[^\n]*\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL
)


@dataclass(frozen=True)
class Block:
    """A code block, and what its page says of it."""

    page: Path
    line: int
    language: str
    code: str
    mark: str
    following: str
    """The `text` block after it, if there is one."""

    @property
    def needs(self) -> str:
        """The package without which the block is only compiled; an empty name for none."""
        return self.mark.partition("; ")[0].removeprefix("needs: ") if self.mark.startswith("needs: ") else ""

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def module(self) -> str:
        """The module that the page's program is for its commands; an empty name if it is none."""
        return self.mark.removeprefix("module: ") if self.mark.startswith("module: ") else ""

    @property
    def long(self) -> bool:
        return self.mark == "long"

    @property
    def raises(self) -> bool:
        return self.mark == "raises"

    @property
    def short(self) -> str:
        """The code with the replacements of the short form."""
        code, mark = self.code, self.mark.partition("; ")[2] if self.needs else self.mark
        for pair in mark.removeprefix("short: ").split("; ") if mark.startswith("short: ") else ():
            old, new = pair.split(" -> ")
            if old not in code:
                raise ValueError(f"{self.place}: there is no {old!r} to shorten.")
            code = code.replace(old, new)
        return code


def blocks_of(page: Path) -> list[Block]:
    """The blocks of a page that can be run, in order."""
    text = page.read_text()
    found = list(_FENCE.finditer(text))
    return [
        Block(
            page,
            text.count("\n", 0, match.start("code")),
            match["language"],
            match["code"],
            match["mark"] or "",
            after["code"] if after is not None and after["language"] == "text" else "",
        )
        for match, after in zip_longest(found, found[1:])
        if match["language"] in RUN
    ]


def run_python(block: Block, code: str, namespace: dict[str, object]) -> None:
    """Run a block in the namespace of its page; one that raises must say what the page shows."""
    program = compile(code, block.place, "exec")
    if block.needs and importlib.util.find_spec(block.needs) is None:
        return
    if not block.raises:
        exec(program, namespace)
        return
    try:
        exec(program, namespace)
    except Exception as error:
        said = f"{type(error).__name__}: {error}\n"
        if said != block.following:
            raise AssertionError(f"{block.place} shows\n{block.following}but it says\n{said}") from error
    else:
        raise AssertionError(f"{block.place} raises nothing.")


def commands(code: str) -> Iterator[list[str]]:
    """The commands of a block of `bash`, as words."""
    for line in code.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words:
            yield words


def exchanges(code: str) -> Iterator[tuple[list[str], str]]:
    """The commands of a block of `console`, each with what it prints."""
    for part in re.split(r"^\$ ", code, flags=re.MULTILINE)[1:]:
        command, _, printed = part.partition("\n")
        yield shlex.split(command), printed


def run_command(words: list[str]) -> str:
    """What a `feasible` command prints, run in this process."""
    if words[0] != "feasible":
        raise ValueError(f"{shlex.join(words)}: only `feasible` is run in this process; mark the block as long.")
    printed = io.StringIO()
    with redirect_stdout(printed), redirect_stderr(printed):
        try:
            main(words[1:])
        except SystemExit as end:
            if end.code not in (0, 1, None):
                raise AssertionError(f"{shlex.join(words)} ends with {end.code}: {printed.getvalue()}") from end
    return printed.getvalue()


def check_command(words: list[str]) -> None:
    """That a command is one: its program, its options, and the names that it is given exist."""
    program, *rest = words
    if program == "feasible":
        _check_feasible(rest)
    elif words[:2] == ["python", "-m"]:
        _check_module(words[2], words[3:])
    elif program == "make":
        targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        _require(set(rest) <= set(targets), words)
    elif words[:2] == ["pip", "install"]:
        extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
        named = re.search(r"\[(\w+)\]", words[-1])
        _require(named is None or named[1] in extras, words)
    else:
        raise AssertionError(f"{shlex.join(words)}: nothing is known of {program!r}.")


def _check_feasible(arguments: list[str]) -> None:
    """Parse the arguments as the command line does, and look the names up."""
    asked: dict[str, object] = {}

    def noted(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def note(**given: object) -> None:
            asked.update(given)

        return note

    call({name: noted(command) for name, command in COMMANDS.items()}, arguments)
    if "item" in asked:
        find_item(str(asked["item"]))
    tasks = asked.get("tasks") or [asked["task"]] if {"task", "tasks"} & set(asked) else []
    algos = asked.get("algos") or [asked.get("algo")]
    if tasks and "set" in asked:
        changes = changes_of(asked["set"])  # pyright: ignore[reportArgumentType]
        grid(tasks, algos, [0], preset=asked.get("preset"), changes=changes)  # pyright: ignore[reportArgumentType]


def _check_module(name: str, arguments: list[str]) -> None:
    found = importlib.util.find_spec(name)
    _require(found is not None and found.origin is not None, [name])
    main_file = Path(found.origin)  # pyright: ignore[reportOptionalMemberAccess, reportArgumentType]
    source = (main_file.with_name("__main__.py") if main_file.name == "__init__.py" else main_file).read_text()
    options = [word for word in arguments if word.startswith("-")]
    _require(all(f'"{option}"' in source for option in options), [name, *options])


def _require(condition: bool, words: list[str]) -> None:
    if not condition:
        raise AssertionError(f"{shlex.join(words)}: there is no such thing.")
