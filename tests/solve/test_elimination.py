"""Small dense systems against NumPy's solver."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from feasible.solve.elimination import FEW, solve_dense


@pytest.mark.parametrize("unknowns", [1, 7, FEW + 1])
def test_answers_are_numpy_s(unknowns: int) -> None:
    rng = np.random.default_rng(unknowns)
    matrices, right = rng.normal(size=(50, unknowns, unknowns)), rng.normal(size=(50, unknowns))
    matrices[0] = np.eye(unknowns)[::-1]  # needs a pivot in every step
    expected = np.linalg.solve(matrices, right[..., None])[..., 0]
    found = jax.vmap(solve_dense)(jnp.asarray(matrices), jnp.asarray(right))
    bound = 1e-14 * unknowns * np.linalg.cond(matrices) * np.linalg.norm(expected, axis=1)
    assert np.all(np.linalg.norm(found - expected, axis=1) <= bound + 1e-15)


def test_a_singular_system_has_no_finite_answer() -> None:
    matrix = jnp.array([[1.0, 2.0], [2.0, 4.0]])
    assert not np.any(np.isfinite(solve_dense(matrix, jnp.array([1.0, 0.0]))))
