"""Which loops a population compiles, and that it compiles them at the same time."""

import threading

import pytest

from feasible.algorithms.actor_rules import FrankWolfe
from feasible.algorithms.ddpg import DDPG
from feasible.run.drive.population_programs import Cycle, Loop, PopulationPrograms
from tests.run.toys import toy_plant

pytestmark = pytest.mark.xdist_group("population")


def test_loops_are_few_and_compiled_together_before_they_are_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """An actor that learns every 50 steps: 49 steps without it and one with it, again and again, and nothing else."""
    both = threading.Barrier(2)  # passed by two compilations that run at the same time

    def compiled(_: PopulationPrograms, cycle: Cycle, steps: int) -> Loop:
        both.wait(60)
        return lambda leaves: (leaves, cycle[0].report)  # pyright: ignore[reportReturnType] -- never called

    monkeypatch.setattr(PopulationPrograms, "_loop", compiled)
    algorithm = DDPG(rule=FrankWolfe(0.1), noise=0.1, hidden_layers=(4,), warmup=0, actor_interval=50)
    programs = PopulationPrograms([algorithm], toy_plant().spec)
    programs.prepare(0, [200])
    prepared = {cycle: list(loops) for cycle, loops in programs.loops.items()}
    assert [(len(cycle), loops) for cycle, loops in prepared.items()] == [(1, [49]), (1, [1])]
    lengths, step = [], 0
    while step < 200:
        length, _ = programs.stretch(step, 200)
        lengths.append(length)
        step += length
    assert lengths == [49, 1] * 4
    assert {cycle: list(loops) for cycle, loops in programs.loops.items()} == prepared
