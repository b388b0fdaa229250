"""First calls compile, which may take many seconds: whoever waits is told why.

The message goes to the logger `feasible`, which is silent unless the program that uses the library asks for it:
`logging.basicConfig(level=logging.INFO)`. The command line's progress bar says so by itself.
"""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

LOG = logging.getLogger("feasible")
PATIENCE = 1.0
"""Seconds after which a first call says what it does."""


@contextmanager
def said_if_long(what: str, patience: float = PATIENCE) -> Iterator[None]:
    """Say that `what` is being compiled, if the block takes longer than that; while it does, not afterwards."""
    if not LOG.isEnabledFor(logging.INFO):
        yield
        return
    message = "%s: compiling its program; only the first call of a kind takes that long."
    timer = threading.Timer(patience, LOG.info, (message, what))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
