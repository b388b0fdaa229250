"""Names of files from names of things, which may be any text: letters, digits and `._+=-` stay, all else is a dash."""

import re
from collections.abc import Sequence

LONGEST = 100


def slug(name: str) -> str:
    """A name as a file can have it in any folder; names made of such letters are their own."""
    return re.sub(r"[^A-Za-z0-9._+=-]+", "-", name).lstrip("-.")[:LONGEST] or "unnamed"


def unique_slugs(names: Sequence[str]) -> list[str]:
    """The slug of each; of those that are alike, where capitals do not count, all but the first have a number."""
    found: list[str] = []
    taken: set[str] = set()
    for name in names:
        base = chosen = slug(name)
        number = 1
        while chosen.lower() in taken:
            number += 1
            chosen = f"{base}-{number}"
        taken.add(chosen.lower())
        found.append(chosen)
    return found
