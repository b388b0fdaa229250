"""Intersections become one set in closed form where there is one; answers do not depend on the way they are built."""

from collections.abc import Callable

import numpy as np
import pytest

from feasible.sets import (
    ActionSet,
    Allocation,
    AllocationAtMost,
    Ball,
    BallBox,
    Box,
    EllipsoidBox,
    HalfSpaceBox,
    Intersection,
    Polytope,
    PositivePowerBox,
    TurnoverAllocation,
    WeightedL1Box,
    WeightedL1EllipsoidBox,
)

UNIT = Box([-1.0, -1.0], 1.0)
HALF = Box([-0.5, -0.5], 0.5)
HEAT = EllipsoidBox([1.0, 0.5], 0.5, 0.7)


@pytest.mark.parametrize(
    ("build", "kind"),
    [
        (lambda: UNIT & HALF, Box),
        (lambda: WeightedL1Box([1.0, 1.0], 1.0, 1.0) & HALF, WeightedL1Box),
        (lambda: HALF & PositivePowerBox([1.0, 1.0], 1.0, 1.0), PositivePowerBox),
        (lambda: HALF & EllipsoidBox(np.eye(2), 1.0, 1.0), EllipsoidBox),
        (lambda: Allocation(0.5, [-1.0, -1.0], 1.0) & HALF, Allocation),
        (lambda: HALF & AllocationAtMost(0.5, [-1.0, -1.0], 1.0), AllocationAtMost),
        (lambda: Polytope([[1.0, 1.0]], 1.0, -1.0, 1.0) & HALF, Polytope),
        (lambda: Polytope([[1.0, 1.0]], 1.0, -1.0, 1.0) & Polytope([[1.0, -1.0]], 1.0, -1.0, 1.0), Polytope),
        (lambda: Allocation(0.5, [-1.0, -1.0], 1.0) & Polytope([[1.0, -1.0]], 0.25, -1.0, 1.0), Polytope),
        (lambda: Ball([0.0, 0.0], 1.0) & HALF, BallBox),
        (lambda: UNIT & (Ball([0.0, 0.0], 1.0) & HALF), BallBox),
        (lambda: HALF & HalfSpaceBox([1.0, -2.0], 0.5, -1.0, 1.0), HalfSpaceBox),
        (lambda: HalfSpaceBox([1.0, -2.0], 0.5, -1.0, 1.0) & AllocationAtMost(0.5, [-1.0, -1.0], 1.0), Polytope),
        (lambda: HALF & TurnoverAllocation(0.5, 0.0, 1.0, [0.4, 0.1], 0.4), TurnoverAllocation),
        (lambda: HEAT & WeightedL1Box([1.0, 2.0], 1.0, 1.0), WeightedL1EllipsoidBox),
        (lambda: WeightedL1Box([1.0, 2.0], 1.0, 1.0) & HEAT & HALF, WeightedL1EllipsoidBox),
        (lambda: WeightedL1Box([1.0, 2.0], 1.0, 1.0) & EllipsoidBox(np.eye(2), 0.5, 0.7), Intersection),
    ],
)
def test_known_closed_forms_are_used(build: Callable[[], ActionSet], kind: type) -> None:
    meet = build()
    assert type(meet) is kind
    assert meet.contains(meet.centre())


def test_parts_of_one_kind_merge_inside_an_intersection() -> None:
    meet = Ball([0.0, 0.0], 1.0) & WeightedL1Box([1.0, 2.0], 1.0, 1.0) & UNIT & HALF
    assert isinstance(meet, Intersection)
    assert len(meet.parts) == 2


def test_ball_and_box_in_closed_form() -> None:
    """The unit ball cut at a_1 <= 1/2: beyond the cut the answer is the corner (1/2, sqrt(3)/2) or on the face."""
    meet = Ball([0.0, 0.0], 1.0) & Box([-1.0, -1.0], [0.5, 1.0])
    np.testing.assert_allclose(meet.project([2.0, 3.0]), [0.5, 0.75**0.5], atol=1e-9)
    np.testing.assert_allclose(meet.project([2.0, 0.25]), [0.5, 0.25], atol=1e-9)
    np.testing.assert_allclose(meet.project([0.1, 0.2]), [0.1, 0.2], atol=0)
    np.testing.assert_allclose(meet.maximise_linear([1.0, 1.0]), [0.5, 0.75**0.5], atol=1e-7)


def test_a_centre_is_found_where_the_parts_have_none_in_common() -> None:
    """Two unit balls around (0, 0) and (1.5, 0) and a box: the mean of the centres is inside, the box's is not."""
    meet = Ball([0.0, 0.0], 1.0) & Ball([1.5, 0.0], 1.0) & Box([0.0, 0.2], 5.0)
    centre = np.asarray(meet.centre())
    assert np.max(np.asarray(meet.residuals(centre))) < -1e-3


@pytest.mark.parametrize("steepness", [1.0, 1e3, 1e5, 1e6, 1e7])
def test_linear_maximisation_where_one_part_hardly_matters(steepness: float) -> None:
    """An ellipse in (a_1, a_2) and a box: for g = (1/2, 1, s) the maximiser is (0, 1, 1), whatever s > 0."""
    heat = EllipsoidBox([[2.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 0.0]], 1.0, 1.0)
    np.testing.assert_allclose(heat.maximise_linear([0.5, 1.0, steepness]), [0.0, 1.0, 1.0], atol=1e-7)


def test_a_proposal_whose_square_overflows_goes_to_the_point_farthest_along_it() -> None:
    region = EllipsoidBox(np.array([[2.0, 0.5], [0.5, 1.0]], np.float32), 1.0, 0.9)
    # Of the ellipsoid alone it would be (0, 1), beyond the bound; with y = 0.9 it is the root of 2 x^2 + 0.9 x = 0.19.
    expected = [(-0.45 + np.sqrt(0.45**2 + 2.0 * 0.19)) / 2.0, 0.9]
    np.testing.assert_allclose(region.project(np.float32(1e30) * np.array([1.0, 2.0])), expected, atol=1e-6)
