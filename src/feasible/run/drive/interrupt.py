"""Interrupts that wait for the running step, so that a run ends between two steps, with its state whole."""

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Protocol


class Halting(Protocol):
    """A driver that looks after every step whether it is to end."""

    halted: bool


@contextmanager
def halted_by(driver: Halting, signals: Sequence[signal.Signals]) -> Iterator[None]:
    """Let the signals end `driver.advance` after the running step; a second Ctrl-C ends the program at once.

    Python lets only the main thread handle signals: elsewhere they do what they did before.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def halt(number: int, frame: FrameType | None) -> None:
        del number, frame
        driver.halted = True
        signal.signal(signal.SIGINT, signal.default_int_handler)

    before: dict[signal.Signals, Callable | int | None] = {number: signal.signal(number, halt) for number in signals}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def terminated_by_interrupt() -> Iterator[None]:
    """Let a polite end (SIGTERM) do what Ctrl-C does, in the main thread; elsewhere it does what it did before."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
