"""What a run counts of its proposals is what a plain count of them finds."""

import numpy as np
import pytest

from feasible.run.drive.lone import Lone
from tests.run.toys import TOY, toy_plant

pytestmark = [pytest.mark.xdist_group("toy"), pytest.mark.usefixtures("shared_programs")]
STEPS = 120


def test_infeasible_proposals_are_counted_one_by_one_after_the_warmup() -> None:
    """The toy's set is a ball whose radius is the observation's last number."""
    driver = Lone(TOY, toy_plant(), seed=1)
    driver.start()
    proposed = intended = 0
    for step in range(STEPS + 1):
        driver.advance(step)
        decision, radius = driver.carry.decision, float(driver.carry.obs[-1])
        if step >= TOY.warmup:
            proposed += np.linalg.norm(decision.proposed) > radius + 1e-5
            intended += np.linalg.norm(decision.intended) > radius + 1e-5
        assert np.linalg.norm(decision.executed) <= radius + 1e-5
    counted = driver.tally.reports()[0]
    assert 0 < intended < proposed < STEPS
    assert counted["violation/proposed_count"] == proposed
    assert counted["violation/intended_count"] == intended
    assert counted["violation/executed_max"] <= 1e-5
