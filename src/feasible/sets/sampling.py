"""Random points of a convex set by hit-and-run, for sets without a cheap exact law."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from feasible.sets.base import ActionSet

STEPS_PER_COORDINATE = 8


def hit_and_run(
    feasible_set: ActionSet,
    key: PRNGKeyArray,
    direction: Callable[[PRNGKeyArray], Float[Array, " n"]],
) -> Float[Array, " n"]:
    """8 n steps of hit-and-run from the centre: along a random direction, to a uniform point of the chord.

    The chain's law tends to the uniform one from any start; after 8 n steps it is close to uniform for sets that
    are not much longer than wide in the coordinates of `direction`. Cost: 16 n exit distances.
    """

    def step(_: int, state: tuple[Array, PRNGKeyArray]) -> tuple[Array, PRNGKeyArray]:
        point, key = state
        key, towards, along = jax.random.split(key, 3)
        line = direction(towards)
        back = feasible_set.exit_distance(point, -line)
        ahead = feasible_set.exit_distance(point, line)
        chord = jnp.isfinite(ahead) & jnp.isfinite(back)
        place = jax.random.uniform(along, dtype=point.dtype)
        t = jnp.where(chord, place * ahead - (1.0 - place) * back, 0.0)
        return point + t * line, key

    steps = STEPS_PER_COORDINATE * feasible_set.dim
    point, _ = jax.lax.fori_loop(0, steps, step, (feasible_set.centre(), key))
    return feasible_set.project(point)


def gaussian(widths: Float[Array, " n"]) -> Callable[[PRNGKeyArray], Float[Array, " n"]]:
    """Normal directions scaled by the widths, so that coordinates of width zero never move."""
    return lambda key: widths * jax.random.normal(key, widths.shape, widths.dtype)
