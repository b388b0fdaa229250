"""Executed points are feasible within 1e-5 of scale in float32: always, in all of a million random inputs a set."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.sets.cases import each_family
from tests.sets.families import Family

MILLION = 1_000_000
CHUNK = 20_000


@pytest.mark.slow
@each_family
def test_a_million_executions_are_feasible(family: Family) -> None:
    rng = np.random.default_rng(17)

    @jax.jit
    @jax.vmap
    def excess(values: dict[str, jax.Array], z: jax.Array) -> jax.Array:
        feasible_set = family.build(**values)
        # Not divided by the scale, which is zero for a set that is the origin alone.
        return feasible_set.violation(feasible_set.execute(z * feasible_set.scale)) - 1e-5 * feasible_set.scale

    for _ in range(MILLION // CHUNK):
        values = {name: jnp.asarray(v, jnp.float32) for name, v in family.draw(rng, CHUNK).items()}
        sizes = 10.0 ** rng.uniform(-3, 6, size=(CHUNK, 1))
        z = jnp.asarray(rng.normal(size=(CHUNK, family.description.dim)) * sizes, jnp.float32)
        assert np.all(np.asarray(excess(values, z)) <= 0)
