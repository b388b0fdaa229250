"""Films and pictures that lie in a run's folder, for the page: small enough ones go into it, larger ones are named.

`feasible evaluate RUN --video RUN/film.gif` puts one there; any .gif, .png or .mp4 of your own will do.
"""

import base64
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

KINDS = {
    ".gif": ("image/gif", (b"GIF87a", b"GIF89a"), 0),
    ".png": ("image/png", (b"\x89PNG\r\n\x1a\n",), 0),
    ".mp4": ("video/mp4", (b"ftyp",), 4),
}
"""By the end of a name: what a browser calls it, and how and where such a file begins."""
LARGEST = 3_000_000  # bytes of one that goes into the page
ALL = 24_000_000  # bytes of all that do
MOST = 4  # of a run


@dataclass(frozen=True)
class Medium:
    """A film or a picture in a run's folder."""

    path: Path
    size: int

    @property
    def kind(self) -> str:
        return KINDS[self.path.suffix.lower()][0]


def media_of(folder: Path) -> tuple[Medium, ...]:
    """The first few that are what their names say, by name."""
    try:
        found = sorted(path for path in folder.iterdir() if path.suffix.lower() in KINDS and path.is_file())
        return tuple(Medium(path, path.stat().st_size) for path in found if _is_one(path))[:MOST]
    except OSError:
        return ()


def _is_one(path: Path) -> bool:
    _, beginnings, at = KINDS[path.suffix.lower()]
    with path.open("rb") as file:
        return file.read(at + 8)[at:].startswith(beginnings)


def inlined(media: Iterable[Medium]) -> dict[Medium, str]:
    """Those that fit into a page, each as an address that holds it."""
    addresses: dict[Medium, str] = {}
    total = 0
    for medium in media:
        if medium.size > LARGEST or total + medium.size > ALL:
            continue
        total += medium.size
        addresses[medium] = f"data:{medium.kind};base64,{base64.b64encode(medium.path.read_bytes()).decode()}"
    return addresses
