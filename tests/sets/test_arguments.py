"""What a person can get wrong: one sentence that names the set, the field and the fault; and what must be accepted."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import feasible as fs
from feasible.sets import (
    ActionSet,
    Allocation,
    AllocationAtMost,
    Ball,
    BallBox,
    Box,
    EllipsoidBox,
    HalfSpaceBox,
    IntegerAllocation,
    Polytope,
    PositivePowerBox,
    TurnoverAllocation,
    WeightedL1Box,
    WeightedL1EllipsoidBox,
)

NAN = float("nan")


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: Box([0.0, NAN], 1.0), "Box: low must be finite"),
        (lambda: Box([0.0, 2.0], [1.0, 1.0]), "Box: low must not exceed high"),
        (lambda: Box([0.0, 0.0], [1.0, 1.0, 1.0]), "Box: low must be a number or a vector of length 3"),
        (lambda: Box([[0.0]], [1.0]), "Box: low must be a number or a vector"),
        (lambda: Box([[0.0], [1.0, 2.0]], 1.0), "Box: low must be numbers of a rectangular shape"),
        (lambda: Box([], []), "at least one entry"),
        (lambda: Ball([0.0, 0.0], -1.0), "Ball: radius must not be negative"),
        (lambda: Ball([0.0, 0.0], [1.0, 2.0]), "Ball: radius must be one number"),
        (lambda: WeightedL1Box([1.0, NAN], 1.0, 1.0), "WeightedL1Box: weights must be finite"),
        (lambda: WeightedL1Box([1.0, 1.0], -1.0, 1.0), "WeightedL1Box: budget must not be negative"),
        (lambda: PositivePowerBox([1.0, 1.0], 1.0, -1.0), "PositivePowerBox: bound must not be negative"),
        (lambda: Allocation(7.0, [0.0, 0.0], 3.0), "Allocation: total must not exceed the sum of high"),
        (lambda: Allocation(1.0, [1.0, 1.0], 3.0), "Allocation: total must not be below the sum of low"),
        (lambda: AllocationAtMost(1.0, [1.0, 1.0], 3.0), "AllocationAtMost: total must not be below the sum of low"),
        (lambda: IntegerAllocation(1.5, [0.0, 0.0], 3.0), "IntegerAllocation: total must be an integer"),
        (lambda: IntegerAllocation(1, [0.2, 0.2], 0.8), "IntegerAllocation: low must not exceed high"),
        (lambda: Polytope([1.0, 1.0], 1.0, 0.0, 1.0), "Polytope: A must be a matrix"),
        (lambda: Polytope([[1.0, 1.0]], [1.0, 2.0], 0.0, 1.0), "Polytope: b must have one entry for each"),
        (lambda: Polytope([[1.0, 1.0]], -1.0, 0.0, 1.0), "Polytope: A, b and the bounds leave no point"),
        (lambda: Polytope([[1.0, 1.0]], 1.0, 0.0, 1.0, A_eq=[[1.0, 1.0]]), "A_eq and b_eq must be given together"),
        (lambda: Polytope([[1.0, 1.0]], 1.0, 0.0, 1.0, [[1.0, 0.0]], [2.0]), "leave no point"),
        (lambda: Polytope([[1.0, 1.0]], 1.0, 0.0, 1.0, [[1.0]], [1.0]), "A_eq must have 2 columns"),
        (lambda: EllipsoidBox([[1.0, 0.0], [0.0, -1.0]], 1.0, 1.0), "Q must be positive semi-definite"),
        (lambda: EllipsoidBox([[1.0, 0.0]], 1.0, 1.0), "EllipsoidBox: Q must be a square matrix"),
        (lambda: EllipsoidBox(np.eye(2), -1.0, 1.0), "EllipsoidBox: level must not be negative"),
        (lambda: EllipsoidBox([1.0, -1.0], 1.0, 1.0), "EllipsoidBox: Q must not be negative in any entry of its diag"),
        (lambda: HalfSpaceBox([1.0, -1.0], -2.1, -1.0, 1.0), "HalfSpaceBox: budget must not be below the least w . a"),
        (lambda: BallBox([3.0, 0.0], 1.0, -1.0, 1.0), "BallBox: radius must reach from centre to the box"),
        (lambda: Ball([3.0, 0.0], 1.0) & Box([-1.0, -1.0], 1.0), "BallBox: radius must reach"),
        (lambda: WeightedL1EllipsoidBox([1.0, 1.0], 1.0, [1.0, -1.0], 1.0, 1.0), "Q must not be negative"),
        (lambda: WeightedL1EllipsoidBox([1.0, 1.0], -1.0, [1.0, 1.0], 1.0, 1.0), "budget must not be negative"),
        (
            lambda: TurnoverAllocation(1.0, 0.0, [0.3, 0.3], 0.5, 0.1),
            "TurnoverAllocation: total must not exceed the sum",
        ),
        (lambda: TurnoverAllocation(1.0, 0.0, 1.0, [0.4, 0.4], 0.1), "turnover must be at least .total - sum of prev"),
        (lambda: TurnoverAllocation(1.0, 0.0, 1.0, [0.5, 0.5], -0.1), "TurnoverAllocation: turnover must not be neg"),
        (
            lambda: TurnoverAllocation(1.0, 0.0, 1.0, [0.9, 0.1], 0.2) & Box([0.0, 0.0], 0.6),
            "TurnoverAllocation: turnover must reach from previous to the box",
        ),
        (lambda: Ball([0.0, 0.0], 1.0) & Ball([5.0, 0.0], 1.0), "Intersection: the sets have no common point"),
        (lambda: Ball([0.0, 0.0], 1.0) & Box([0.0], 1.0), "both sets must have one dim"),
        (lambda: IntegerAllocation(2, [0, 0], 2) & Box([0.0, 0.0], 1.0), "IntegerAllocation cannot take part"),
    ],
)
def test_bad_sets_are_refused_in_one_sentence(build: Callable[[], ActionSet], words: str) -> None:
    with pytest.raises(ValueError, match=words) as caught:
        build()
    assert str(caught.value).count("\n") == 0
    assert str(caught.value).endswith(".")


def test_an_empty_set_has_its_own_error() -> None:
    with pytest.raises(fs.EmptySetError):
        Polytope([[1.0, 1.0]], -1.0, 0.0, 1.0)
    with pytest.raises(fs.EmptySetError):
        Allocation(7.0, [0.0, 0.0], 3.0)


def test_a_point_of_the_wrong_shape_is_refused() -> None:
    with pytest.raises(ValueError, match=r"Box: expected a vector of shape \(2,\), got shape \(3,\)"):
        Box([0.0, 0.0], 1.0).project([1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match=r"batches go through jax\.vmap"):
        Box([0.0, 0.0], 1.0).project(np.zeros((5, 2)))


@pytest.mark.parametrize("give", [list, tuple, np.array, jnp.array, lambda x: np.array(x, np.float32)])
def test_anything_array_like_is_accepted(give: Callable[[list[float]], object]) -> None:
    feasible_set = WeightedL1Box(give([1.0, 2.0]), 2, 1)  # pyright: ignore[reportArgumentType]
    np.testing.assert_allclose(feasible_set.project(give([0.0, 9.0])), [0.0, 1.0])  # pyright: ignore[reportArgumentType]
    assert feasible_set.contains([0, 1])


def test_the_dtype_is_that_of_the_arrays_given() -> None:
    assert Box(np.zeros(2, np.float32), 1.0).project([3.0, 3.0]).dtype == jnp.float32
    assert Box(np.zeros(2), 1.0).project(np.zeros(2, np.float32)).dtype == jnp.float64
    assert Box([0, 0], 1).dtype == jnp.float64


def test_sets_are_built_inside_jit_without_value_checks() -> None:
    """The state-dependent case: traced values cannot be judged, shapes can."""
    projected = jax.jit(lambda w, z: WeightedL1Box(w, 1.0, 1.0).project(z))(jnp.ones(2), jnp.asarray([1.0, 1.0]))
    np.testing.assert_allclose(projected, [0.5, 0.5])
    with pytest.raises(ValueError, match="weights must be a number or a vector of length 3"):
        jax.jit(lambda w: WeightedL1Box(w, 1.0, jnp.ones(3)).scale)(jnp.ones(2))


def test_nan_is_never_inside() -> None:
    for feasible_set in [Box([0.0, 0.0], 1.0), Ball([0.0, 0.0], 1.0), WeightedL1Box([0.0, 1.0], 1.0, 1.0)]:
        assert not feasible_set.contains([NAN, 0.5])
        assert not feasible_set.contains(feasible_set.execute([NAN, 0.5]))


def test_residual_names_match_residuals() -> None:
    for feasible_set in [
        Box([0.0, 0.0], 1.0),
        Ball([0.0, 0.0], 1.0),
        WeightedL1Box([1.0, 1.0], 1.0, 1.0),
        PositivePowerBox([1.0, 1.0], 1.0, 1.0),
        Allocation(1.0, [0.0, 0.0], 1.0),
        AllocationAtMost(1.0, [0.0, 0.0], 1.0),
        IntegerAllocation(1, [0, 0], 1),
        Polytope([[1.0, 1.0]], 1.0, 0.0, 1.0, [[1.0, -1.0]], [0.0]),
        EllipsoidBox(np.eye(2), 1.0, 1.0),
        EllipsoidBox(np.eye(2), 1.0, 1.0) & Ball([0.5, 0.0], 1.0),
        HalfSpaceBox([1.0, -1.0], 0.5, -1.0, 1.0),
        BallBox([0.0, 0.0], 1.0, -0.5, 0.5),
        TurnoverAllocation(1.0, 0.0, 1.0, [0.5, 0.5], 0.1),
        WeightedL1EllipsoidBox([1.0, 1.0], 1.0, [1.0, 1.0], 1.0, 1.0),
    ]:
        count = feasible_set.residuals(feasible_set.centre()).shape
        assert (len(feasible_set.residual_names()),) == count == feasible_set.slopes().shape
