"""Property tests: for inputs that hypothesis looks for, extremes and ties included, in 1 to 50 dimensions."""

import functools
from collections.abc import Callable, Sequence
from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from jaxtyping import Array
from numpy.typing import NDArray

from feasible.sets import (
    ActionSet,
    Allocation,
    AllocationAtMost,
    Ball,
    Box,
    EllipsoidBox,
    HalfSpaceBox,
    IntegerAllocation,
    Polytope,
    PositivePowerBox,
    TurnoverAllocation,
    WeightedL1Box,
)
from tests.one_by_one import one_by_one

DIMENSIONS = (1, 2, 6, 20, 50)
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 1e-30, 1e-7, 1e6, -1e6, 2.0, -2.0]
numbers = st.one_of(st.sampled_from(SPECIAL), st.floats(-10, 10, width=32))


def cycle(n: int, *values: float) -> NDArray:
    return np.resize(np.asarray(values, float), n)


def _polytope(n: int) -> Polytope:
    return Polytope(np.stack([np.ones(n), cycle(n, 1.0, -1.0, 0.0)]), [1.0, 0.5], -1.0, 1.0)


def _plane(n: int) -> Polytope:
    return Polytope(cycle(n, 1.0, 1.0, 0.0)[None], [1.0], -1.0, 1.0, np.ones((1, n)), [0.0])


def _bent(n: int) -> NDArray:
    """Of rank n - 1 in three dimensions, and of those blocks beyond."""
    block = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 0.0]])
    return np.kron(np.eye(n // 3 + 1), block)[:n, :n]


# The members of each kind, degenerate ones included.
KINDS: dict[str, Callable[[int], Sequence[ActionSet]]] = {
    "box": lambda n: [Box(cycle(n, -1.0, 0.0, 0.5), cycle(n, 1.0, 2.0, 0.5))],
    "ball": lambda n: [Ball(cycle(n, 0.5, 0.0, -1.0), 1.5), Ball(np.ones(n), 0.0)],
    "weighted_l1": lambda n: [
        WeightedL1Box(cycle(n, 0.0, 1.0, -3.0), 2.0, cycle(n, 1.0, 1.0, 0.5)),
        WeightedL1Box(np.ones(n), 0.0, np.ones(n)),
    ],
    "positive_power": lambda n: [
        PositivePowerBox(cycle(n, 2.0, -1.0, 0.0), 1.0, np.ones(n)),
        PositivePowerBox(cycle(n, 2.0, -1.0, 0.0), 0.0, np.ones(n)),
    ],
    "allocation": lambda n: [Allocation(0.75 * n, cycle(n, 0.0, 0.5, 0.25), cycle(n, 1.0, 2.0, 0.75))],
    "allocation_at_most": lambda n: [AllocationAtMost(0.25 * n, cycle(n, -1.0, 0.0), np.ones(n))],
    "integer_allocation": lambda n: [IntegerAllocation(n, cycle(n, 0, 0, 1), cycle(n, 2, 3, 2))],
    "half_space": lambda n: [
        HalfSpaceBox(cycle(n, 0.0, 1.0, -3.0), 0.5, cycle(n, -1.0, 0.0, 0.5), cycle(n, 1.0, 2.0, 0.5)),
        HalfSpaceBox(cycle(n, 2.0, -1.0), -1.5 * n, -np.ones(n), cycle(n, 1.0, 1.5)),
    ],
    "ball_and_box": lambda n: [
        Ball(np.zeros(n), 1.0) & Box(cycle(n, -0.5, -2.0), cycle(n, 0.5, 2.0, 0.25)),
        Ball(np.ones(n), 0.75 * n**0.5) & Box(cycle(n, -0.5, -2.0), cycle(n, 0.5, 2.0)),
    ],
    "turnover": lambda n: [
        TurnoverAllocation(1.0, 0.0, 1.5 / n, cycle(n, 1.0, 0.0) / ((n + 1) // 2), 0.25),
        TurnoverAllocation(1.0, 0.0, 2.0 / n, np.full(n, 1 / n), 0.0),
    ],
    "diagonal": lambda n: [EllipsoidBox(cycle(n, 2.0, 0.0, 0.5), 0.5, 1.0)],
    "weighted_l1_and_diagonal": lambda n: [
        WeightedL1Box(cycle(n, 0.0, 1.0, -3.0), 2.0, 1.0) & EllipsoidBox(cycle(n, 2.0, 0.5, 0.0, 1.0), 0.5, 1.0),
        WeightedL1Box(np.ones(n), 1.0, 1.0) & EllipsoidBox(np.zeros(n), 0.0, 1.0),
    ],
    "polytope": lambda n: [_polytope(n)],
    "polytope_with_equality": lambda n: [_plane(n)],
    "ellipsoid": lambda n: [EllipsoidBox(_bent(n), 1.0, 1.0)],
    "ball_and_weighted_l1": lambda n: [Ball(np.zeros(n), 1.0) & WeightedL1Box(cycle(n, 0.5, 2.0), 1.5, 1.0)],
}
# The kernels of these take seconds to compile, whatever the dimension: by default each is asked in some of them.
# `ellipsoid` has that of `ball_and_weighted_l1`, and is asked in both precisions by test_against_reference.py.
LONG = {"polytope": (1, 6, 50), "polytope_with_equality": (2, 20), "ellipsoid": (), "ball_and_weighted_l1": (6,)}
# Kinds of one kernel take turns, so that it is asked in every dimension: `weighted_l1` and `positive_power`,
# `weighted_l1_and_diagonal` and `diagonal`, `integer_allocation` and the other allocations.
ALIKE = {"weighted_l1": (2, 20), "positive_power": (1, 6, 50), "half_space": (2, 50), "turnover": (2, 6, 50)}
ALIKE |= {"weighted_l1_and_diagonal": (1, 6, 50), "diagonal": (2, 20), "allocation": (2, 20)}
ALIKE |= {"allocation_at_most": (6, 50)}
SOMETIMES = LONG | ALIKE
ALWAYS = tuple(kind for kind in KINDS if kind not in SOMETIMES)


def _together(n: int) -> tuple[str, ...]:
    """The kinds that one program asks by default."""
    return (*ALWAYS, *(kind for kind in SOMETIMES if n in SOMETIMES[kind]))


def _marks(n: int, *, by_default: bool = True) -> list[pytest.MarkDecorator]:
    return [pytest.mark.xdist_group(f"properties_{n}"), *([] if by_default else [pytest.mark.slow])]


each = pytest.mark.parametrize(
    ("kinds", "n"),
    [pytest.param(_together(n), n, id=f"together-{n}", marks=_marks(n)) for n in DIMENSIONS]
    + [
        pytest.param((kind,), n, id=f"{kind}-{n}", marks=pytest.mark.slow)
        for kind, asked in SOMETIMES.items()
        for n in DIMENSIONS
        if n not in asked
    ],
)


def _answers(feasible_set: ActionSet, asked: Array) -> dict[str, Array]:
    """Projections of z and y and theirs, a maximiser of g, exits from a point inside, and how far all are outside."""
    _, _, g, direction = asked

    def again(points: Array, _: None) -> tuple[Array, Array]:
        nearest = one_by_one(feasible_set.project)(points)
        return nearest, nearest

    _, (first, second) = jax.lax.scan(again, asked[:2], length=2)
    best = feasible_set.maximise_linear(g)
    origin = 0.5 * (feasible_set.centre() + first[0])  # what lies across the way is zero at the centre of some sets
    towards = jnp.stack([first[1] - origin, direction, jnp.zeros_like(direction)])
    exits = one_by_one(lambda line: feasible_set.exit_distance(origin, line))(towards)
    end = origin + jnp.where(jnp.isfinite(exits[0]), exits[0], 0.0) * towards[0]
    return {
        "nearest": first,
        "again": second,
        "best": best,
        "line": towards[0],
        "exits": exits,
        "outside": jax.vmap(feasible_set.violation)(jnp.stack([*first, best, end])),
        "scale": feasible_set.scale,
    }


def _executed(feasible_set: ActionSet, z: Array) -> dict[str, Array]:
    a = feasible_set.execute(z)
    return {"action": a, "inside": feasible_set.contains(a), "fraction": feasible_set.integrality(a)}


Sets: TypeAlias = dict[str, ActionSet]
Answers: TypeAlias = dict[str, dict[str, Array]]


@jax.jit
def answers(sets: Sets, asked: Array) -> Answers:
    return {kind: one_by_one(lambda s: _answers(s, asked))(batch) for kind, batch in sets.items()}


@jax.jit
def executed(sets: Sets, z: Array) -> Answers:
    return {kind: one_by_one(lambda s: _executed(s, z))(batch) for kind, batch in sets.items()}


@functools.cache
def members(kinds: tuple[str, ...], n: int, dtype: type) -> Sets:
    """All members of every kind as one batch, built by one program."""

    def build() -> Sets:
        return {kind: jax.tree.map(lambda *leaves: jnp.stack(leaves), *KINDS[kind](n)) for kind in kinds}

    sets = jax.jit(build)() if dtype == jnp.float64 else members(kinds, n, jnp.float64)
    return jax.tree.map(lambda leaf: np.asarray(leaf, dtype), sets)


@each
@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_answers(kinds: tuple[str, ...], n: int, data: st.DataObject) -> None:
    """For z, y and g: what defines a projection, a linear maximiser and an exit, within 1e-7 of scale.

    A projection is feasible, idempotent, non-expansive, and <z - a, c - a> <= 0 for the feasible point c. A linear
    maximiser is feasible and no worse than c. The ray to c stays inside at least that long, and ends inside.
    """
    asked = data.draw(npst.arrays(np.float64, (4, n), elements=numbers))
    z, y, g, _ = asked
    for kind, found in jax.tree.map(np.asarray, answers(members(kinds, n, jnp.float64), asked)).items():
        accuracy = 1e-6 if kind == "ball_and_weighted_l1" else 1e-7  # of scale, and the rounding of the inputs
        for k, scale in enumerate(found["scale"]):
            room = accuracy * scale + 1e-14 * max(np.linalg.norm(z), np.linalg.norm(y))
            (a, c), best, exits = found["nearest"][k], found["best"][k], found["exits"][k]
            assert np.all(found["outside"][k] <= np.array([1e-9, 1e-9, 1e-9, 1e-6]) * scale), kind
            assert np.max(np.abs(found["again"][k] - found["nearest"][k])) <= room, kind
            assert np.linalg.norm(a - c) <= np.linalg.norm(z - y) + 2 * room, kind
            assert (z - a) @ (c - a) <= 4 * room * (1 + np.linalg.norm(z - a)), kind
            assert g @ c <= g @ best + 4 * room * (1e-12 + np.linalg.norm(g)), kind
            assert exits[0] >= 1 - 1e-6 or np.linalg.norm(found["line"][k]) < 1e-6, kind
            assert exits[1] >= 0, kind
            assert np.isinf(exits[2]), kind


@each
def test_nan_is_answered_by_nan(kinds: tuple[str, ...], n: int) -> None:
    """Whatever the coordinate: no proposal without a value is executed, no gradient without one is followed."""
    for place in (0, n - 1):
        z = np.full(n, 0.7)
        z[place] = np.nan
        for kind, found in answers(members(kinds, n, jnp.float64), np.stack([z, z, z, np.ones(n)])).items():
            assert np.all(np.any(np.isnan(found["nearest"]), axis=-1)), kind
            assert np.all(np.any(np.isnan(found["best"]), axis=-1)), kind
            assert np.all(np.isnan(found["outside"][:, :3])), kind


in_float32 = pytest.mark.parametrize(
    ("kinds", "n"),
    [pytest.param(_together(n), n, id=f"together-{n}", marks=_marks(n, by_default=n == 50)) for n in DIMENSIONS],
)


@in_float32
@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_execution_in_float32(kinds: tuple[str, ...], n: int, data: st.DataObject) -> None:
    """Feasible, and whole where it must be."""
    z = data.draw(npst.arrays(np.float64, n, elements=numbers))
    for kind, found in executed(members(kinds, n, jnp.float32), jnp.asarray(z, jnp.float32)).items():
        assert np.all(found["inside"]), kind
        assert np.all(np.asarray(found["fraction"]) == 0.0), kind


@in_float32
def test_nan_is_not_executed_in_float32(kinds: tuple[str, ...], n: int) -> None:
    for kind, found in executed(members(kinds, n, jnp.float32), jnp.full(n, jnp.nan, jnp.float32)).items():
        assert np.all(np.isnan(found["action"])), kind
        assert not np.any(found["inside"]), kind
