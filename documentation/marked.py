"""Parts of a page that are made: what stands between `<!-- KIND: NAME -->` and `<!-- end -->`."""

import re
from collections.abc import Callable


def remade(page: str, kind: str, make: Callable[[str], str]) -> str:
    """The page with what `make` says of each block's name in its place."""
    block = re.compile(rf"(<!-- {kind}: ([^\n]+?) -->\n).*?(<!-- end -->)", re.DOTALL)
    return block.sub(lambda found: found[1] + make(found[2]) + found[3], page)
