"""A function of several sets: the same rows, whether sets of one kind are batched or not."""

import jax
import jax.numpy as jnp
import numpy as np

from feasible.sets import Ball, Box
from feasible.solve.alike import each


def test_rows_come_in_the_order_of_the_sets() -> None:
    sets = (Ball(jnp.zeros(2), 1.0), Box(-jnp.ones(2), jnp.ones(2)), Ball(jnp.ones(2), 0.5))
    values = jnp.array([[3.0, 4.0], [5.0, 0.5], [1.0, 3.0]])
    found = each(lambda one, z: one.project(z), sets, values)
    np.testing.assert_allclose(found, [[0.6, 0.8], [1.0, 0.5], [1.0, 1.5]], rtol=1e-12)


def test_sets_of_one_kind_are_one_program() -> None:
    balls = tuple(Ball(jnp.full(2, float(k)), 1.0) for k in range(4))
    traces: list[int] = []

    def counting(ball: Ball, z: jax.Array) -> jax.Array:
        traces.append(1)
        return ball.project(z)

    each(counting, balls, jnp.zeros((4, 2)))
    assert len(traces) == 1
