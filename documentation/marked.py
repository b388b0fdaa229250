"""The pages and their generated parts: what stands between `<!-- generated: KIND SUBJECT -->` and `<!-- end -->`."""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
_PART = re.compile(r"(<!-- generated: (\S+)(?: ([^\n]+?))? -->\n).*?(<!-- end -->)", re.DOTALL)


def pages() -> Iterator[Path]:
    """Every page of the documentation, the front page included."""
    yield ROOT / "README.md"
    yield from sorted((ROOT / "docs").rglob("*.md"))


def remade(page: str, makers: Mapping[str, Callable[[str], str]]) -> str:
    """The page with each generated part as the maker of its kind makes it of its subject, which may be empty."""
    return _PART.sub(lambda found: f"{found[1]}\n{makers[found[2]](found[3] or '')}\n\n{found[4]}", page)
