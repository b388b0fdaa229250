"""The projections that are compared: the paper's feasible sets, the field's and an intersection, as plain numbers.

Every solver reads the same `Problem` and writes it in its own words, the way its users do.
"""

import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Literal

import numpy as np
from jaxtyping import Float

Floats = Float[np.ndarray, "..."]
# What a coordinate draws on the budget, x = w a: |x|, max(x, 0) or x itself.
Load = Literal["absolute", "positive", "signed"]


@dataclass(frozen=True)
class Problem:
    """argmin ||a - z|| over all a with, where the field is given,

    low <= a <= high,   A a <= b,   sum a = total,   ||factor a|| <= radius,   sum load(w a) <= budget;

    the weights w are the state: another vector for every point. Where `swings` is set, the factor is diag(s), and its
    sines s are of the state, too. Proposals z are uniform on -reach .. reach around the middle `around`, so that most
    of them lie outside.
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
    load: Load = "absolute"
    swings: bool = False
    # Coordinates that the budget reads, all of them where nothing is said; size of the weights.
    reads: tuple[int, ...] | None = None
    speed: float = 10.0

    @property
    def curved(self) -> bool:
        """Whether the set has a boundary that is no plane."""
        return self.radius is not None

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
    """Proposals z, one a row, with weights and sines for each where the set depends on the state."""

    z: Floats
    weights: Floats | None
    sines: Floats | None = None

    def first(self, count: int) -> "Points":
        return Points(self.z[:count], *(None if part is None else part[:count] for part in (self.weights, self.sines)))

    @property
    def state(self) -> list[Floats]:
        """The arrays that depend on the state, weights first."""
        return [part for part in (self.weights, self.sines) if part is not None]

    def __len__(self) -> int:
        return len(self.z)


def proposals(problem: Problem, count: int) -> Points:
    """Random points of a problem, in float64; those of a smaller count are the first of a larger one."""
    z = problem.around + np.random.default_rng(1).uniform(-problem.reach, problem.reach, (count, problem.dim))
    if not problem.weighted:
        return Points(z, None)
    weights = problem.speed * np.random.default_rng(2).normal(size=(count, problem.dim))
    if problem.reads is not None:
        weights[:, [i for i in range(problem.dim) if i not in problem.reads]] = 0.0
    if not problem.swings:
        return Points(z, weights)
    return Points(z, weights, np.sin(np.random.default_rng(4).uniform(-1.5, 1.5, (count, problem.dim))))


def problems() -> dict[str, Problem]:
    """The rows of the table by name."""
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
        *_networks(),
        Problem(
            name="walker-power",
            title="Walker, weights by state\npositive power and box, 6 dimensions",
            kind="closed form",
            dim=6,
            around=0.0,
            reach=2.0,
            low=-1.0,
            high=1.0,
            budget=10.0,
            load="positive",
            speed=5.0,
        ),
        Problem(
            name="halfcheetah-ma",
            title="HalfCheetah's thighs, weights by state\nhalf-space and box, 6 dimensions",
            kind="closed form",
            dim=6,
            around=0.0,
            reach=2.0,
            low=-1.0,
            high=1.0,
            budget=5.0,
            load="signed",
            reads=(0, 3),
        ),
        Problem(
            name="hopper-os",
            title="Hopper, weights and angles by state\nweighted L1, ellipsoid, box, 3 dimensions",
            kind="closed form",
            dim=3,
            around=0.0,
            reach=2.0,
            low=-1.0,
            high=1.0,
            radius=0.1**0.5,
            budget=10.0,
            swings=True,
            speed=5.0,
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


def _networks() -> list[Problem]:
    """NSFNET's rates over 9 paths and over 20."""
    networks = _topologies()
    found = []
    for name, topology in (("nsfnet", networks.NSFNET), ("nsfnet-20", networks.NSFNET_20)):
        rows, capacities, _ = networks.link_rows(topology)
        found.append(
            Problem(
                name=name,
                title=f"{name.upper()}\npolytope of {len(rows)} links, {rows.shape[1]} dimensions",
                kind="polytope",
                dim=rows.shape[1],
                around=50.0,
                reach=50.0,
                low=0.0,
                high=50.0,
                A=rows,
                b=capacities,
            )
        )
    return found


def _topologies() -> ModuleType:
    """`feasible.envs.network.topology` by itself: its package wants Numba, which a machine for arrays may lack."""
    import feasible.envs

    place = Path(feasible.envs.__path__[0]) / "network" / "topology.py"
    spec = importlib.util.spec_from_file_location("benchmarks.topology", place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look up their own names
    spec.loader.exec_module(module)
    return module


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
