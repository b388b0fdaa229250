"""A first call that takes long says what it compiles, while it does, and once; one that does not says nothing."""

import io
import logging
import threading
from collections.abc import Iterator

import jax
import numpy as np
import pytest
from rich.console import Console

import feasible as fs
from feasible import compiling
from feasible.compiling import LOG, ToldOnce, heard_by, said_if_long
from feasible.run.config import RunConfig
from feasible.run.progress import ProgressBar
from tests.run.toys import SavedDrift, force


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


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every first call is a long one."""

    class AtOnce(threading.Timer):
        def start(self) -> None:
            self.function(*self.args)

    monkeypatch.setattr(compiling.threading, "Timer", AtOnce)


SAID = "Compiling {}; only the first call of its kind takes that long."


def test_a_long_call_says_so_while_it_runs(heard: Heard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "PATIENCE", 0.0)
    with said_if_long("the policy"):
        assert heard.said.wait(60)
    assert heard.messages == [SAID.format("the policy")]


def test_a_short_call_says_nothing(heard: Heard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "PATIENCE", 1e6)
    with said_if_long("the policy"):
        pass
    with pytest.raises(ValueError, match="no"), said_if_long("the policy"):
        raise ValueError("no")
    assert not waiting()
    assert heard.messages == []


def test_nobody_who_did_not_ask_is_told_and_nothing_is_started(impatient: None) -> None:
    assert not LOG.isEnabledFor(logging.INFO)
    heard: list[str] = []
    with said_if_long("the policy"), heard_by(heard.append), said_if_long("the update"):
        pass
    assert heard == ["the update"]


@pytest.mark.usefixtures("impatient")
def test_a_function_says_so_with_its_first_call_only(heard: Heard) -> None:
    doubled = ToldOnce("twice", jax.jit(lambda x: 2 * x))
    assert [int(doubled.call(x)) for x in (1, 2, 3)] == [2, 4, 6]
    assert heard.messages == [SAID.format("twice")]


@pytest.mark.usefixtures("impatient")
def test_learning_tells_of_each_of_its_programs_once(heard: Heard) -> None:
    """Also of those that are first needed in the midst of it."""
    task = fs.Task("drift", SavedDrift, force)
    agent = fs.NFWPO(task.env(), warmup=4, batch_size=4, replay_size=30, hidden_layers=(4,), actor_interval=2)
    agent.learn(8, eval_every=4, episodes=2)
    agent.learn(8)
    for _ in range(2):
        agent.predict(np.zeros(3, np.float32))
    assert heard.messages == [
        SAID.format(what)
        for what in (
            "the beginning of training",
            "the steps before learning",
            "the steps without an update",
            "the policy for 2 observations at once",
            "the update (critic)",
            "the update (actor, critic)",
            "the policy",
        )
    ]


@pytest.mark.usefixtures("impatient")
def test_a_progress_bar_shows_what_is_compiled_until_there_is_news() -> None:
    out = io.StringIO()
    with ProgressBar(Console(file=out, force_terminal=True, width=100)) as bar:
        with said_if_long("nothing of a run"):
            pass
        bar.begin([CONFIG], 0, "")
        with said_if_long("the update (critic)"):
            bar._progress.refresh()
        bar.advanced(64)
        bar._progress.refresh()
    shown = out.getvalue()
    assert "compiling the update (critic)" in shown
    assert "nothing of a run" not in shown
    assert "compiling" not in shown[shown.rindex("64/") :]


CONFIG = RunConfig("drift", "nfwpo", 0, 640, "default", {}, 100, 1, 100, 100)


def test_options_that_xla_does_not_have_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    there = compiling.soon()
    monkeypatch.setattr(compiling, "SOON", {**compiling.SOON, "xla_cpu_of_another_version": True})
    assert compiling.soon() == there


def test_a_program_compiled_soon_is_inlined_in_others() -> None:
    """Whoever asks first: a program that calls it, or someone at a prompt."""
    compiling._untraced.cache_clear()
    double = compiling.inlined_or_soon(lambda x: 2.0 * x)
    constant = np.arange(3.0)
    assert jax.jit(lambda: double(constant))().tolist() == [0.0, 2.0, 4.0]  # no argument is traced
    assert double(constant).tolist() == [0.0, 2.0, 4.0]
    assert jax.vmap(double)(constant).tolist() == [0.0, 2.0, 4.0]
    assert jax.grad(lambda x: double(x) ** 2)(3.0) == 24.0
