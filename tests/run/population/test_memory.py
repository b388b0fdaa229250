"""What a population takes of a device: the documented size of a replay, and a refusal that says how many would fit."""

import pytest

from feasible.catalogue import registry
from feasible.catalogue.registry import algorithm_of
from feasible.run.drive import memory
from feasible.run.drive.plant import VectorPlant
from feasible.run.drive.population_programs import PopulationPrograms


@pytest.fixture(scope="module")
def programs() -> PopulationPrograms:
    algorithm = algorithm_of(registry.find_task("halfcheetah"), "nfwpo", "fair", {"warmup": 0})
    return PopulationPrograms([algorithm] * 40, VectorPlant(registry.make_vec("halfcheetah", 1)).spec)


def test_an_agent_is_its_replay_and_some_megabytes(programs: PopulationPrograms) -> None:
    """A row of HalfCheetah's replay is 48 float32; networks, targets and moments are 8 times 0.13 million numbers."""
    sizes = memory.agent_bytes(programs)
    assert len(sizes) == 40
    assert sizes[0] == pytest.approx(1_000_000 * 48 * 4 + 8 * 130_000 * 4, rel=1e-3)


def test_what_does_not_fit_is_refused_with_the_number_that_would(
    programs: PopulationPrograms, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "free_bytes", lambda: int(10e9))
    one = memory.agent_bytes(programs)[0] * 1.1
    assert "40 agents need about 8.6" in memory.check_memory(programs)
    monkeypatch.setattr(memory, "free_bytes", lambda: int(17.5 * one))
    with pytest.raises(ValueError, match=r"40 agents need about 8\.6. GB .*: 17 of them would fit; train fewer seeds"):
        memory.check_memory(programs)
    monkeypatch.setattr(memory, "free_bytes", lambda: None)  # a CPU does not say
    assert "free" not in memory.check_memory(programs)
