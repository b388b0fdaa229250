"""JSON from files that somebody else may have written: objects of bounded size and depth, or a sentence why not."""

import json
import reprlib
from pathlib import Path

LARGEST = 2**20  # bytes of a config.json: a real one has about two thousand
DEEPEST = 20  # objects and lists inside each other: a real one has four


def parse_object(contents: bytes, name: str) -> dict[str, object]:
    """The object that JSON text holds; anything else is a `ValueError` that begins with `name`."""
    try:
        found = json.loads(contents)
    except RecursionError as cause:
        raise ValueError(f"{name} is nested too deeply") from cause
    except ValueError as cause:  # also bytes that are no UTF-8
        raise ValueError(f"{name} is no JSON: {cause}") from cause
    if not isinstance(found, dict):
        raise ValueError(f"{name} is no JSON object")
    if _deeper(found, DEEPEST):
        raise ValueError(f"{name} is nested too deeply")
    return found


def read_object(path: Path) -> dict[str, object]:
    """The same of a file, which is not read if it is no ordinary one or too large."""
    if path.exists() and not path.is_file():
        raise ValueError(f"{path.name} is no file")
    if path.stat().st_size > LARGEST:
        raise ValueError(f"{path.name} has more than {LARGEST:,} bytes")
    return parse_object(path.read_bytes(), path.name)


def brief(value: object) -> str:
    """A value for a message: on one line, and not longer than a line."""
    return reprlib.repr(value)


def printable(text: str, most: int = 200) -> str:
    """Text from elsewhere on one line, without what a terminal or a file could take for more than text."""
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in text[:most])


def _deeper(value: object, most: int) -> bool:
    """Whether containers lie deeper than so many in each other; level by level, so that depth costs no stack."""
    level: list[object] = [value]
    for _ in range(most):
        inner = [item for node in level for item in (node.values() if isinstance(node, dict) else node)]  # pyright: ignore
        level = [item for item in inner if isinstance(item, dict | list)]
        if not level:
            return False
    return True
