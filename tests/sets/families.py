"""Random families of every set, degenerate members included, each also described to the reference solvers.

Numbers are multiples of 1/64, so that the float32 set and the float64 reference are the same set.
"""

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import cvxpy as cp
import numpy as np
from numpy.typing import NDArray

from feasible.sets import (
    ActionSet,
    Allocation,
    AllocationAtMost,
    Ball,
    BallBox,
    Box,
    EllipsoidBox,
    HalfSpaceBox,
    IntegerAllocation,
    Polytope,
    PositivePowerBox,
    TurnoverAllocation,
    WeightedL1Box,
)
from tests.reference import Description

Values = Mapping[str, NDArray]


@dataclass(frozen=True, eq=False)
class Family:
    name: str
    build: Callable[..., ActionSet]
    draw: Callable[[np.random.Generator, int], Values]
    description: Description
    problems: int = 1000  # how many the reference solves when there is time
    accuracy: float = 1e-7  # of scale, in float64


def coarse(rng: np.random.Generator, *shape: int, low: float = 0.0, high: float = 1.0) -> NDArray:
    return np.round(rng.uniform(low, high, shape) * 64) / 64


def sometimes(rng: np.random.Generator, share: float, *shape: int) -> NDArray:
    return (rng.random(shape) < share).astype(float)


def box_rows(low: NDArray, high: NDArray) -> tuple[NDArray, NDArray]:
    eye = np.eye(len(low))
    return np.vstack([eye, -eye]), np.concatenate([high, -low])


def no_equalities(n: int) -> tuple[NDArray, NDArray]:
    return np.zeros((0, n)), np.zeros(0)


def _box(n: int = 4) -> Family:
    def draw(rng: np.random.Generator, count: int) -> Values:
        low = coarse(rng, count, n, low=-2, high=1)
        return {"low": low, "high": low + coarse(rng, count, n) * sometimes(rng, 0.8, count, n)}

    return Family(
        "box",
        Box,
        draw,
        Description(
            n,
            {"low": (n,), "high": (n,)},
            lambda x, p: [x >= p["low"], x <= p["high"]],
            lambda v: (*box_rows(v["low"], v["high"]), *no_equalities(n)),
        ),
    )


def _ball(n: int = 3) -> Family:
    def draw(rng: np.random.Generator, count: int) -> Values:
        return {
            "centre": coarse(rng, count, n, low=-2, high=2),
            "radius": coarse(rng, count) * sometimes(rng, 0.9, count),
        }

    return Family(
        "ball",
        Ball,
        draw,
        Description(
            n,
            {"centre": (n,), "radius": ()},
            lambda x, p: [cp.norm(x - p["centre"]) <= p["radius"]],
            lambda v: (*box_rows(v["centre"] - v["radius"], v["centre"] + v["radius"]), *no_equalities(n)),
            lambda v: [(np.eye(n), v["centre"], float(v["radius"] ** 2))],
        ),
        problems=300,
    )


def _budget(n: int) -> Callable[[np.random.Generator, int], Values]:
    def draw(rng: np.random.Generator, count: int) -> Values:
        return {
            "weights": coarse(rng, count, n, low=-10, high=10) * sometimes(rng, 0.8, count, n),
            "budget": coarse(rng, count, high=n) * sometimes(rng, 0.9, count),
            "bound": coarse(rng, count, n) * sometimes(rng, 0.9, count, n),
        }

    return draw


def _budget_rows(v: Values, both_sides: bool) -> tuple[NDArray, NDArray, NDArray, NDArray]:
    """Over (a, t): t_i >= w_i a_i (and >= -w_i a_i), t >= 0, sum t <= budget."""
    n = len(v["weights"])
    diagonal, eye, none = np.diag(v["weights"]), np.eye(n), np.zeros((n, n))
    G = [np.hstack([eye, none]), np.hstack([-eye, none]), np.hstack([diagonal, -eye]), np.hstack([none, -eye])]
    h = [v["bound"], v["bound"], np.zeros(n), np.zeros(n)]
    if both_sides:
        G.append(np.hstack([-diagonal, -eye]))
        h.append(np.zeros(n))
    G.append(np.concatenate([np.zeros(n), np.ones(n)])[None])
    h.append(np.atleast_1d(v["budget"]))
    return np.vstack(G), np.concatenate(h), *no_equalities(2 * n)


def _weighted_l1(n: int = 6, problems: int = 1000) -> Family:
    return Family(
        f"weighted_l1_{n}",
        WeightedL1Box,
        _budget(n),
        Description(
            n,
            {"weights": (n,), "budget": (), "bound": (n,)},
            lambda x, p: [cp.sum(cp.abs(cp.multiply(p["weights"], x))) <= p["budget"], cp.abs(x) <= p["bound"]],
            lambda v: _budget_rows(v, both_sides=True),
        ),
        problems,
    )


def _positive_power(n: int = 6) -> Family:
    return Family(
        "positive_power",
        PositivePowerBox,
        _budget(n),
        Description(
            n,
            {"weights": (n,), "budget": (), "bound": (n,)},
            lambda x, p: [cp.sum(cp.pos(cp.multiply(p["weights"], x))) <= p["budget"], cp.abs(x) <= p["bound"]],
            lambda v: _budget_rows(v, both_sides=False),
        ),
    )


def _shares(integer: bool, n: int) -> Callable[[np.random.Generator, int], Values]:
    def draw(rng: np.random.Generator, count: int) -> Values:
        low = coarse(rng, count, n, high=10) * sometimes(rng, 0.7, count, 1)
        high = low + coarse(rng, count, n, high=20) * sometimes(rng, 0.9, count, n)
        if integer:
            low, high = np.floor(low), np.ceil(high)
        total = low.sum(1) + rng.choice([0, 0.25, 0.5, 1], size=count) * (high - low).sum(1)
        return {"total": np.round(total) if integer else total, "low": low, "high": high}

    return draw


def _allocation(build: Callable[..., ActionSet], n: int, *, integer: bool = False, problems: int = 1000) -> Family:
    equality = build is not AllocationAtMost

    def rows(v: Values) -> tuple[NDArray, NDArray, NDArray, NDArray]:
        G, h = box_rows(v["low"], v["high"])
        ones, total = np.ones((1, n)), np.atleast_1d(v["total"])
        return (G, h, ones, total) if equality else (np.vstack([G, ones]), np.append(h, total), *no_equalities(n))

    return Family(
        f"{build.__name__}_{n}",
        build,
        _shares(integer, n),
        Description(
            n,
            {"total": (), "low": (n,), "high": (n,)},
            lambda x, p: [
                x >= p["low"],
                x <= p["high"],
                cp.sum(x) == p["total"] if equality else cp.sum(x) <= p["total"],
            ],
            rows,
        ),
        problems,
    )


def _half_space(n: int = 6) -> Family:
    def draw(rng: np.random.Generator, count: int) -> Values:
        weights = coarse(rng, count, n, low=-4, high=4) * sometimes(rng, 0.8, count, n)
        low = coarse(rng, count, n, low=-2, high=1)
        high = low + coarse(rng, count, n, high=2) * sometimes(rng, 0.85, count, n)
        least, most = (np.minimum(weights * low, weights * high), np.maximum(weights * low, weights * high))
        share = rng.choice([0, 0.25, 0.5, 1.25], size=count)  # from where only one corner is left to where none is cut
        return {"weights": weights, "budget": least.sum(1) + share * (most - least).sum(1), "low": low, "high": high}

    def rows(v: Values) -> tuple[NDArray, NDArray, NDArray, NDArray]:
        G, h = box_rows(v["low"], v["high"])
        return np.vstack([G, v["weights"]]), np.append(h, v["budget"]), *no_equalities(n)

    return Family(
        "half_space",
        HalfSpaceBox,
        draw,
        Description(
            n,
            {"weights": (n,), "budget": (), "low": (n,), "high": (n,)},
            lambda x, p: [p["weights"] @ x <= p["budget"], x >= p["low"], x <= p["high"]],
            rows,
        ),
        problems=600,
    )


def _ball_box(n: int = 5) -> Family:
    def draw(rng: np.random.Generator, count: int) -> Values:
        low = coarse(rng, count, n, low=-2, high=1)
        high = low + coarse(rng, count, n) * sometimes(rng, 0.85, count, n)
        inside = low + (high - low) * rng.choice([0, 0.5], size=(count, n))
        offset = coarse(rng, count, n, low=-1, high=1) * rng.choice([0, 0.5, 1], size=(count, 1))
        apart = np.linalg.norm(offset, axis=1) * rng.choice([1.05, 1.5, 4], size=count)
        return {"centre": inside + offset, "radius": np.ceil(64 * apart) / 64, "low": low, "high": high}

    return Family(
        "ball_box",
        BallBox,
        draw,
        Description(
            n,
            {"centre": (n,), "radius": (), "low": (n,), "high": (n,)},
            lambda x, p: [cp.norm(x - p["centre"]) <= p["radius"], x >= p["low"], x <= p["high"]],
            lambda v: (*box_rows(v["low"], v["high"]), *no_equalities(n)),
            lambda v: [(np.eye(n), v["centre"], float(v["radius"] ** 2))],
        ),
        problems=200,
    )


def _turnover(n: int = 5) -> Family:
    def draw(rng: np.random.Generator, count: int) -> Values:
        low = coarse(rng, count, n, high=0.25) * sometimes(rng, 0.5, count, n)
        high = low + coarse(rng, count, n) * sometimes(rng, 0.9, count, n)
        previous = low + coarse(rng, count, n) * (high - low) + coarse(rng, count, n, low=-0.2, high=0.2)
        previous = np.round(previous * 64) / 64  # some outside their bounds
        total = np.clip(previous.sum(1) + coarse(rng, count, low=-0.1, high=0.1), low.sum(1), high.sum(1))
        spare = coarse(rng, count) * rng.choice([0, 0.25, 1], size=count)
        turnover = np.abs(total - previous.sum(1)) + spare
        return {"total": total, "low": low, "high": high, "previous": previous, "turnover": turnover}

    def rows(v: Values) -> tuple[NDArray, NDArray, NDArray, NDArray]:
        """Over (a, t): t_i >= |a_i - previous_i|, sum t <= turnover."""
        G, h = box_rows(np.minimum(v["low"], v["previous"]), np.maximum(v["high"], v["previous"]))
        eye, none, p = np.eye(n), np.zeros((2 * n, n)), v["previous"]
        spent = np.concatenate([np.zeros(n), np.ones(n)])
        G = np.vstack([np.hstack([G, none]), np.hstack([eye, -eye]), np.hstack([-eye, -eye]), spent])
        plane = np.concatenate([np.ones(n), np.zeros(n)])[None]
        return G, np.concatenate([h, p, -p, np.atleast_1d(v["turnover"])]), plane, np.atleast_1d(v["total"])

    return Family(
        "turnover",
        TurnoverAllocation,
        draw,
        Description(
            n,
            {"total": (), "low": (n,), "high": (n,), "previous": (n,), "turnover": ()},
            lambda x, p: [
                cp.sum(x) == p["total"],
                x >= p["low"],
                x <= p["high"],
                cp.norm1(x - p["previous"]) <= p["turnover"],
            ],
            rows,
            roots=lambda v: (
                {**v, "low": np.minimum(v["low"], v["previous"]), "high": np.maximum(v["high"], v["previous"])}
            ),
        ),
        problems=300,
    )


def _polytope(n: int, m: int, equalities: int) -> Family:
    def draw(rng: np.random.Generator, count: int) -> Values:
        inside = np.round(rng.uniform(-1, 1, (count, n)) * 8) / 8
        A = np.round(rng.normal(size=(count, m, n)) * 8) / 8
        slack = coarse(rng, count, m) * sometimes(rng, 0.85, count, m)
        A[::3, 1], slack[::3, 1] = A[::3, 0], slack[::3, 0]  # a row twice
        A[::7, 2] = 0  # a row that says nothing
        values = {"A": A, "b": np.einsum("kij,kj->ki", A, inside) + slack}
        if equalities:
            A_eq = np.round(rng.normal(size=(count, equalities, n)) * 8) / 8
            values |= {"A_eq": A_eq, "b_eq": np.einsum("kij,kj->ki", A_eq, inside)}
        return values

    def build(A: NDArray, b: NDArray, A_eq: NDArray | None = None, b_eq: NDArray | None = None) -> ActionSet:
        return Polytope(A, b, -2.0, 2.0, A_eq, b_eq)

    def rows(v: Values) -> tuple[NDArray, NDArray, NDArray, NDArray]:
        G, h = box_rows(np.full(n, -2.0), np.full(n, 2.0))
        plane = (v["A_eq"], v["b_eq"]) if equalities else no_equalities(n)
        return np.vstack([v["A"], G]), np.concatenate([v["b"], h]), *plane

    def constraints(x: cp.Variable, p: Mapping[str, cp.Parameter]) -> list:
        plane = [p["A_eq"] @ x == p["b_eq"]] if equalities else []
        return [p["A"] @ x <= p["b"], cp.abs(x) <= 2, *plane]

    shapes = {"A": (m, n), "b": (m,)} | ({"A_eq": (equalities, n), "b_eq": (equalities,)} if equalities else {})
    return Family(
        f"polytope_{equalities}_equalities", build, draw, Description(n, shapes, constraints, rows), problems=600
    )


def _factors(rng: np.random.Generator, count: int, n: int) -> NDArray:
    return np.round(rng.normal(size=(count, n, n)) * 4) / 4 * rng.choice([0, 0.25, 1, 2], size=(count, 1, n))


def _root(values: Values) -> Values:
    """cvxpy sees the ellipsoid as ||F'a|| <= sqrt(level)."""
    eigenvalues, vectors = np.linalg.eigh(values["Q"])
    rest = {name: value for name, value in values.items() if name not in ("Q", "level")}
    return rest | {"root": (vectors * np.sqrt(np.maximum(eigenvalues, 0))).T, "reach": np.sqrt(values["level"])}


def _ellipsoid(n: int = 5) -> Family:
    def draw(rng: np.random.Generator, count: int) -> Values:
        F = _factors(rng, count, n)
        return {
            "Q": np.einsum("kij,klj->kil", F, F),
            "level": coarse(rng, count, low=0.05, high=2),
            "bound": coarse(rng, count, n, low=0.1),
        }

    return Family(
        "ellipsoid",
        EllipsoidBox,
        draw,
        Description(
            n,
            {"root": (n, n), "reach": (), "bound": (n,)},
            lambda x, p: [cp.norm(p["root"] @ x) <= p["reach"], cp.abs(x) <= p["bound"]],
            lambda v: (*box_rows(-v["bound"], v["bound"]), *no_equalities(n)),
            lambda v: [(v["Q"], np.zeros(n), float(v["level"]))],
            _root,
        ),
        problems=120,
    )


def _power_and_heat(n: int = 4) -> Family:
    """Weighted L1 and ellipsoid and box together."""

    def draw(rng: np.random.Generator, count: int) -> Values:
        F = _factors(rng, count, n)
        return {
            "Q": np.einsum("kij,klj->kil", F, F),
            "level": coarse(rng, count, low=0.05, high=2),
            "weights": coarse(rng, count, n, low=-3, high=3),
            "budget": coarse(rng, count, low=0.1, high=3),
            "bound": coarse(rng, count, n, low=0.1),
        }

    def build(Q: NDArray, level: NDArray, weights: NDArray, budget: NDArray, bound: NDArray) -> ActionSet:
        return EllipsoidBox(Q, level, 1.0) & WeightedL1Box(weights, budget, bound)

    signs = np.array(list(itertools.product([-1.0, 1.0], repeat=n)))

    def rows(v: Values) -> tuple[NDArray, NDArray, NDArray, NDArray]:
        G, h = box_rows(-v["bound"], v["bound"])
        budgets = np.full(len(signs), float(v["budget"]))
        return np.vstack([G, signs * v["weights"]]), np.concatenate([h, budgets]), *no_equalities(n)

    return Family(
        "weighted_l1_and_ellipsoid",
        build,
        draw,
        Description(
            n,
            {"root": (n, n), "reach": (), "weights": (n,), "budget": (), "bound": (n,)},
            lambda x, p: [
                cp.norm(p["root"] @ x) <= p["reach"],
                cp.sum(cp.abs(cp.multiply(p["weights"], x))) <= p["budget"],
                cp.abs(x) <= p["bound"],
            ],
            rows,
            lambda v: [(v["Q"], np.zeros(n), float(v["level"]))],
            _root,
        ),
        problems=120,
        accuracy=1e-6,
    )


def _power_and_diagonal_heat(n: int = 5) -> Family:
    """The same with a diagonal ellipsoid, which has a closed form; many of its numbers are zero."""

    def draw(rng: np.random.Generator, count: int) -> Values:
        return {
            **_budget(n)(rng, count),
            "Q": coarse(rng, count, n, high=3) * sometimes(rng, 0.8, count, n),
            "level": coarse(rng, count, high=2) * sometimes(rng, 0.9, count),
            "budget": coarse(rng, count, high=n) * sometimes(rng, 0.9, count),
        }

    def curves(v: Values) -> list[tuple[NDArray, NDArray, float]]:
        return [(np.diag(v["Q"]), np.zeros(n), float(v["level"]))]

    return Family(
        "weighted_l1_and_diagonal",
        lambda Q, level, weights, budget, bound: EllipsoidBox(Q, level, 1.0) & WeightedL1Box(weights, budget, bound),
        draw,
        Description(
            n,
            {"root": (n,), "reach": (), "weights": (n,), "budget": (), "bound": (n,)},
            lambda x, p: [
                cp.norm(cp.multiply(p["root"], x)) <= p["reach"],
                cp.sum(cp.abs(cp.multiply(p["weights"], x))) <= p["budget"],
                cp.abs(x) <= p["bound"],
            ],
            lambda v: _budget_rows(v, both_sides=True),
            curves,
            lambda v: (
                {name: v[name] for name in ("weights", "budget", "bound")}
                | {"root": np.sqrt(v["Q"]), "reach": np.sqrt(v["level"])}
            ),
        ),
        problems=200,
    )


def _plane_and_ball(n: int = 4) -> Family:
    """An allocation and a ball around a place of its own."""

    def draw(rng: np.random.Generator, count: int) -> Values:
        low = coarse(rng, count, n, low=-1, high=1)
        return {"low": low, "total": low.sum(1) + 0.375 * n, "centre": low + coarse(rng, count, n, low=0.2, high=0.6)}

    def build(low: NDArray, total: NDArray, centre: NDArray) -> ActionSet:
        return Allocation(total, low, low + 1.0) & Ball(centre, 0.5 * n**0.5)

    return Family(
        "allocation_and_ball",
        build,
        draw,
        Description(
            n,
            {"low": (n,), "total": (), "centre": (n,)},
            lambda x, p: [
                x >= p["low"],
                x <= p["low"] + 1,
                cp.sum(x) == p["total"],
                cp.norm(x - p["centre"]) <= 0.5 * n**0.5,
            ],
            lambda v: (*box_rows(v["low"], v["low"] + 1), np.ones((1, n)), np.atleast_1d(v["total"])),
            lambda v: [(np.eye(n), v["centre"], 0.25 * n)],
        ),
        problems=120,
        accuracy=1e-6,
    )


FAMILIES = [
    _box(),
    _ball(),
    _weighted_l1(),
    _weighted_l1(24, problems=300),
    _positive_power(),
    _allocation(Allocation, 5),
    _allocation(Allocation, 40, problems=300),
    _allocation(AllocationAtMost, 5),
    _allocation(AllocationAtMost, 40, problems=300),
    _allocation(IntegerAllocation, 5, integer=True),
    _half_space(),
    _ball_box(),
    _turnover(),
    _power_and_diagonal_heat(),
    _polytope(5, 6, 0),
    _polytope(5, 6, 1),
    _ellipsoid(),
    _power_and_heat(),
    _plane_and_ball(),
]
