"""Property tests: for inputs that hypothesis looks for, extremes and ties included."""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from numpy.typing import NDArray

from feasible.sets import (
    ActionSet,
    Allocation,
    AllocationAtMost,
    Ball,
    Box,
    EllipsoidBox,
    IntegerAllocation,
    Intersection,
    Polytope,
    PositivePowerBox,
    WeightedL1Box,
)

# One dimension for all, so that nothing recompiles from example to example.
N = 3
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 1e-30, 1e-7, 1e6, -1e6, 2.0, -2.0]
numbers = st.one_of(st.sampled_from(SPECIAL), st.floats(-10, 10, width=32))
vectors = npst.arrays(np.float64, N, elements=numbers)

SETS: dict[str, Callable[[], ActionSet]] = {
    "box": lambda: Box([-1.0, 0.0, 0.5], [1.0, 2.0, 0.5]),
    "ball": lambda: Ball([0.5, 0.0, -1.0], 1.5),
    "point": lambda: Ball([1.0, 1.0, 1.0], 0.0),
    "weighted_l1": lambda: WeightedL1Box([0.0, 1.0, -3.0], 2.0, [1.0, 1.0, 0.5]),
    "weighted_l1_without_budget": lambda: WeightedL1Box([1.0, 1.0, 1.0], 0.0, 1.0),
    "positive_power": lambda: PositivePowerBox([2.0, -1.0, 0.0], 1.0, 1.0),
    "allocation": lambda: Allocation(2.0, [0.0, 0.0, 0.5], [1.0, 2.0, 0.5]),
    "allocation_at_most": lambda: AllocationAtMost(1.0, [-1.0, 0.0, 0.0], 1.0),
    "integer_allocation": lambda: IntegerAllocation(4, [0, 0, 1], [2, 3, 2]),
    "polytope": lambda: Polytope([[1.0, 1.0, 1.0], [1.0, -1.0, 0.0]], [1.0, 0.5], -1.0, 1.0),
    "polytope_with_equality": lambda: Polytope([[1.0, 1.0, 0.0]], [1.0], -1.0, 1.0, [[1.0, 1.0, 1.0]], [0.0]),
    "ellipsoid": lambda: EllipsoidBox([[2.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 0.0]], 1.0, 1.0),
    "ball_and_box": lambda: Ball([0.0, 0.0, 0.0], 1.0) & Box([-0.5, -2.0, -2.0], [0.5, 2.0, 0.25]),
}
# All tests of a set run on one worker, so that its answers are compiled once.
each = pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.xdist_group(f"property_{n}")) for n in SETS])


@functools.cache
def build(name: str) -> ActionSet:
    return SETS[name]()


def slack(feasible_set: ActionSet, *inputs: NDArray) -> float:
    """1e-7 of scale (1e-6 for intersections), and the rounding of the inputs."""
    accuracy = 1e-6 if isinstance(feasible_set, Intersection) else 1e-7
    return accuracy * float(feasible_set.scale) + 1e-14 * max(float(np.linalg.norm(x)) for x in inputs)


@each
@settings(max_examples=100, deadline=None)
@given(z=vectors, y=vectors)
def test_projection(name: str, z: NDArray, y: NDArray) -> None:
    """Feasible, idempotent, non-expansive, and <z - a, c - a> <= 0 for the feasible point c."""
    feasible_set = build(name)
    a, c = np.asarray(feasible_set.project(z)), np.asarray(feasible_set.project(y))
    room = slack(feasible_set, z, y)
    assert feasible_set.contains(a, 1e-9 * float(feasible_set.scale))
    np.testing.assert_allclose(feasible_set.project(a), a, atol=room)
    assert np.linalg.norm(a - c) <= np.linalg.norm(z - y) + 2 * room
    assert (z - a) @ (c - a) <= 4 * room * (1 + np.linalg.norm(z - a))


@each
@settings(max_examples=100, deadline=None)
@given(g=vectors, y=vectors)
def test_linear_maximisation(name: str, g: NDArray, y: NDArray) -> None:
    """Feasible, no worse than any feasible point, and the gap is its advantage."""
    feasible_set = build(name)
    best, c = np.asarray(feasible_set.maximise_linear(g)), np.asarray(feasible_set.project(y))
    room = 4 * slack(feasible_set, y) * (1e-12 + float(np.linalg.norm(g)))
    assert feasible_set.contains(best, 1e-9 * float(feasible_set.scale))
    assert g @ c <= g @ best + room
    np.testing.assert_allclose(feasible_set.frank_wolfe_gap(c, g), g @ (best - c), atol=room + 1e-12)
    np.testing.assert_allclose(feasible_set.support(g), g @ best, atol=room + 1e-12)


@each
@settings(max_examples=100, deadline=None)
@given(y=vectors, direction=vectors)
def test_exit_distance(name: str, y: NDArray, direction: NDArray) -> None:
    """The ray from a point inside towards another stays inside at least that long, and ends inside."""
    feasible_set = build(name)
    origin = 0.5 * np.asarray(feasible_set.centre() + feasible_set.project(direction))
    line = np.asarray(feasible_set.project(y)) - origin
    if np.linalg.norm(line) < 1e-6:
        return
    t = float(feasible_set.exit_distance(origin, line))
    assert t >= 1 - 1e-6
    assert feasible_set.contains(origin + t * line, 1e-6 * float(feasible_set.scale))
    assert float(feasible_set.exit_distance(origin, direction)) >= 0.0
    assert np.isinf(float(feasible_set.exit_distance(origin, np.zeros(N))))


@each
@settings(max_examples=50, deadline=None)
@given(z=vectors)
def test_execution_in_float32(name: str, z: NDArray) -> None:
    """Feasible and whole where it must be; the projection itself wherever that may be executed."""
    single = jax.tree.map(lambda leaf: leaf.astype(jnp.float32), build(name))
    executed = single.execute(z)
    assert single.contains(executed)
    assert float(single.integrality(executed)) == 0.0
    if not isinstance(single, IntegerAllocation):
        np.testing.assert_array_equal(executed, single.project(z))
