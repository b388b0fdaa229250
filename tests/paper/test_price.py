"""The bound of the price of moving a bike against dynamic programming, and transport against a dense linear program."""

from collections.abc import Mapping

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import eye, kron, vstack

from feasible.envs.bike_sharing import BikeSystem, bike_system, play
from feasible.paper.optimum import build_model, critical_price, finite_horizon
from feasible.paper.price import price_bound, transport

SYSTEMS: Mapping[str, tuple[BikeSystem, tuple[int, int], int]] = {
    "the paper's three": (bike_system(3), (5, 24), 4),
    "three with much demand": (bike_system(3), (20, 28), 100),
    "four": (bike_system(4, capacities=16, bikes=58), (4, 14), 50),
    "four of different capacities": (bike_system(4, capacities=[14, 18, 16, 17], bikes=59), (4, 14), 20),
}


@pytest.mark.parametrize(("system", "demand", "steps"), SYSTEMS.values(), ids=SYSTEMS)
def test_the_exact_price_is_no_higher(system: BikeSystem, demand: tuple[int, int], steps: int) -> None:
    model = build_model(system, demand)
    optima = finite_horizon(model, steps)
    exact = max(critical_price(model, optimum.staying, 1.0) for optimum in optima[:-1])
    bound = price_bound(system, demand, steps)
    assert 0.0 < exact <= bound.price
    # One bike elsewhere, and then a step: least moves between the two laws of where the bikes are.
    pairs = np.argwhere(model.moved == 1.0)
    pairs = pairs[:: len(pairs) // 4]
    distances = [least_moves(model.kernel[x], model.kernel[y], model.moved) for x, y in pairs]
    assert 0.0 < max(distances) <= bound.distance


def test_the_bound_is_of_use() -> None:
    """It is below the price where dynamic programming says that staying put is optimal."""
    system, demand, steps = SYSTEMS["four"]
    assert price_bound(system, demand, steps).price < system.costs.moving
    assert all(optimum.stays.all() for optimum in finite_horizon(build_model(system, demand), steps))


@pytest.mark.slow
def test_staying_put_is_optimal_with_five_stations() -> None:
    system = bike_system(5)
    assert price_bound(system).price < system.costs.moving


@pytest.mark.parametrize("stations", [3, 5, 8])
def test_passing_bikes_on_keeps_allocations_one_move_apart(stations: int) -> None:
    """What the bound takes for granted: after overflow they are one bike apart at most, and so is the overflow."""
    system, copies = bike_system(stations), 20_000
    rng = np.random.default_rng(stations)
    # Of the whole fleet, some stations almost empty and others far above their capacity.
    shares = rng.dirichlet(np.full(stations, 2.0), copies)
    bikes = np.stack([rng.multinomial(system.bikes, share) for share in shares]).astype(np.float64)
    moved = bikes.copy()
    rows, origins = np.arange(copies), bikes.argmax(axis=1)
    moved[rows, origins] -= 1.0
    moved[rows, (origins + rng.integers(1, stations, copies)) % stations] += 1.0
    nobody = np.zeros((copies, stations, stations))
    one, other = play(system, bikes, nobody), play(system, moved, nobody)
    assert (one.overflow > 0.0).mean() > 0.5
    assert np.abs(one.allocation - other.allocation).sum(axis=1).max() <= 2.0
    assert np.abs(one.overflow - other.overflow).max() <= 1.0


@pytest.mark.parametrize(("stations", "stock"), [(2, 9), (3, 5), (4, 3)])
def test_transport_is_the_least_number_of_moves(stations: int, stock: int) -> None:
    rng = np.random.default_rng(0)
    for points in (12, 6):
        one, other = (rng.multinomial(stock, np.full(stations, 1 / stations), points) for _ in range(2))
        masses, others = rng.dirichlet(np.ones(points), 2)
        moves = 0.5 * np.abs(one[:, None] - other[None]).sum(axis=2)
        least = least_moves(masses, others, moves)
        found = transport((one, masses), (other, others))
        assert found >= least - 1e-9
        # All points between are points of the laws, too: then single moves lead everywhere.
        everywhere = np.array([p for p in np.ndindex(*[stock + 1] * stations) if sum(p) == stock])
        padded = [
            (np.concatenate([law, everywhere]), np.append(mass, np.zeros(len(everywhere))))
            for law, mass in ((one, masses), (other, others))
        ]
        assert transport(*padded) == pytest.approx(least, abs=1e-6)


def least_moves(masses: np.ndarray, others: np.ndarray, moves: np.ndarray) -> float:
    """The transport problem as it is defined: how much goes from each point to each."""
    rows, columns = moves.shape
    sums = vstack([kron(eye(rows), np.ones((1, columns))), kron(np.ones((1, rows)), eye(columns))])
    return linprog(moves.ravel(), A_eq=sums, b_eq=np.concatenate([masses, others])).fun
