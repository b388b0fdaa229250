"""Nothing is traced or compiled again during a run: one program for each kind of step, and no other."""

from dataclasses import replace
from pathlib import Path

import jax
import pytest

from feasible.catalogue.registry import TASKS, make_vec
from feasible.run.disk import checkpoint
from feasible.run.drive.lone import Lone
from feasible.run.drive.programs import compiled_policy
from feasible.run.evaluate import evaluate, evaluation_seeds
from feasible.run.folder import RunFolder
from tests.run.toys import TOY, toy_plant, toy_task

COMPILING = "/jax/core/compile/"  # tracing, lowering and compiling: a program from a cache of programs is none less


@pytest.fixture(scope="module")
def compilations() -> list[str]:
    seen: list[str] = []

    def listen(event: str, duration_secs: float, **kwargs: str | int) -> None:
        del duration_secs, kwargs
        if event.startswith(COMPILING):
            seen.append(event)

    jax.monitoring.register_event_duration_secs_listener(listen)
    return seen


def test_thousands_of_steps_of_every_kind_compile_nothing_more(
    compilations: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(TASKS, "toy", toy_task())  # pyright: ignore[reportArgumentType]
    algorithm = replace(TOY, actor_interval=3, critic_interval=2)
    driver = Lone(algorithm, toy_plant(), seed=0)
    env, folder = make_vec("toy", 2), RunFolder(tmp_path)
    act = compiled_policy(algorithm, driver.plant.spec)

    def look(steps: int) -> None:
        driver.advance(steps)
        policy = algorithm.policy(driver.carry.algorithm)
        evaluate(act, policy, env, evaluation_seeds(0, steps, 2))
        checkpoint.save(tmp_path, [folder], driver)

    driver.start()
    for steps in (10, 20, 40, 80):  # warm-up, its last step, each set of due updates, a ring that is full
        look(steps)
    # Nothing, with a warm action after it and with one of the policy; actor, critic, both.
    assert driver.programs.traces == len(driver.programs.made) == 5
    before = len(compilations)
    assert before > 0
    for steps in range(180, 3100, 100):
        look(steps)
    assert driver.programs.traces == 5
    assert len(compilations) == before


def test_a_resumed_driver_traces_each_program_once(compilations: list[str], tmp_path: Path) -> None:
    algorithm, folder = replace(TOY, warmup=0), RunFolder(tmp_path)
    driver, resumed = (Lone(algorithm, toy_plant(), seed=0) for _ in range(2))
    driver.start()
    driver.advance(60)
    checkpoint.save(tmp_path, [folder], driver)
    checkpoint.restore(tmp_path, [folder], resumed)
    resumed.advance(70)
    before = len(compilations)
    resumed.advance(1500)
    assert resumed.programs.traces == len(resumed.programs.made) == 1
    assert len(compilations) == before
