"""The optimum of bike sharing with three stations by dynamic programming: is staying put optimal?

    python -m feasible.paper.optimum

The next demand is independent of the past and the agent never sees it, so a state is an allocation x (136 of them,
which are also the actions y) and the bikes after a step depend on y alone:

    Q(x, y) = -c_moving M(x, y) + w(y),   w(y) = -c(y) + gamma sum_x' P(x' | y) V(x'),   V(x) = max_y Q(x, y).

Kernel P and expected cost c (lost customers and overflow) are exact, from the environment's own step in two halves.
The flows out of a station depend on its own stock and demand only: each station is played alone against all of its
20^2 = 400 demands, and the three laws of where its bikes go are convolved, which stands for all 400^3 = 64 million
demand matrices. What then exceeds a capacity is passed on by a step without demand. Moving costs are those of a step
without demand too.

Whether staying put is optimal needs no optimisation: it is if and only if no single move is worth its price, i.e.
w(y) - w(x) <= c_moving M(x, y) for all x and y, with w that of staying put. The largest quotient of the two sides is
the price of moving a bike below which staying put ceases to be optimal.
"""

from itertools import product
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float64, Int64

from feasible.envs.bike_sharing import BikeSystem, UniformDemand, bike_system, play
from feasible.envs.bike_sharing.demand import demand_law
from feasible.envs.bike_sharing.env import EPISODE_LENGTH, NATIVE_DEMAND

DISCOUNT = 0.9
BASE = 256  # more than a fleet: allocations and changes of them add up as numbers in this base
NOISE = 1e-9  # by which flows of integers may miss integers, and equal returns each other

Allocations = Float64[np.ndarray, "states stations"]
Values = Float64[np.ndarray, " states"]
Matrix = Float64[np.ndarray, "states states"]


class Law(NamedTuple):
    """A random change of the allocation: distinct changes, as numbers in base `BASE`, and their probabilities."""

    changes: Int64[np.ndarray, " outcomes"]
    probabilities: Float64[np.ndarray, " outcomes"]


class Model(NamedTuple):
    """The exact decision process; rows are actions (or the allocation before), columns the allocation after."""

    allocations: Allocations
    kernel: Matrix
    cost: Values
    moving: Matrix
    moved: Matrix


class Optimum(NamedTuple):
    """Values of the best policy and of staying put, where staying is a best action, and the best policy's actions."""

    best: Values
    staying: Values
    stays: Bool[np.ndarray, " states"]
    choice: Int64[np.ndarray, " states"]


def feasible_allocations(system: BikeSystem) -> Allocations:
    """All integer allocations of the fleet within the capacities."""
    ranges = [range(int(low), int(high) + 1) for low, high in zip(system.low, system.capacities, strict=True)]
    return np.array([entry for entry in product(*ranges) if sum(entry) == system.bikes], dtype=np.float64)


def build_model(system: BikeSystem, demand: tuple[int, int] = NATIVE_DEMAND) -> Model:
    """Kernel and expected costs of every feasible action."""
    law = demand_law(system, demand, None)
    assert isinstance(law, UniformDemand)
    allocations = feasible_allocations(system)
    index = {code: number for number, code in enumerate(encoded(allocations))}
    stations = range(system.stations)
    laws = {
        (origin, bikes): departures(system, law, origin, bikes)
        for origin in stations
        for bikes in np.unique(allocations[:, origin])
    }
    kernel = np.zeros((len(allocations), len(allocations)))
    cost = np.zeros(len(allocations))
    for row, (stock, code) in enumerate(zip(allocations, encoded(allocations), strict=True)):
        leaving = [laws[origin, stock[origin]] for origin in stations]
        settled = _sum([Law(np.array([code]), np.ones(1)), *(moves for moves, _ in leaving)])
        bikes = decoded(settled.changes, system.bikes, system.stations)
        after = play(system, bikes, np.zeros((len(bikes), system.stations, system.stations)))
        reached = [index[code] for code in encoded(after.allocation)]
        np.add.at(kernel[row], reached, settled.probabilities)
        lost = sum(lost for _, lost in leaving)
        cost[row] = system.costs.lost * lost - settled.probabilities @ after.reward
    start, end = np.broadcast_arrays(allocations[:, None], allocations[None])
    moves = play(system, start, np.zeros((*start.shape, system.stations)), end)
    return Model(allocations, kernel, cost, -moves.reward, moves.moving)


def discounted(model: Model, discount: float = DISCOUNT) -> Optimum:
    """Policy iteration from staying put: finitely many exact evaluations, the first of staying put itself."""
    states = np.arange(len(model.cost))
    choice, best = states, _evaluate(model, states, discount)
    staying = best
    while True:
        returns = action_returns(model, best, discount)
        improves = returns.max(axis=1) > returns[states, choice] + NOISE
        if not improves.any():
            return Optimum(best, staying, returns.max(axis=1) <= returns.diagonal() + NOISE, choice)
        choice = np.where(improves, returns.argmax(axis=1), choice)
        best = _evaluate(model, choice, discount)


def finite_horizon(model: Model, steps: int = EPISODE_LENGTH) -> list[Optimum]:
    """Backward induction without discount; entry k is with k + 1 steps to go."""
    best = staying = np.zeros(len(model.cost))
    optima = []
    for _ in range(steps):
        staying = model.kernel @ staying - model.cost
        returns = action_returns(model, best, 1.0)
        best = returns.max(axis=1)
        stays = best <= returns.diagonal() + NOISE
        choice = np.where(stays, np.arange(len(best)), returns.argmax(axis=1))
        optima.append(Optimum(best, staying, stays, choice))
    return optima


def action_returns(model: Model, values: Values, discount: float) -> Matrix:
    """Q(x, y) = -moving(x, y) - c(y) + discount P(. | y) values."""
    return (discount * model.kernel @ values - model.cost)[None] - model.moving


def critical_price(model: Model, staying: Values, discount: float) -> float:
    """Price of moving one bike below which staying put, with these values, ceases to be optimal."""
    worth = discount * model.kernel @ staying - model.cost
    apart = model.moved > 0.0
    return float(((worth[None] - worth[:, None])[apart] / model.moved[apart]).max())


def reachable(model: Model, choice: Int64[np.ndarray, " states"], start: int) -> Bool[np.ndarray, " states"]:
    """The allocations that occur with positive probability at some time under a policy, the start among them."""
    seen = np.arange(len(choice)) == start
    while True:
        grown = seen | (model.kernel[choice[seen]] > 0.0).any(axis=0)
        if (grown == seen).all():
            return seen
        seen = grown


def start_of(model: Model, system: BikeSystem) -> int:
    """The number of the allocation that an episode starts from."""
    return int(np.flatnonzero((model.allocations == system.initial).all(axis=1))[0])


def main() -> None:
    system = bike_system(3)
    model = build_model(system)
    start, states = start_of(model, system), len(model.cost)
    print(f"{states} allocations; an episode starts from {system.initial.astype(int)}")

    endless = discounted(model)
    print(f"\ndiscount {DISCOUNT}, without end")
    _print_optimum(model, endless, start)
    _print_price(critical_price(model, endless.staying, DISCOUNT), system)

    episode = finite_horizon(model)
    print(f"\n{EPISODE_LENGTH} steps, no discount (with all steps to go)")
    _print_optimum(model, episode[-1], start)
    pairs = sum(int(optimum.stays.sum()) for optimum in episode)
    print(f"  staying put is optimal in {pairs} of {EPISODE_LENGTH * states} pairs of step and allocation")
    rest = [np.zeros(states), *(optimum.staying for optimum in episode[:-1])]
    price = max(critical_price(model, staying, 1.0) for staying in rest)
    _print_price(price, system)


def _print_optimum(model: Model, optimum: Optimum, start: int) -> None:
    seen = reachable(model, optimum.choice, start)
    print(f"  best return {optimum.best[start]:.4f}, of staying put {optimum.staying[start]:.4f}")
    print(f"  staying put is optimal in {optimum.stays.sum()} of {len(optimum.stays)} allocations,")
    print(f"  in {(optimum.stays & seen).sum()} of the {seen.sum()} that the best policy reaches")
    for state in np.flatnonzero(~optimum.stays):
        here, there = model.allocations[[state, optimum.choice[state]]].astype(int)
        print(f"    from {here} to {there}")


def _print_price(critical: float, system: BikeSystem) -> None:
    print(f"  staying put is optimal while moving a bike costs {critical:.3f} or more; it costs {system.costs.moving}")


def _evaluate(model: Model, choice: Int64[np.ndarray, " states"], discount: float) -> Values:
    """The discounted values of a policy."""
    states = np.arange(len(choice))
    rewards = -model.cost[choice] - model.moving[states, choice]
    return np.linalg.solve(np.eye(len(choice)) - discount * model.kernel[choice], rewards)


def departures(system: BikeSystem, law: UniformDemand, origin: int, bikes: float) -> tuple[Law, float]:
    """Where the bikes of one station go and how many customers it loses on average, over all of its demands."""
    wanted = np.flatnonzero(law.pairs[origin])
    rows = np.array(list(product(range(law.low, law.high + 1), repeat=len(wanted))), dtype=np.float64)
    demand = np.zeros((len(rows), system.stations, system.stations))
    demand[:, origin, wanted] = rows
    stock = np.zeros((len(rows), system.stations))
    stock[:, origin] = bikes
    outcome = play(system, stock, demand)
    if np.abs(outcome.vanished).max() > NOISE:
        raise ValueError("bikes vanish under these rules, so allocations of the whole fleet are not all states.")
    changes = outcome.flows[:, origin].copy()
    changes[:, origin] -= outcome.flows[:, origin].sum(axis=1)
    moves = _merged(encoded(changes), np.full(len(rows), 1.0 / len(rows)))
    return moves, float(outcome.lost.mean())


def _sum(laws: list[Law]) -> Law:
    """The law of the sum of independent changes."""
    total, *rest = laws
    for law in rest:
        changes = (total.changes[:, None] + law.changes[None]).ravel()
        total = _merged(changes, np.outer(total.probabilities, law.probabilities).ravel())
    return total


def _merged(changes: Int64[np.ndarray, " n"], probabilities: Float64[np.ndarray, " n"]) -> Law:
    lowest = changes.min()
    mass = np.bincount(changes - lowest, probabilities)
    found = np.flatnonzero(mass)
    return Law(found + lowest, mass[found])


def encoded(vectors: Float64[np.ndarray, "n stations"]) -> Int64[np.ndarray, " n"]:
    """Whole vectors of a known sum as numbers: all digits but the last, which follows from the sum."""
    whole = np.rint(vectors)
    if np.abs(vectors - whole).max() > NOISE:
        raise ValueError("whole demands and allocations gave flows that are not whole.")
    digits = BASE ** np.arange(vectors.shape[1] - 1)
    return whole[:, :-1].astype(np.int64) @ digits


def decoded(codes: Int64[np.ndarray, " n"], bikes: int, stations: int) -> Float64[np.ndarray, "n stations"]:
    """The allocations of so many bikes that the numbers stand for."""
    digits = [codes // BASE**place % BASE for place in range(stations - 1)]
    return np.stack([*digits, bikes - sum(digits)], axis=1).astype(np.float64)


if __name__ == "__main__":
    main()
