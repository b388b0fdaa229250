"""Centres of the sets in closed form: as deep as a largest ball that a reference solver finds, and of least norm."""

import cvxpy as cp
import jax
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import linprog

from feasible.sets import BallBox, HalfSpaceBox, TurnoverAllocation
from tests.one_by_one import one_by_one
from tests.sets.families import FAMILIES, Values

COUNT = 60


def drawn(name: str, kind: type) -> tuple[Values, NDArray]:
    """Random members without a pinned coordinate, with their centres."""
    family = next(family for family in FAMILIES if family.name == name)
    values = {key: np.array(value) for key, value in family.draw(np.random.default_rng(3), COUNT).items()}
    values["high"] = np.maximum(values["high"], values["low"] + 0.125)
    return values, np.asarray(jax.jit(one_by_one(lambda v: kind(**v).centre()))(values))


def test_a_half_space_has_its_centre_of_least_norm() -> None:
    """Depth against HiGHS; of the centres as deep, against the nearest to zero by Clarabel."""
    values, centres = drawn("half_space", HalfSpaceBox)
    n = centres.shape[1]
    for k, centre in enumerate(centres):
        w, budget, low, high = (values[name][k] for name in ("weights", "budget", "low", "high"))
        steep, eye = np.linalg.norm(w), np.eye(n)
        rows = np.column_stack([np.vstack([w, eye, -eye]), [steep, *np.ones(2 * n)]])
        limits = np.concatenate([[budget], high, -low])
        found = linprog([*np.zeros(n), -1.0], rows, limits, bounds=(None, None))
        depth = min(np.min(limits[1:] - rows[1:, :-1] @ centre), (budget - w @ centre) / steep if steep else np.inf)
        np.testing.assert_allclose(depth, -found.fun, atol=1e-7)
        if depth > 1e-6:
            a = cp.Variable(n)
            cp.Problem(
                cp.Minimize(cp.sum_squares(a)), [rows[:, :-1] @ a + (depth - 1e-9) * rows[:, -1] <= limits]
            ).solve(solver=cp.CLARABEL)
            np.testing.assert_allclose(centre, np.asarray(a.value), atol=1e-4)


def test_the_centre_of_a_half_space_in_the_unit_box() -> None:
    """r = (b + |q|_1) / (|q|_1 + |q|_2) and c = -(1 - r) sign(q), where q is not 0."""
    region = HalfSpaceBox([3.0, 0.0, -4.0], -1.0, -1.0, 1.0)
    np.testing.assert_allclose(region.centre(), [-0.5, 0.0, 0.5], atol=1e-12)


def test_a_ball_in_a_box_has_its_centre() -> None:
    values, centres = drawn("ball_box", BallBox)
    n = centres.shape[1]
    a, r = cp.Variable(n), cp.Variable()
    for k in range(0, COUNT, 3):
        middle, radius, low, high = (values[name][k] for name in ("centre", "radius", "low", "high"))
        limits = [cp.norm(a - middle) + r <= radius, low + r <= a, a <= high - r]
        cp.Problem(cp.Maximize(r), limits).solve(solver=cp.CLARABEL)
        slack = np.minimum(centres[k] - low, high - centres[k])
        depth = min(radius - np.linalg.norm(centres[k] - middle), np.min(slack))
        np.testing.assert_allclose(depth, np.asarray(r.value), atol=1e-6)


@pytest.mark.parametrize("turnover", [0.0, 0.2, 5.0])
def test_the_centre_of_a_turnover_is_inside_by_its_share(turnover: float) -> None:
    """Half of the turnover is left, and all bounds are off where the turnover is not 0."""
    previous = np.array([0.6, 0.4, 0.0, 0.0])
    centre = np.asarray(TurnoverAllocation(1.0, 0.0, 0.5, previous, turnover).centre())
    np.testing.assert_allclose(centre.sum(), 1.0)
    assert np.abs(centre - previous).sum() <= 0.5 * turnover + 1e-12
    assert np.all(centre < 0.6) == (turnover > 0)
