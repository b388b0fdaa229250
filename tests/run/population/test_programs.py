"""Which loops a population compiles, that it compiles them at the same time, and which parts it has."""

import threading
from itertools import pairwise
from pathlib import Path

import pytest

from feasible.algorithms.actor_rules import FrankWolfe
from feasible.algorithms.ddpg import DDPG
from feasible.run.drive import groups
from feasible.run.drive.groups import parts_of
from feasible.run.drive.population_programs import Cycle, Loop, PopulationPrograms
from feasible.run.sweep.accelerator import train_together
from tests.run.population.test_training import assert_as_alone
from tests.run.population.toy_runs import toy_runs
from tests.run.toys import toy_plant

pytestmark = pytest.mark.xdist_group("population")


def test_loops_are_few_and_compiled_together_before_they_are_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """An actor that learns every 50 steps: 49 steps without it and one with it, again and again, and nothing else."""
    both = threading.Barrier(2)  # passed by two compilations that run at the same time

    def compiled(_: PopulationPrograms, cycle: Cycle, steps: int) -> Loop:
        both.wait(60)
        return lambda leaves: (leaves, cycle[0].parts[0].report)  # pyright: ignore[reportReturnType] -- never called

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


@pytest.mark.parametrize(
    ("batches", "cuts"),
    [
        ([8] * 79, []),  # too few for two programs
        ([8] * 81, [40]),
        ([8] * 5 + [16] * 15, [5]),
        ([8] * 4 + [16] * 15, []),  # the first group would be a small part
        ([8] * 4 + [16] * 80, [42]),
        ([8, 8, 16, 32], [2]),
    ],
)
def test_parts_are_cut_between_groups_or_through_a_large_one(batches: list[int], cuts: list[int]) -> None:
    agents = [DDPG(rule=FrankWolfe(0.1), noise=0.1, batch_size=size) for size in batches]
    ends = [0, *cuts, len(batches)]
    assert parts_of(agents) == [slice(first, last) for first, last in pairwise(ends)]


@pytest.mark.slow  # the toys of the default tests are two parts already, cut between their groups
def test_agents_of_a_group_that_is_cut_learn_what_they_learn_together(tmp_path: Path) -> None:
    runs = [("nfwpo", seed, {}) for seed in range(3)]
    whole, cut = (toy_runs(tmp_path / name, runs) for name in ("whole", "cut"))
    assert train_together(whole) == []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(groups, "ENOUGH", 2)
        assert train_together(cut) == []
    for one, other in zip(whole, cut, strict=True):
        assert_as_alone(one, other)
