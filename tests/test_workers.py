"""The suite's own speed: tests of one set must run on one worker, or each worker compiles the set's programs again."""

import pytest


@pytest.mark.xdist_group("workers")
def test_groups_reach_the_scheduler(request: pytest.FixtureRequest) -> None:
    """pytest-xdist hands a group over as the end of a test's name; pytest 9.2 loses it without a word."""
    if not hasattr(request.config, "workerinput"):
        pytest.skip("not run in parallel")
    assert request.node.nodeid.endswith("@workers"), "pytest and pytest-xdist do not fit: see constraints.txt"
