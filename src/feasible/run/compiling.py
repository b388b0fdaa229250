"""First calls compile, which may take many seconds: whoever waits is told why.

The message goes to the logger `feasible`, which is silent unless the program that uses the library asks for it:
`logging.basicConfig(level=logging.INFO)`. The command line's progress bar says so by itself.
"""

import logging
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from feasible.run.config import RunConfig
from feasible.run.watch import Watcher

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


class Compiling(Watcher):
    """Says so of training whose first step takes long."""

    def __init__(self, what: str, patience: float = PATIENCE):
        self._what, self._patience, self._waiting = what, patience, ExitStack()

    def begin(self, configs: Sequence[RunConfig], step: int, memory: str) -> None:
        self._waiting.enter_context(said_if_long(self._what, self._patience))

    def advanced(self, step: int) -> None:
        self._waiting.close()

    def __exit__(self, *error: object) -> None:
        self._waiting.close()
