"""The suite's own speed: tests that share programs must run on one worker, and programs be compiled quickly."""

import jax
import jax.numpy as jnp
import pytest

from tests.code_generation import users_code


@pytest.mark.xdist_group("workers")
def test_groups_reach_the_scheduler(request: pytest.FixtureRequest) -> None:
    """pytest-xdist hands a group over as the end of a test's name; pytest 9.2 loses it without a word."""
    if not hasattr(request.config, "workerinput"):
        pytest.skip("not run in parallel")
    assert request.node.nodeid.endswith("@workers"), "pytest and pytest-xdist do not fit: see constraints.txt"


def test_modules_are_groups_where_no_other_is_named(request: pytest.FixtureRequest) -> None:
    (group,) = request.node.iter_markers("xdist_group")
    assert group.args == ("tests/test_workers.py",)


def test_code_is_plain_but_where_it_is_tested(request: pytest.FixtureRequest) -> None:
    """The emitter that users get wraps every loop of its own, such as that of running sums, as if it were fused."""
    if request.config.getoption("markexpr") != "not slow":
        pytest.skip("all code is as users get it")

    def is_plain() -> bool:
        code = jax.jit(lambda x: jnp.cumsum(x)).lower(jnp.ones(8)).compile().as_text()
        assert code is not None
        return "wrapped_reduce-window" not in code

    assert is_plain()
    with users_code():
        assert not is_plain()
