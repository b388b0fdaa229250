"""Outcomes of seeds and of a family of methods, from runs made by hand."""

import numpy as np
import pytest

from documentation.family import label, members, rows
from documentation.outcomes import outcome
from feasible.report.runs import Run, Series

EVERY, WARMUP = 1_000, 500
PLAIN = {"kind": "FrankWolfe", "step": 0.01}


def made(seed: int, last: int, level: float, *, algo: str = "nfwpo", variant: str = "fair", rule: dict = PLAIN) -> Run:
    """Its return is `level` plus the evaluation's number; of its proposals 1/4 are infeasible, 1/8 intended to be."""
    steps = np.arange(1, last + 1) * EVERY
    proposals = steps + 1 - WARMUP
    series = {
        "eval/return": Series(steps, level + np.arange(1.0, last + 1)),
        "violation/proposed_count": Series(steps, proposals / 4),
        "violation/intended_count": Series(steps, proposals / 8),
    }
    described = {"algorithm": {"kind": "DDPG", "warmup": WARMUP, "rule": rule}}
    name = f"{algo}+{variant}/seed-{seed}"
    return Run(name, "reacher", algo, variant, seed, "fair", 40 * EVERY, last * EVERY, described, series)


def test_seeds_are_compared_at_the_step_that_the_slowest_has_reached() -> None:
    found = outcome([made(0, 40, 0.0), made(1, 30, 1_000.0)])
    np.testing.assert_allclose(found.scores, [25.5, 1_025.5])  # the mean of 21 to 30
    assert found.reached == 30 * EVERY
    assert found.infeasible == pytest.approx(0.25)
    assert found.intended == pytest.approx(0.125)
    assert str(found) == "526 ± 500; 2 seeds; 30,000 of 40,000 steps"
    assert str(outcome([made(0, 40, 1_000.0)])) == "1,036; 1 seed"  # the mean of 1,031 to 1,040


def test_until_cuts_scores_and_shares() -> None:
    run = made(0, 40, 0.0)
    counted = run.series["violation/proposed_count"]
    counted.values[20:] = counted.steps[20:]  # from there on everything is infeasible
    assert outcome([run], 20 * EVERY).infeasible == pytest.approx(0.25)
    assert outcome([run]).infeasible > 0.9
    assert outcome([run], 20 * EVERY).scores.tolist() == [15.5]


def test_a_family_is_ordered_by_score_and_leaves_other_presets_and_algorithms_out() -> None:
    by_gap = {"kind": "FrankWolfe", "step": 0.05}
    changed = "fair+frank_wolfe_by=gap+frank_wolfe_step=0.05"
    runs = [made(seed, 20, 0.0) for seed in range(5)]
    runs += [made(seed, 12, 100.0, variant=changed, rule=by_gap) for seed in range(5)]
    runs += [made(0, 5, 900.0, variant=f"fair+{aside}") for aside in ("actor_interval=50", "alone", "first+noise=0.2")]
    found = members("reacher", runs, 0)
    assert [one.label for one in found] == ["NFWPO, step 0.05, by the gap", "NFWPO, step 0.01"]
    assert {one.outcome.reached for one in found} == {12 * EVERY}
    assert rows(found)[1] == ["NFWPO, step 0.01", "7.50 ± 0.00", "25.0%", "12.5%"]
    assert members("halfcheetah", runs, 0) == members("reacher", runs) == []  # too short for what is drawn
    assert [one.label for one in members("reacher", runs, 13 * EVERY)] == ["NFWPO, step 0.01"]
    assert members("reacher", runs, 13 * EVERY)[0].outcome.reached == 20 * EVERY


@pytest.mark.parametrize(
    ("algo", "variant", "kind", "said"),
    [
        ("projected-gradient", "fair", "ProjectedGradient", "ProjectedGradient"),
        (
            "projected-gradient",
            "fair+actor_interval=2+projected_gradient_inside=3.0+target_noise=0.2+twin=True",
            "ProjectedGradient",
            "ProjectedGradient, TD3, inside 3.0",
        ),
        (
            "ddpg-optlayer",
            "fair+through_projection_penalty=1.0",
            "ThroughProjection",
            "DDPG+OptLayer, penalty 1.0",
        ),
        (
            "projected-gradient",
            "fair+actor_interval=10+averaged=True+critic_interval=10",
            "ProjectedGradient",
            "ProjectedGradient, updates every 10 steps, averaged",
        ),
        ("ddpg-shaping", "fair+discount=0.9", "PolicyGradient", "DDPG+RewardShaping, discount 0.9"),
    ],
)
def test_labels(algo: str, variant: str, kind: str, said: str) -> None:
    assert label(made(0, 1, 0.0, algo=algo, variant=variant, rule={"kind": kind})) == said
