"""Answers do not depend on the unit of the actions: the projection on s C of s z is s times that of z on C.

Nor do violations depend on that of a limit: 2 watts over a budget are as infeasible in milliwatts as in megawatts.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array

from feasible.errors import EmptySetError
from feasible.sets import (
    ActionSet,
    Cone,
    ConePolytope,
    EllipsoidBox,
    HalfSpaceBox,
    Polytope,
    PositivePowerBox,
    WeightedL1Box,
    WeightedL1EllipsoidBox,
)
from tests.code_generation import users_code
from tests.sets.cases import case, each_family, problems
from tests.sets.families import Family

# Powers of the unit in the fields of sets; 1 for all others.
POWERS = {"weights": 0, "A": 0, "A_eq": 0, "Q": 0, "eigenvalues": 0, "eigenvectors": 0, "level": 2}
# Powers of 2, so that the scaled set is exactly the same: about 1e-8 and 1e8.
UNITS = (2.0**-27, 2.0**27)


def scaled(sets: ActionSet, unit: float, dtype: type) -> ActionSet:
    def leaf(path: tuple, value: Array) -> Array:
        return (value * unit ** POWERS.get(path[-1].name, 1)).astype(dtype)

    return jax.tree_util.tree_map_with_path(leaf, sets)


@jax.jit
@jax.vmap
def asked(feasible_set: ActionSet, points: Array) -> tuple[Array, Array]:
    a = jax.vmap(feasible_set.project)(points)
    return a, jax.vmap(feasible_set.violation)(a)


@pytest.mark.slow
@each_family
def test_no_unit_is_special(family: Family) -> None:
    """In float64 within the accuracy of the unscaled answer, which is the reference's; in float32 within 1e-5 of scale.

    Also for inputs at 1e6 of scale, of which an answer knows no more than their rounding.
    """
    c, given = case(family, jnp.float64), problems(family)
    if family.name.startswith("Integer"):
        return
    points = np.stack([given.z, given.far], axis=1)
    expected, _ = asked(c.sets, points)
    rounding = np.linalg.norm(points, axis=2)
    for unit in UNITS:
        for dtype, accuracy in ((jnp.float64, family.accuracy), (jnp.float32, 1e-5)):
            with users_code():
                a, outside = asked(scaled(c.sets, unit, dtype), jnp.asarray(points * unit, dtype))
            allowed = accuracy * c.scale[:, None] + 32 * float(jnp.finfo(dtype).eps) * rounding
            apart = np.max(np.abs(np.asarray(a, np.float64) / unit - np.asarray(expected)), axis=2)
            assert np.all(apart <= allowed), (unit, dtype, np.max(apart / allowed))
            assert np.all(np.asarray(outside) <= 1e-5 * unit * c.scale[:, None])


@each_family
def test_violations_are_in_the_unit_of_the_actions(family: Family) -> None:
    c, given = case(family, jnp.float64), problems(family)
    violations = jax.jit(jax.vmap(lambda one, z: one.violation(z)))
    expected = np.asarray(violations(c.sets, jnp.asarray(given.z)))
    assert np.max(expected) > 0
    for unit in UNITS:
        found = violations(scaled(c.sets, unit, jnp.float64), jnp.asarray(given.z * unit))
        np.testing.assert_allclose(np.asarray(found) / unit, expected, rtol=1e-9, atol=1e-12)


def limits(unit: float) -> dict[str, ActionSet]:
    """Sets of two actions whose limits, but for bounds of 1, are said in some unit: the same sets whatever it is."""
    row = unit * jnp.array([[3.0, 4.0]])
    tilted = jnp.array([[1.0, 0.5], [0.5, 1.0]])
    box = {"low": -jnp.ones(2), "high": jnp.ones(2)}
    return {
        "weighted l1": WeightedL1Box(row[0], 2 * unit, jnp.ones(2)),
        "positive power": PositivePowerBox(row[0], 2 * unit, jnp.ones(2)),
        "half-space": HalfSpaceBox(row[0], 2 * unit, **box),
        "polytope": Polytope(row, [2 * unit], **box),
        "cone": ConePolytope(Polytope([[0.0, 0.0]], [1.0], **box), [Cone(unit * jnp.eye(2), [0, 0], [0, 0], unit / 2)]),
        "ellipsoid": EllipsoidBox(unit * jnp.eye(2), unit / 4, jnp.ones(2)),
        "both": WeightedL1EllipsoidBox(row[0], 2 * unit, unit * jnp.ones(2), unit / 4, jnp.ones(2)),
        "intersection": WeightedL1Box(row[0], 2 * unit, jnp.ones(2))
        & EllipsoidBox(unit * tilted, unit / 4, jnp.ones(2)),
    }


@pytest.mark.parametrize("unit", [1e-9, 1e-3, 1e3, 1e9])
def test_a_limit_may_be_in_any_unit(unit: float) -> None:
    """Twice as much as allowed is never feasible."""
    for name, feasible_set in limits(unit).items():
        inside, outside = jnp.array([0.2, 0.2]), jnp.array([0.6, 0.6])
        assert feasible_set.contains(inside), name
        assert not feasible_set.contains(outside), name


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_a_set_is_empty_in_any_unit(unit: float) -> None:
    """3 a + 4 b >= -7 for |a|, |b| <= 1, so that -8 is out of reach."""
    with pytest.raises(EmptySetError):
        HalfSpaceBox(unit * jnp.array([3.0, 4.0]), -8 * unit, low=-jnp.ones(2), high=jnp.ones(2))


@pytest.mark.parametrize("times", [1.01, 2.0, 1e3])
def test_the_violation_of_an_ellipsoid_is_at_most_the_distance(times: float) -> None:
    """Of a disc of radius 1e-3, whose energy is 3 times the squared length, so many radii out; and not far below it."""
    disc, radius = EllipsoidBox(3 * jnp.eye(2), 3e-6, jnp.full(2, 10.0)), 1e-3
    distance, violation = (times - 1) * radius, float(disc.violation(jnp.array([0.6, 0.8]) * times * radius))
    assert distance / 2 < violation <= distance * (1 + 1e-9)
