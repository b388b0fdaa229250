"""The projections that are compared: the paper's four feasible sets and an intersection, as plain numbers.

Every solver reads the same `Problem` and writes it in its own words, the way its users do.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

Floats = Float[np.ndarray, "..."]


@dataclass(frozen=True)
class Problem:
    """argmin ||a - z|| over all a with, where the field is given,

    low <= a <= high,   A a <= b,   sum a = total,   ||factor a|| <= radius,   sum |w a| <= budget;

    the weights w are the state: another vector for every point. Proposals z are uniform on -reach .. reach around
    the middle `around`, so that most of them lie outside.
    """

    name: str
    title: str
    kind: str
    dim: int
    around: float
    reach: float
    low: float | None = None
    high: float | None = None
    A: Floats | None = None
    b: Floats | None = None
    total: float | None = None
    factor: Floats | None = None
    radius: float | None = None
    budget: float | None = None

    @property
    def weighted(self) -> bool:
        """Whether the set depends on the state."""
        return self.budget is not None

    @property
    def scale(self) -> float:
        """Largest absolute coordinate that the set allows: the unit of errors."""
        return self.high if self.high is not None else (self.radius or 1.0)


@dataclass(frozen=True)
class Points:
    """Proposals z, one a row, and the weights of each where the set depends on the state."""

    z: Floats
    weights: Floats | None

    def first(self, count: int) -> "Points":
        return Points(self.z[:count], None if self.weights is None else self.weights[:count])

    def __len__(self) -> int:
        return len(self.z)


def proposals(problem: Problem, count: int) -> Points:
    """Random points of a problem, in float64; those of a smaller count are the first of a larger one."""
    z = problem.around + np.random.default_rng(1).uniform(-problem.reach, problem.reach, (count, problem.dim))
    if not problem.weighted:
        return Points(z, None)
    # Joint velocities of a running HalfCheetah are about this large.
    return Points(z, 10.0 * np.random.default_rng(2).normal(size=(count, problem.dim)))


def problems() -> dict[str, Problem]:
    """The rows of the table by name."""
    from feasible.envs.network.topology import NSFNET, link_rows  # loads Numba: only where it is needed

    rows, capacities, _ = link_rows(NSFNET)
    every = (
        Problem(
            name="reacher",
            title="Reacher\nball, 2 dimensions",
            kind="closed form",
            dim=2,
            around=0.0,
            reach=1.0,
            factor=np.eye(2),
            radius=0.05**0.5,
        ),
        halfcheetah(),
        Problem(
            name="bss-5",
            title="BSS-5\nallocation, 5 dimensions",
            kind="closed form",
            dim=5,
            around=30.0,
            reach=25.0,
            low=10.0,
            high=35.0,
            total=150.0,
        ),
        Problem(
            name="nsfnet",
            title="NSFNET\npolytope of 8 links, 9 dimensions",
            kind="polytope",
            dim=9,
            around=50.0,
            reach=50.0,
            low=0.0,
            high=50.0,
            A=rows,
            b=capacities,
        ),
        Problem(
            name="intersection",
            title="intersection, weights by state\nweighted L1, ellipsoid, box, 6 dim.",
            kind="intersection",
            dim=6,
            around=0.0,
            reach=2.0,
            low=-1.0,
            high=1.0,
            factor=_ellipsoid_factor(6),
            radius=1.0,
            budget=20.0,
        ),
    )
    return {problem.name: problem for problem in every}


def halfcheetah() -> Problem:
    """The power limit of HalfCheetah: sum_i |v_i a_i| <= 20 in the unit box, v the joints' velocities."""
    return Problem(
        name="halfcheetah",
        title="HalfCheetah, weights by state\nweighted L1 and box, 6 dimensions",
        kind="closed form",
        dim=6,
        around=0.0,
        reach=2.0,
        low=-1.0,
        high=1.0,
        budget=20.0,
    )


def _ellipsoid_factor(dim: int) -> Float[np.ndarray, "n n"]:
    """Upper factor R of a fixed well-conditioned Q = R'R, so that a'Q a <= level is ||R a|| <= sqrt(level)."""
    mix = np.random.default_rng(3).normal(size=(dim, dim))
    return np.linalg.cholesky(mix @ mix.T / dim + 0.2 * np.eye(dim)).T
