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
from tests.code_generation import code_at_a_prompt, users_code
from tests.one_by_one import one_by_one
from tests.sets.families import FAMILIES, Family, Values

Answer = TypeVar("Answer")
LARGE = 24
PRECISIONS = [jnp.float64, jnp.float32]

# Which families are asked by default: every kernel, and every kind of set, but not each kind at each size.
# Those left to the long tests are made of what others ask: `weighted_l1_and_ellipsoid` has the kernel of `ellipsoid`,
# which tests/solve/test_splitting.py asks about three parts; `AllocationAtMost_40` has that of `weighted_l1_24`,
# `polytope_0_equalities` that of `polytope_1_equalities`, and `Allocation_5` is the hull of `IntegerAllocation_5`.
# `Allocation_40` has that hull and the kernel of `weighted_l1_24`, `allocation_and_ball` the kernel of `ellipsoid`.
SELDOM = ("weighted_l1_and_ellipsoid", "allocation_and_ball", "polytope_0_equalities")
SELDOM += ("Allocation_5", "Allocation_40", "AllocationAtMost_40")
# In float32 one family for each kernel, but for those of polytopes, of intersections and of many coordinates:
# tests/solve/test_qp.py, test_lp.py, test_splitting.py and test_breakpoints.py ask these so by themselves.
ON_A_BUDGET = ("positive_power", "half_space", "AllocationAtMost_5")
LONG = ("polytope_1_equalities", "weighted_l1_24", *ON_A_BUDGET)


def _marks(family: Family, *, long: bool) -> list[pytest.MarkDecorator]:
    """All tests of a family run on one worker, so that its programs are compiled once."""
    group = pytest.mark.xdist_group(family.name)
    return [group, pytest.mark.slow] if long or family.name in SELDOM else [group]


each_family = pytest.mark.parametrize(
    "family", [pytest.param(f, id=f.name, marks=_marks(f, long=False)) for f in FAMILIES]
)
each_kernel = pytest.mark.parametrize(
    "family", [pytest.param(f, id=f.name, marks=_marks(f, long=f.name in ON_A_BUDGET)) for f in FAMILIES]
)
each_family_in_float32 = pytest.mark.parametrize(
    "family", [pytest.param(f, id=f.name, marks=_marks(f, long=f.name in LONG)) for f in FAMILIES]
)
each_family_and_precision = pytest.mark.parametrize(
    ("family", "dtype"),
    [
        pytest.param(
            f,
            d,
            id=f"{f.name}-{d.__name__}",
            marks=_marks(f, long=d == jnp.float32 and f.name in (*LONG, "ellipsoid")),
        )
        for f in FAMILIES
        for d in PRECISIONS
    ],
)


def single(x: NDArray) -> NDArray:
    """Rounded to float32, so that both precisions get the same problems."""
    return x.astype(np.float32).astype(np.float64)


def asked_of_each(dim: int) -> Callable[[Callable[..., Answer]], Callable[..., Answer]]:
    """Asks one set after the other, but those of many coordinates at once: these answer long, and have no loops."""
    return one_by_one if dim < LARGE else jax.vmap


def built(family: Family, values: Values, dtype: type) -> tuple[ActionSet, NDArray, NDArray]:
    """The family's sets with these values, as one batch, with their scales and centres."""

    def build(one: Values) -> tuple[ActionSet, Array, Array]:
        made = family.build(**one)
        return made, made.scale, made.centre()

    given = {name: np.asarray(x, dtype) for name, x in values.items()}
    return jax.tree.map(np.asarray, jax.jit(asked_of_each(family.description.dim)(build))(given))


class Problems:
    """A family's random sets and inputs."""

    def __init__(self, family: Family):
        rng = np.random.default_rng(7)
        count, n = family.problems, family.description.dim
        self.values = family.draw(rng, count)
        self.sets, scale, self.centre = built(family, self.values, jnp.float64)
        scale = scale[:, None]
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


def at_points(answer: Callable[[ActionSet, Array], Answer]) -> Callable[[ActionSet, NDArray], Answer]:
    """What is asked of one set and one point, of many sets with several points each: a program."""

    @jax.jit
    @functools.wraps(answer)
    def answers(sets: ActionSet, points: NDArray) -> Answer:
        count, each, n = points.shape
        repeated = jax.tree.map(lambda leaf: jnp.repeat(leaf, each, axis=0), sets)
        found = asked_of_each(n)(answer)(repeated, points.reshape(count * each, n))
        return jax.tree.map(lambda leaf: leaf.reshape(count, each, *leaf.shape[1:]), found)

    return answers


def of_sets(answer: Callable[..., Answer]) -> Callable[..., Answer]:
    """What is asked of one set, of many sets: a program."""

    @jax.jit
    @functools.wraps(answer)
    def answers(sets: ActionSet, *asked: Array | dict[str, Array]) -> Answer:
        return asked_of_each(sets.dim)(answer)(sets, *asked)

    return answers


@at_points
def project(feasible_set: ActionSet, point: Array) -> Array:
    return feasible_set.project(point)


@at_points
def execute(feasible_set: ActionSet, point: Array) -> Array:
    return feasible_set.execute(point)


@of_sets
def best_for(feasible_set: ActionSet, g: Array) -> Array:
    return feasible_set.maximise_linear(g)


@of_sets
def sampled(feasible_set: ActionSet, key: Array) -> Array:
    return feasible_set.sample(key)


@of_sets
def judged(feasible_set: ActionSet, points: dict[str, Array], end: Array) -> dict[str, Array]:
    """Where the ray from the centre through `end` leaves the set, and how far all points are outside."""
    centre = points["centre"]
    line = end - centre
    reach = feasible_set.exit_distance(centre, line)
    reach = jnp.where(jnp.isfinite(reach), reach, 1.0)
    points = points | {"exit": centre + reach * line}
    beyond = centre + 1.01 * reach * line
    outside = jax.vmap(feasible_set.violation)(jnp.stack([*points.values(), beyond]))
    return points | {
        "violations": outside[:-1],
        "beyond": outside[-1],
        "line": line,
        "scale": feasible_set.scale,
        "diameter": feasible_set.diameter(),
    }


class Case:
    """The library's answers to a family's problems. Every kernel is compiled as seldom as the questions allow."""

    def __init__(self, family: Family, dtype: type):
        """In float32 by the code that users get: rounding depends on it. Samples are made of what is asked of it.

        Projections are compiled as in a user's program, everything else as at a prompt.
        """
        programs, prompt = (users_code, code_at_a_prompt) if dtype == jnp.float32 else (nullcontext, nullcontext)
        asked = problems(family)
        self.values, self.z, self.y, self.g = asked.values, asked.z, asked.y, asked.g
        self.sets, centre = asked.sets, asked.centre
        if dtype != jnp.float64:
            with prompt():
                self.sets, _, centre = built(family, self.values, dtype)
        sample = sampled(self.sets, jax.random.split(jax.random.key(0), len(self.z)))
        with programs():
            projected, again, executed = self._projected(asked, centre)
        with prompt():
            points = {"projected": projected[:, 0], "other": projected[:, 2], "again": again[:, 0], "centre": centre}
            points |= {"executed": executed[:, 0], "far": executed[:, 1], "sample": sample}
            points |= {"best": best_for(self.sets, asked.g.astype(dtype))}
            found = judged(self.sets, points, projected[:, 3])
        self.found = {name: np.asarray(value, np.float64) for name, value in found.items()}
        self.scale = self.found["scale"]
        self.eps = float(jnp.finfo(dtype).eps)
        # What the project promises: 1e-7 of scale in float64 (1e-6 for intersections), 1e-4 in float32.
        self.accuracy = family.accuracy * self.scale if dtype == jnp.float64 else 1e-4 * self.scale
        self.accuracy = self.accuracy + 8 * self.eps * np.linalg.norm(self.z, axis=1)

    def _projected(self, asked: Problems, centre: NDArray) -> tuple[NDArray, NDArray, NDArray]:
        """Projections, theirs, and what is executed."""
        places = (asked.z, asked.far, asked.y, centre + asked.direction.astype(centre.dtype))
        proposed = np.stack([place.astype(centre.dtype) for place in places], axis=1)
        projected = np.asarray(project(self.sets, proposed))
        again = np.asarray(project(self.sets, projected))
        # All other sets execute the projection, which the property tests ask of each kind of set.
        executed = np.asarray(execute(self.sets, proposed)) if isinstance(self.sets, IntegerAllocation) else projected
        return projected, again, executed


@functools.cache
def case(family: Family, dtype: type) -> Case:
    return Case(family, dtype)
