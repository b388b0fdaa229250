"""The random problems of every family and the library's answers to them, shared by the tests on one worker."""

import functools
from collections.abc import Callable
from contextlib import nullcontext
from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array
from numpy.typing import NDArray

from feasible.sets import ActionSet, IntegerAllocation
from tests.code_generation import users_code
from tests.sets.families import FAMILIES, Family, Values

Answer = TypeVar("Answer")
COUNT = 2000
PRECISIONS = [jnp.float64, jnp.float32]

# The kernel of intersections takes half a minute to compile for every question. That of `ellipsoid` is the same and is
# asked everything; by default these are asked in float64 alone, and the first, of three parts, not for derivatives.
LONGEST = "weighted_l1_and_ellipsoid"
LONG = (LONGEST, "allocation_and_ball")


def _marks(family: Family, *, long: bool) -> list[pytest.MarkDecorator]:
    """All tests of a family run on one worker, so that its programs are compiled once."""
    group = pytest.mark.xdist_group(family.name)
    return [group, pytest.mark.slow] if long else [group]


each_family = pytest.mark.parametrize(
    "family", [pytest.param(f, id=f.name, marks=_marks(f, long=f.name == LONGEST)) for f in FAMILIES]
)
each_family_in_float32 = pytest.mark.parametrize(
    "family", [pytest.param(f, id=f.name, marks=_marks(f, long=f.name in LONG)) for f in FAMILIES]
)
each_family_and_precision = pytest.mark.parametrize(
    ("family", "dtype"),
    [
        pytest.param(f, d, id=f"{f.name}-{d.__name__}", marks=_marks(f, long=d == jnp.float32 and f.name in LONG))
        for f in FAMILIES
        for d in PRECISIONS
    ],
)


def single(x: NDArray) -> NDArray:
    """Rounded to float32, so that both precisions get the same problems."""
    return x.astype(np.float32).astype(np.float64)


def built(family: Family, values: Values, dtype: type) -> ActionSet:
    """The family's sets with these values, as one batch."""
    return jax.jit(jax.vmap(lambda v: family.build(**v)))({name: jnp.asarray(x, dtype) for name, x in values.items()})


class Problems:
    """A family's random sets and inputs."""

    def __init__(self, family: Family):
        rng = np.random.default_rng(7)
        count, n = min(COUNT, 2 * family.problems), family.description.dim
        self.values = family.draw(rng, count)
        self.sets = built(family, self.values, jnp.float64)
        scale = np.asarray(jax.vmap(lambda s: s.scale)(self.sets))[:, None]
        self.z = rng.normal(size=(count, n)) * scale * rng.choice([0.3, 1, 3, 30], size=(count, 1))
        self.z[0::20] = 0  # the origin
        self.z[1::20] = self.z[1::20, :1]  # exact ties
        self.z = single(self.z)
        self.far = single(self.z * 1e6)
        self.y = single(self.z + rng.normal(size=(count, n)) * scale)
        self.g = rng.normal(size=(count, n))
        self.g[2::20] = 0
        self.g[3::20] = self.g[3::20, :1]
        self.g = single(self.g)
        self.direction = rng.normal(size=(count, n)) * scale


@functools.cache
def problems(family: Family) -> Problems:
    return Problems(family)


def at_points(answer: Callable[[ActionSet, Array], Answer]) -> Callable[[ActionSet, Array], Answer]:
    """What is asked of one set and one point, of many sets with several points each: a program.

    By one vmap over all pairs: loops within two of them take twice as long to trace.
    """

    @jax.jit
    def answers(sets: ActionSet, points: Array) -> Answer:
        count, each, n = points.shape
        repeated = jax.tree.map(lambda leaf: jnp.repeat(leaf, each, axis=0), sets)
        found = jax.vmap(answer)(repeated, points.reshape(count * each, n))
        return jax.tree.map(lambda leaf: leaf.reshape(count, each, *leaf.shape[1:]), found)

    return answers


@at_points
def project(feasible_set: ActionSet, point: Array) -> Array:
    return feasible_set.project(point)


@at_points
def execute(feasible_set: ActionSet, point: Array) -> Array:
    return feasible_set.execute(point)


@jax.jit
@jax.vmap
def best_for(feasible_set: ActionSet, g: Array) -> Array:
    return feasible_set.maximise_linear(g)


@jax.jit
@jax.vmap
def sampled(feasible_set: ActionSet, key: Array) -> Array:
    return feasible_set.sample(key)


@jax.jit
@jax.vmap
def judged(feasible_set: ActionSet, points: dict[str, Array], end: Array) -> dict[str, Array]:
    """Where the ray from the centre through `end` leaves the set, and how far all points are outside."""
    centre = feasible_set.centre()
    line = end - centre
    reach = feasible_set.exit_distance(centre, line)
    reach = jnp.where(jnp.isfinite(reach), reach, 1.0)
    points = points | {"centre": centre, "exit": centre + reach * line}
    return points | {
        "violations": jax.vmap(feasible_set.violation)(jnp.stack(list(points.values()))),
        "beyond": feasible_set.violation(centre + 1.01 * reach * line),
        "line": line,
        "scale": feasible_set.scale,
        "diameter": feasible_set.diameter(),
    }


class Case:
    """The library's answers to a family's problems. Every kernel is compiled as seldom as the questions allow."""

    def __init__(self, family: Family, dtype: type):
        """In float32 by the code that users get: rounding depends on it. Samples are made of what is asked of it."""
        code = users_code if dtype == jnp.float32 else nullcontext
        asked = problems(family)
        self.values, self.z, self.y, self.g = asked.values, asked.z, asked.y, asked.g
        with code():
            self.sets = asked.sets if dtype == jnp.float64 else built(family, self.values, dtype)
        sample = sampled(self.sets, jax.random.split(jax.random.key(0), len(self.z)))
        with code():
            self.found = self._found(asked, sample, dtype)
        self.scale = self.found["scale"]
        self.eps = float(jnp.finfo(dtype).eps)
        # What the project promises: 1e-7 of scale in float64 (1e-6 for intersections), 1e-4 in float32.
        self.accuracy = family.accuracy * self.scale if dtype == jnp.float64 else 1e-4 * self.scale
        self.accuracy = self.accuracy + 8 * self.eps * np.linalg.norm(self.z, axis=1)

    def _found(self, asked: Problems, sample: Array, dtype: type) -> dict[str, NDArray]:
        z, far, y, g, direction = (
            jnp.asarray(x, dtype) for x in (asked.z, asked.far, asked.y, asked.g, asked.direction)
        )
        centre = jax.jit(jax.vmap(lambda s: s.centre()))(self.sets)
        proposed = jnp.stack([z, far, y, centre + direction], axis=1)
        projected = project(self.sets, proposed)
        again = project(self.sets, projected)
        # All other sets execute the projection, which the property tests ask of each kind of set.
        executed = execute(self.sets, proposed) if isinstance(self.sets, IntegerAllocation) else projected
        points = {"projected": projected[:, 0], "other": projected[:, 2], "again": again[:, 0]}
        points |= {"executed": executed[:, 0], "far": executed[:, 1], "best": best_for(self.sets, g), "sample": sample}
        found = judged(self.sets, points, projected[:, 3])
        return {name: np.asarray(value, np.float64) for name, value in found.items()}


@functools.cache
def case(family: Family, dtype: type) -> Case:
    return Case(family, dtype)
