"""Runs in tests are as a user's, and share compiled programs: most of them train the same small agents."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from feasible.algorithms.base import Algorithm, Spec
from feasible.run.evaluate import compiled_policy
from feasible.run.population.programs import PopulationPrograms
from feasible.run.programs import Programs
from tests.run.runs import as_a_user


@pytest.fixture(scope="package", autouse=True)
def _as_a_user(cache: Path) -> Iterator[None]:
    with as_a_user(cache):
        yield


@pytest.fixture(scope="module")
def shared_programs() -> Iterator[None]:
    """Runs of a module with equal algorithms and the same constraint share their programs, traced once."""

    def share(make: Callable[..., object]) -> Callable[..., object]:
        made: dict[tuple[str, int], object] = {}

        def shared(algorithm: Algorithm | Sequence[Algorithm], spec: Spec) -> object:
            key = repr(algorithm), id(spec.constraint)
            made[key] = made.get(key) or make(algorithm, spec)
            return made[key]

        return shared

    with pytest.MonkeyPatch.context() as patch:
        shared_by_drivers = share(Programs)
        patch.setattr("feasible.run.driver.Programs", shared_by_drivers)
        patch.setattr("feasible.run.batch_driver.Programs", shared_by_drivers)
        patch.setattr("feasible.run.training.compiled_policy", share(compiled_policy))
        patch.setattr("feasible.run.population.driver.PopulationPrograms", share(PopulationPrograms))
        yield
