"""A price of moving a bike above which staying put is optimal, for fleets too large for dynamic programming.

    python -m feasible.paper.price

`feasible.paper.optimum` solves three stations exactly. Five have 23,751 allocations and need no solution, for staying
put is optimal with k steps to go if and only if no single move is worth its price: w_k(y) - w_k(x) <= c_moving for all
x and y = x - e_i + e_j, w_k(y) the expected return from y on if nothing is moved any more. Moves of several bikes are
chains of single ones. And w_k(y) - w_k(x) <= L_k, where

    L_k = max over i, j and their stocks of  c_lost D + K (c_overflow + L_{k-1}),  L_0 = 0

- D, by how many customers more are lost, is known exactly: they depend on each station's own stock;
- K bounds the Wasserstein distance of the allocations one step after x and y, in bikes moved. Then the overflow differs
  by K at most, which counts each bike above a capacity once, and so do the allocations after it: bikes above a capacity
  go one by one to the first station with room, so two allocations that are one move apart stay so.

Stations send their bikes independently, so K is a sum. Let S_i(s) be the law of where a stock of s goes from station i,
and q_i(s) that of one bike more, as its mean has it: the means of S_i(s) and S_i(s - 1) differ by it. Then

    K = d_i(s) + d_j(t) + TV(q_i(s), q_j(t)),   d_i(s) = W(S_i(s), S_i(s - 1) * q_i(s)),

for the stocks s of i and t of j with the bike. Each d is a transport problem, solved by HiGHS; what its flow leaves
over is charged as if each bike of the stock had to move. So L_k is a bound and not an estimate, up to the rounding of
sums. A discount only lowers it.

Costs a minute and a half on one core.
"""

from itertools import pairwise, permutations
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int64
from scipy.optimize import linprog
from scipy.sparse import csr_array

from feasible.envs.bike_sharing import BikeSystem, UniformDemand, bike_system
from feasible.envs.bike_sharing.demand import demand_law
from feasible.envs.bike_sharing.env import EPISODE_LENGTH, NATIVE_DEMAND
from feasible.paper.optimum import Law, decoded, departures, encoded

Points = Int64[np.ndarray, "points stations"]
Masses = Float64[np.ndarray, " points"]


class Spread(NamedTuple):
    """Where the bikes of one station are after a step, overflow aside, and how many customers it loses."""

    points: Points
    masses: Masses
    lost: float

    @property
    def mean(self) -> Float64[np.ndarray, " stations"]:
        return self.masses @ self.points


class NextBikes(NamedTuple):
    """What one bike more at a station does, for each of its stocks with that bike."""

    goes: Float64[np.ndarray, "stocks stations"]
    """The change of the mean: a law of where the bike goes."""
    apart: Float64[np.ndarray, " stocks"]
    """How far the stock's law is from that of the stock without the bike and of a bike of its law, in bikes moved."""
    served: Float64[np.ndarray, " stocks"]
    """By how many customers fewer are lost."""


class Bound(NamedTuple):
    """The price, and of what it is made."""

    price: float
    distance: float
    """The largest K."""
    served: float
    """The largest D."""


def price_bound(system: BikeSystem, demand: tuple[int, int] = NATIVE_DEMAND, steps: int = EPISODE_LENGTH) -> Bound:
    """Staying put is optimal in an episode of so many steps if moving a bike costs at least the bound's price."""
    law = demand_law(system, demand, None)
    assert isinstance(law, UniformDemand)
    bikes = [_next_bikes(system, law, station) for station in range(system.stations)]
    served, distances = [], []
    for i, j in permutations(range(system.stations), 2):
        ours, theirs = bikes[i], bikes[j]
        variation = 0.5 * np.abs(ours.goes[:, None] - theirs.goes[None]).sum(axis=2)
        distances.append((ours.apart[:, None] + theirs.apart[None] + variation).ravel())
        served.append(np.abs(ours.served[:, None] - theirs.served[None]).ravel())
    served, distances = np.concatenate(served), np.concatenate(distances)
    price = 0.0
    for _ in range(steps):
        price = float((system.costs.lost * served + distances * (system.costs.overflow + price)).max())
    return Bound(price, float(distances.max()), float(served.max()))


def transport(one: tuple[Points, Masses], other: tuple[Points, Masses]) -> float:
    """An upper bound of the least number of bikes to move, on average, from one law to the other.

    A flow of least cost along single moves between the points of both laws, and over a hub at the price of the whole
    stock, so that there always is one. It is the least number where single moves lead everywhere.
    """
    points, place = np.unique(np.concatenate([one[0], other[0]]), axis=0, return_inverse=True)
    surplus = np.bincount(place.ravel(), np.concatenate([one[1], -other[1]]))
    known, stock, count = {tuple(point): k for k, point in enumerate(points.tolist())}, points[0].sum(), len(points)
    edges = [
        (number, reached)
        for origin, destination in permutations(range(points.shape[1]), 2)
        for number, point in enumerate(_moved(points, origin, destination).tolist())
        if (reached := known.get(tuple(point))) is not None
    ]
    hub = [*((k, count) for k in range(count)), *((count, k) for k in range(count))]
    tails, heads = np.array(edges + hub).T
    cost = np.concatenate([np.ones(len(edges)), np.full(len(hub), 0.5 * stock)])
    lines = np.arange(len(cost))
    signs = np.concatenate([np.ones(len(cost)), -np.ones(len(cost))])
    leaves = csr_array((signs, (np.concatenate([tails, heads]), np.concatenate([lines, lines]))))
    surplus = np.append(surplus, 0.0)
    solution = linprog(cost, A_eq=leaves, b_eq=surplus, bounds=(0.0, None), method="highs")
    if solution.x is None:
        raise RuntimeError(f"no flow was found: {solution.message}")
    flow = np.maximum(solution.x, 0.0)
    return float(cost @ flow + 0.5 * stock * np.abs(surplus - leaves @ flow).sum())


def _next_bikes(system: BikeSystem, law: UniformDemand, station: int) -> NextBikes:
    """For the stocks of a station in feasible allocations, but the least of them."""
    stocks = range(int(system.low[station]), int(system.capacities[station]) + 1)
    spreads = [_spread(system, departures(system, law, station, stock), station, stock) for stock in stocks]
    goes, apart = zip(*(_next_bike(less, more) for less, more in pairwise(spreads)), strict=True)
    return NextBikes(np.array(goes), np.array(apart), -np.diff([spread.lost for spread in spreads]))


def _next_bike(less: Spread, more: Spread) -> tuple[Float64[np.ndarray, " stations"], float]:
    """Where it goes, and how far apart the stock with it is from the other and it."""
    goes = np.maximum(more.mean - less.mean, 0.0)
    goes /= goes.sum()
    destinations = np.flatnonzero(goes)
    arrived = np.concatenate([less.points + step for step in np.eye(len(goes), dtype=np.int64)[destinations]])
    masses = np.concatenate([less.masses * goes[destination] for destination in destinations])
    return goes, transport((more.points, more.masses), (arrived, masses))


def _spread(system: BikeSystem, leaving: tuple[Law, float], station: int, stock: int) -> Spread:
    (changes, masses), lost = leaving
    start = np.zeros((1, system.stations))
    start[:, station] = stock
    return Spread(decoded(changes + encoded(start), stock, system.stations).astype(np.int64), masses, lost)


def _moved(points: Points, origin: int, destination: int) -> Points:
    moved = points.copy()
    moved[:, origin] -= 1
    moved[:, destination] += 1
    return moved


def main() -> None:
    system = bike_system(5)
    bound = price_bound(system)
    print(f"5 stations, {EPISODE_LENGTH} steps. One bike elsewhere")
    print(f"  takes the allocations after a step at most {bound.distance:.3f} bikes apart,")
    print(f"  and changes the customers who are lost in a step by at most {bound.served:.3f}.")
    print(f"Staying put is optimal if moving a bike costs {bound.price:.3f} or more; it costs {system.costs.moving}.")


if __name__ == "__main__":
    main()
