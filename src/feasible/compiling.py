"""First calls compile, which may take many seconds: whoever waits is told what for.

The message goes to the logger `feasible`, which is silent unless the program that uses the library asks for it:
`logging.basicConfig(level=logging.INFO)`. A progress bar hears it and shows it by itself.
"""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

LOG = logging.getLogger("feasible")
PATIENCE = 1.0
"""Seconds after which a first call says what is compiled."""
_HEARERS: list[Callable[[str], None]] = []


@contextmanager
def heard_by(hearer: Callable[[str], None]) -> Iterator[None]:
    """Let a function hear, from another thread, what is being compiled for long."""
    _HEARERS.append(hearer)
    try:
        yield
    finally:
        _HEARERS.remove(hearer)


@contextmanager
def said_if_long(what: str) -> Iterator[None]:
    """Say that `what` is being compiled, if the block takes long; while it does, not afterwards."""
    if not (_HEARERS or LOG.isEnabledFor(logging.INFO)):
        yield
        return
    timer = threading.Timer(PATIENCE, _say, (what,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _say(what: str) -> None:
    LOG.info("Compiling %s; only the first call of its kind takes that long.", what)
    for hearer in _HEARERS:
        hearer(what)


class ToldOnce:
    """A compiled function whose first call says what is compiled, if it takes long; all others cost nothing more.

    >>> step = ToldOnce("the update", jax.jit(update))
    >>> step.call(state)
    """

    def __init__(self, what: str, function: Callable[..., Any]):
        self.call: Callable[..., Any] = self._first
        self._what, self._function = what, function

    def _first(self, *given: Any) -> Any:
        with said_if_long(self._what):
            result = self._function(*given)
        self.call = self._function
        return result
