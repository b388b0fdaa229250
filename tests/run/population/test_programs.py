"""Which loops a population compiles, that it compiles them at the same time, and which parts it has."""

import threading
from itertools import pairwise
from pathlib import Path

import pytest

from feasible.algorithms.actor_rules import FrankWolfe
from feasible.algorithms.ddpg import DDPG
from feasible.run.disk import checkpoint
from feasible.run.disk.archive import ArchiveError
from feasible.run.drive import groups
from feasible.run.drive.groups import parts_of
from feasible.run.drive.population_programs import Cycle, Loop, PopulationPrograms
from feasible.run.sweep.accelerator import train_together
from tests.run.population.test_training import assert_as_alone
from tests.run.population.toy_runs import toy_runs
from tests.run.toys import toy_plant

pytestmark = pytest.mark.xdist_group("population")


@pytest.mark.parametrize("begun", [0, 10_000], ids=["new", "resumed"])
def test_loops_are_few_and_compiled_together_before_they_are_needed(
    begun: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An actor that learns every 50 steps: 49 steps without it and one with it, again and again, and nothing else."""
    both = threading.Barrier(2)  # passed by two compilations that run at the same time

    def compiled(_: PopulationPrograms, cycle: Cycle, steps: int) -> Loop:
        both.wait(60)
        return lambda leaves: (leaves, cycle[0].parts[0].report)  # pyright: ignore[reportReturnType] -- never called

    monkeypatch.setattr(PopulationPrograms, "_loop", compiled)
    algorithm = DDPG(rule=FrankWolfe(0.1), noise=0.1, hidden_layers=(4,), warmup=0, actor_interval=50)
    programs = PopulationPrograms([algorithm], toy_plant().spec)
    programs.prepare(begun, range(begun + 200, begun + 2_000, 200))
    prepared = {cycle: list(loops) for cycle, loops in programs.loops.items()}
    assert [(len(cycle), loops) for cycle, loops in prepared.items()] == [(1, [49]), (1, [1])]
    lengths, step = [], begun
    while step < begun + 200:
        length, _ = programs.stretch(step, begun + 200)
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
    assert parts_of(agents, toy_plant().spec) == [slice(first, last) for first, last in pairwise(ends)]


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


def test_a_checkpoint_s_parts_are_gone_on_with() -> None:
    path = Path("state.feasible")
    assert checkpoint._parts(path, None, 3) == ()  # from before there were parts
    assert checkpoint._parts(path, [2, 3], 3) == (slice(0, 2), slice(2, 3))
    for wrong in ([2], [3, 2], [0, 3], [], "2", [-1, 3], [1.5, 3]):
        with pytest.raises(ArchiveError, match=r"state\.feasible: parts must be"):
            checkpoint._parts(path, wrong, 3)
