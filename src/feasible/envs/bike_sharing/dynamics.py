"""One step of bike sharing as a pure function, for any number of copies at once.

With bikes x, demand D (from origin i to destination j) and action a (None: nothing is moved, a = x):

    moving      M   = sum |a - x| / 2, after which the stations hold a
    leaving     l_i = min(a_i, d_i), d_i = sum_j D_ij
    flows       F_ij ~ l_i D_ij / d_i, made whole where a_i < d_i (`Rules.shortage`)
    bikes       z_i = a_i - l_i + sum_k F_ki, then what exceeds a capacity goes elsewhere (`Rules.overflow`)
    reward          = -(c_lost (sum D - sum F) + c_overflow O + c_moving M), O the bikes that went elsewhere

Cost: a few passes over a copy's stations^2 numbers in compiled code, copy after copy. Compiled with Numba, since
vectorised NumPy writes each of those passes to memory: 1024 copies of 3 and 5 stations then step 49 and 81 times as
fast as a plain loop, and compiled 132 and 113 times.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float64
from numba import njit

from feasible.envs.bike_sharing.system import BikeSystem
from feasible.envs.threads import Threads

LOST, OVERFLOW, MOVING, REVENUE, VANISHED, REWARD = range(6)
TINY = np.finfo(np.float64).tiny


class Outcome(NamedTuple):
    """What a step led to; each array has the copies' axes where the inputs had them."""

    allocation: Float64[np.ndarray, "*copies stations"]
    outgoing: Float64[np.ndarray, "*copies stations"]
    flows: Float64[np.ndarray, "*copies origin destination"]
    lost: Float64[np.ndarray, "*copies"]
    overflow: Float64[np.ndarray, "*copies"]
    moving: Float64[np.ndarray, "*copies"]
    revenue: Float64[np.ndarray, "*copies"]
    vanished: Float64[np.ndarray, "*copies"]
    reward: Float64[np.ndarray, "*copies"]


def play(
    system: BikeSystem,
    allocation: Float64[np.ndarray, "*copies stations"],
    demand: Float64[np.ndarray, "*copies origin destination"],
    action: Float64[np.ndarray, "*copies stations"] | None = None,
) -> Outcome:
    """One step for copies on leading axes (a single one has none); the action is played as it is."""
    copies, n = allocation.shape[:-1], system.stations
    bikes = _rows(allocation, (-1, n))
    outcome = advance(system, bikes, _rows(demand, (-1, n, n)), bikes if action is None else _rows(action, (-1, n)))
    return Outcome(*(part.reshape(copies + part.shape[1:]) for part in outcome))


def advance(
    system: BikeSystem,
    bikes: Float64[np.ndarray, "copies stations"],
    demand: Float64[np.ndarray, "copies origin destination"],
    stock: Float64[np.ndarray, "copies stations"],
    threads: Threads | None = None,
) -> Outcome:
    """The same for contiguous arrays with exactly one axis of copies, and the action as the new `stock`."""
    settled, outgoing, flows = np.empty_like(stock), np.empty_like(stock), np.empty_like(demand)
    totals = np.empty((6, len(stock)))
    arrays = (bikes, demand, stock, *system.tables, settled, outgoing, flows, totals)
    if threads is None:
        _advance(*arrays, 0, len(stock))
    else:
        threads.run(lambda first, last: _advance(*arrays, first, last))
    return Outcome(settled, outgoing, flows, *totals)


def _rows(values: Float64[np.ndarray, "..."], shape: tuple[int, ...]) -> Float64[np.ndarray, "copies ..."]:
    return np.ascontiguousarray(values, dtype=np.float64).reshape(shape)


# Compiled functions take whole arrays and indices: a slice costs more than the arithmetic on three stations.
@njit(cache=True, nogil=True, error_model="numpy")
def _advance(
    bikes, demand, stock, capacities, turns, prices, by_remainder, settled, outgoing, flows, totals, first, last
):
    """Play one step of the copies first, ..., last - 1."""
    stations = stock.shape[1]
    for copy in range(first, last):
        moved = served = wanted = left = 0.0
        for origin in range(stations):
            held = stock[copy, origin]
            asked = 0.0
            for destination in range(stations):
                asked += demand[copy, origin, destination]
            if by_remainder:
                _share_by_remainder(demand, copy, origin, held, asked, flows)
            else:
                _share_by_position(demand, copy, origin, held, asked, flows)
            outgoing[copy, origin] = asked
            moved += abs(held - bikes[copy, origin])
            wanted += asked
            left += min(held, asked)
        for station in range(stations):
            arriving = 0.0
            for origin in range(stations):
                arriving += flows[copy, origin, station]
            held = stock[copy, station]
            settled[copy, station] = held - min(held, outgoing[copy, station]) + arriving
            served += arriving
        overflow = _pass_on(settled, copy, capacities, turns)
        lost, moving = wanted - served, moved / 2.0
        totals[LOST, copy] = lost
        totals[OVERFLOW, copy] = overflow
        totals[MOVING, copy] = moving
        totals[REVENUE, copy] = served
        totals[VANISHED, copy] = left - served
        totals[REWARD, copy] = -(prices[0] * lost + prices[1] * overflow + prices[2] * moving)


@njit(cache=True, nogil=True, error_model="numpy")
def _share_by_position(demand, copy, origin, held, asked, flows):
    """The flows out of one station by `"last_destination"`.

    Choices are values, not branches: whether bikes are short is a coin toss, which no processor can predict.
    """
    short = held < asked
    leaving = min(held, asked)
    # Only turns 0 / 0, a station without demand, into 0.
    divisor = max(asked, TINY)
    total = 0.0
    last = -1
    for destination in range(demand.shape[2]):
        # l (D / d), not l D / d: the recorded program's order decides which flows are exact halves.
        exact = leaving * (demand[copy, origin, destination] / divisor)
        flow = np.rint(exact) if short else exact
        flows[copy, origin, destination] = flow
        total += flow
        last = destination if flow != 0.0 else last
    flows[copy, origin, max(last, 0)] += held - total if short and last >= 0 else 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def _share_by_remainder(demand, copy, origin, held, asked, flows):
    """The flows out of one station by `"largest_remainder"`."""
    stations = demand.shape[2]
    if held >= asked:
        for destination in range(stations):
            flows[copy, origin, destination] = demand[copy, origin, destination]
        return
    shortfall = np.empty(stations)
    remaining = held
    for destination in range(stations):
        exact = held * (demand[copy, origin, destination] / asked)
        whole = np.floor(exact)
        flows[copy, origin, destination] = whole
        shortfall[destination] = whole - exact
        remaining -= whole
    # Stable: equal remainders go by number.
    for destination in np.argsort(shortfall, kind="mergesort"):
        flows[copy, origin, destination] += min(max(remaining, 0.0), 1.0)
        remaining -= 1.0


@njit(cache=True, nogil=True, error_model="numpy")
def _pass_on(bikes, copy, capacities, turns):
    """Let every excess go where there is room and return how many did; what finds no room stays."""
    passed_on = 0.0
    for turn in range(turns.shape[0]):
        origin, destination = turns[turn, 0], turns[turn, 1]
        excess = bikes[copy, origin] - capacities[origin]
        room = capacities[destination] - bikes[copy, destination]
        if excess > 0.0 and room > 0.0:
            passed_on += min(excess, room)
            # Assigned, not added: what is full holds its capacity exactly.
            bikes[copy, origin] = capacities[origin] if room >= excess else bikes[copy, origin] - room
            bikes[copy, destination] = capacities[destination] if excess >= room else bikes[copy, destination] + excess
    return passed_on
