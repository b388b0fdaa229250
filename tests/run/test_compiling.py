"""A call that takes long says what it does, while it does it; one that does not says nothing."""

import logging
import threading
from collections.abc import Iterator

import pytest

from feasible.run.compiling import LOG, Compiling, said_if_long


class Heard(logging.Handler):
    """Lets a test wait for a message instead of a time."""

    def __init__(self) -> None:
        super().__init__()
        self.said, self.messages = threading.Event(), []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())
        self.said.set()


@pytest.fixture
def heard() -> Iterator[Heard]:
    handler, level = Heard(), LOG.level
    LOG.addHandler(handler)
    LOG.setLevel(logging.INFO)
    yield handler
    LOG.removeHandler(handler)
    LOG.setLevel(level)


def waiting() -> list[threading.Thread]:
    """Timers that have not been cancelled and have not spoken."""
    timers = [thread for thread in threading.enumerate() if isinstance(thread, threading.Timer)]
    return [timer for timer in timers if not timer.finished.is_set()]


def test_a_long_call_says_so_while_it_runs(heard: Heard) -> None:
    with said_if_long("predict", patience=0.0):
        assert heard.said.wait(60)
    assert heard.messages == ["predict: compiling its program; only the first call of a kind takes that long."]


def test_a_short_call_says_nothing(heard: Heard) -> None:
    with said_if_long("predict", patience=1e6):
        pass
    assert not waiting()
    assert heard.messages == []


def test_a_call_that_fails_says_nothing_later(heard: Heard) -> None:
    with pytest.raises(ValueError, match="no"), said_if_long("predict", patience=1e6):
        raise ValueError("no")
    assert heard.messages == []


def test_nobody_who_did_not_ask_is_told_and_nothing_is_started() -> None:
    assert not LOG.isEnabledFor(logging.INFO)
    before = threading.active_count()
    with said_if_long("predict", patience=0.0):
        assert threading.active_count() == before


def test_training_says_so_until_its_first_step(heard: Heard) -> None:
    with Compiling("learn", patience=0.0) as watcher:
        watcher.begin([], 0, "")
        assert heard.said.wait(60)
        watcher.advanced(1)
        watcher.advanced(2)
    with Compiling("learn", patience=1e6) as watcher:
        watcher.begin([], 0, "")
        watcher.advanced(1)
        assert not waiting()
    with Compiling("learn", patience=1e6) as watcher:
        watcher.begin([], 0, "")
    assert heard.messages == ["learn: compiling its program; only the first call of a kind takes that long."]
