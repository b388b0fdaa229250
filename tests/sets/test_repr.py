"""Sets say what they are: the numbers they were made of, as far as these are few and known."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from feasible import sets


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: sets.Ball([0.0, 0.5], 1.0), "Ball(middle=[0. , 0.5], radius=1.)"),
        (
            lambda: sets.Box([0.0], [2.0]) & sets.Ball([0.0], 0.3),
            "BallBox(middle=[0.], radius=0.3, low=[0.], high=[2.])",
        ),
        (
            lambda: sets.Ball([0.0], 1.0) & sets.Ball([0.5], 1.0),
            "Intersection(parts=(Ball(middle=[0.], radius=1.), Ball(",
        ),
        (
            lambda: sets.EllipsoidBox(np.eye(2), 1.0, [1.0, 2.0]),
            "EllipsoidBox(Q=[[1., 0.], [0., 1.]], level=1., bound=[1., 2.])",
        ),
        (lambda: sets.WeightedL1Box(np.ones(20), 20.0, 1.0), "WeightedL1Box(weights=f"),
    ],
    ids=["Ball", "BallBox", "Intersection", "EllipsoidBox", "WeightedL1Box"],
)
def test_numbers_are_shown(make: Callable[[], sets.ActionSet], said: str) -> None:
    found = repr(make())
    assert found.startswith(said)
    assert "\n" not in found


def test_what_is_not_known_yet_is_shown_by_its_shape() -> None:
    found = []

    def look(centre: jax.Array) -> jax.Array:
        found.append(repr(sets.Ball(centre, 1.0)))
        return centre

    jax.jit(look)(jnp.zeros(2, jnp.float32))
    jax.vmap(look)(jnp.zeros((3, 2), jnp.float32))
    assert all(text.startswith("Ball(middle=f32[2], radius=") for text in found)
