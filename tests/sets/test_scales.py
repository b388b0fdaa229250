"""Answers do not depend on the unit of the actions: the projection on s C of s z is s times that of z on C."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array

from feasible.sets import ActionSet
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
