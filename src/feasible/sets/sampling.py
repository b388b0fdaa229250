"""Random points of a convex set by hit-and-run, for sets without a cheap exact law."""

from collections.abc import Callable
from typing import TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from feasible.sets.base import ActionSet

STEPS_PER_COORDINATE = 8
Chord: TypeAlias = Callable[[Float[Array, " n"], Float[Array, " n"]], tuple[Float[Array, ""], Float[Array, ""]]]


def hit_and_run(feasible_set: ActionSet, key: PRNGKeyArray, chord: Chord | None = None) -> Float[Array, " n"]:
    """8 n steps of hit-and-run from the centre: along the set's random direction, to a uniform point of the chord.

    The chain's law tends to the uniform one from any start; after 8 n steps it is close to uniform for sets whose
    widths the directions know. `chord(point, line)` says how far the line stays in the set, back and ahead; by default
    the set's exit distances do. Cost: 8 n chords and one projection, which takes off rounding.
    """

    def exits(point: Array, line: Array) -> tuple[Array, Array]:
        return feasible_set.exit_distance(point, -line), feasible_set.exit_distance(point, line)

    ends = chord or exits

    def step(_: int, state: tuple[Array, PRNGKeyArray]) -> tuple[Array, PRNGKeyArray]:
        point, key = state
        key, towards, along = jax.random.split(key, 3)
        line = feasible_set.direction(towards)
        back, ahead = ends(point, line)
        bounded = jnp.isfinite(ahead) & jnp.isfinite(back)
        place = jax.random.uniform(along, dtype=point.dtype)
        t = jnp.where(bounded, place * ahead - (1.0 - place) * back, 0.0)
        return point + t * line, key

    steps = STEPS_PER_COORDINATE * feasible_set.dim
    point, _ = jax.lax.fori_loop(0, steps, step, (feasible_set.centre(), key))
    return feasible_set.project(point)


def gaussian(key: PRNGKeyArray, widths: Float[Array, " n"]) -> Float[Array, " n"]:
    """A normal direction scaled by the widths, so that coordinates of width zero never move."""
    return widths * jax.random.normal(key, widths.shape, widths.dtype)
