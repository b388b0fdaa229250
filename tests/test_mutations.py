"""The table of mutations belongs to the code as it is: tried in full it takes minutes, so it is read here only."""

from pathlib import Path

import feasible
from tests.mutations.table import TABLE

CODE, TESTS = Path(feasible.__file__).parent, Path(__file__).parent


def test_every_mutation_has_one_place_and_its_tests_a_file() -> None:
    for (file, *tests), mutations in TABLE.items():
        text = (CODE / file).read_text()
        for name, (before, after) in mutations.items():
            assert text.count(before) == 1, name
            assert before != after, name
        for test in tests:
            assert (TESTS / test.partition("::")[0]).is_file(), test
