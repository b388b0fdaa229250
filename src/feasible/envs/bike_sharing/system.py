"""A bike-sharing system: stations with capacities and distances, a fleet of bikes, prices and rules."""

import os
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from jaxtyping import Float64, Int64
from numpy.typing import ArrayLike

from feasible.envs.bike_sharing.rules import Rules

# The distances of the paper's two systems; only the order of each station's neighbours has an effect.
RECORDED_DISTANCES = {
    3: [[0.0, 7.4022447, 8.29668899], [7.4022447, 0.0, 5.86538564], [8.29668899, 5.86538564, 0.0]],
    5: [
        [0.0, 6.69909453, 1.63112554, 2.28154641, 5.86179935],
        [6.69909453, 0.0, 9.98353995, 5.87637459, 4.01095402],
        [1.63112554, 9.98353995, 0.0, 3.36164903, 3.55000254],
        [2.28154641, 5.87637459, 3.36164903, 0.0, 10.01040461],
        [5.86179935, 4.01095402, 3.55000254, 10.01040461, 0.0],
    ],
}
BIKES_PER_STATION = 30
CAPACITY = 35


@dataclass(frozen=True)
class Costs:
    """Price of a customer who finds no bike, of a bike that finds no free place, and of moving one bike."""

    lost: float = 1.0
    overflow: float = 1.0
    moving: float = 2.0

    def __post_init__(self) -> None:
        for name in ("lost", "overflow", "moving"):
            if not (np.isfinite(getattr(self, name)) and getattr(self, name) >= 0.0):
                raise ValueError(f"Costs: {name} must be a finite number >= 0, not {getattr(self, name)!r}.")


@dataclass(frozen=True, eq=False)
class BikeSystem:
    """All that stays the same from step to step; `bike_system` fills in defaults and checks the values.

    The feasible actions are the integer allocations a with sum a = `bikes` and `low` <= a <= `capacities`;
    low_i = max(0, bikes - sum of the other capacities) is all that the other two conditions leave.
    """

    capacities: Float64[np.ndarray, " stations"]
    bikes: int
    distances: Float64[np.ndarray, "stations stations"]
    initial: Float64[np.ndarray, " stations"]
    costs: Costs = field(default_factory=Costs)
    rules: Rules = Rules.recorded

    @property
    def stations(self) -> int:
        return len(self.capacities)

    @property
    def tolerance(self) -> float:
        """How far an entry of an action may be off: 1e-5 of the largest coordinate, as for every set."""
        return 1e-5 * float(self.capacities.max())

    @property
    def low(self) -> Float64[np.ndarray, " stations"]:
        """The fewest bikes that a feasible allocation can leave at each station."""
        return np.maximum(0.0, self.bikes - (self.capacities.sum() - self.capacities))

    @cached_property
    def neighbours(self) -> Int64[np.ndarray, "stations others"]:
        """The other stations by growing distance, equal distances by number."""
        distances = self.distances.copy()
        np.fill_diagonal(distances, -np.inf)
        return np.argsort(distances, axis=1, kind="stable")[:, 1:]

    @cached_property
    def turns(self) -> Int64[np.ndarray, "pairs 2"]:
        """The pairs (full station, station with room) in the order in which excess bikes are passed on."""
        origins = np.repeat(np.arange(self.stations), self.stations - 1)
        pairs = np.stack([origins, self.neighbours.ravel()], axis=1)
        if self.rules.overflow == "station_order":
            return pairs
        return pairs[np.argsort(self.distances[pairs[:, 0], pairs[:, 1]], kind="stable")]

    @cached_property
    def tables(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, bool]:
        """What compiled code needs of all this: capacities, turns, prices, whether remainders are ranked."""
        prices = np.array([self.costs.lost, self.costs.overflow, self.costs.moving])
        return self.capacities, self.turns, prices, self.rules.shortage == "largest_remainder"


def bike_system(
    stations: int = 5,
    *,
    capacities: int | ArrayLike = CAPACITY,
    bikes: int | None = None,
    distances: ArrayLike | None = None,
    initial_allocation: ArrayLike | None = None,
    costs: Costs | None = None,
    rules: Rules = Rules.recorded,
) -> BikeSystem:
    """A checked system; what is left out is as in the paper's systems with 3 and 5 stations.

    Defaults for any number of stations: 30 bikes a station, capacity 35, bikes spread evenly (the first
    stations take what is left over). Other sizes than 3 and 5 lie on a ring, neighbours one unit apart.
    """
    if isinstance(stations, bool) or not isinstance(stations, int | np.integer) or stations < 2:
        raise ValueError(f"stations must be an integer of at least 2, not {stations!r}.")
    room = _vector("capacities", capacities, stations)
    if np.any(room < 1.0) or np.any(room != np.rint(room)):
        raise ValueError("capacities must be whole numbers of at least 1.")
    fleet = BIKES_PER_STATION * stations if bikes is None else bikes
    most = int(room.sum())
    if isinstance(fleet, bool) or not isinstance(fleet, int | np.integer) or not 1 <= fleet <= most:
        raise ValueError(f"bikes must be an integer from 1 to the total capacity {most}, not {fleet!r}.")
    if initial_allocation is None:
        start = _even(int(fleet), room)
    else:
        start = _vector("initial_allocation", initial_allocation, stations)
        within = (start >= 0.0) & (start <= room) & (start == np.rint(start))
        if start.sum() != fleet or not within.all():
            raise ValueError(
                f"initial_allocation must be {fleet} bikes in whole numbers, none above a station's capacity."
            )
    apart = _distances(stations, distances)
    return BikeSystem(room, int(fleet), apart, start, Costs() if costs is None else costs, rules)


def check_memory(stations: int, steps: int) -> None:
    """Refuse a system whose distances, and demand of so many steps, do not fit in memory."""
    known = getattr(os, "sysconf_names", ())
    if not isinstance(stations, int | np.integer) or not {"SC_PAGE_SIZE", "SC_PHYS_PAGES"} <= set(known):
        return
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    # Distances, neighbours and turns; two bytes for the demand of a pair in a step.
    needed = int(stations) ** 2 * (64 + 2 * steps)
    if needed > memory:
        raise ValueError(
            f"stations: {stations} stations need {needed / 2**30:,.0f} GiB for their distances and demand, and this "
            f"machine has {memory / 2**30:,.0f}; take fewer stations, copies or steps."
        )


def _vector(name: str, values: ArrayLike, stations: int) -> Float64[np.ndarray, " stations"]:
    vector = np.array(values, dtype=np.float64)
    if vector.shape not in ((), (stations,)) or not np.all(np.isfinite(vector)):
        raise ValueError(f"{name} must be {stations} finite numbers, one for each station, not {values!r}.")
    return np.full(stations, vector) if vector.ndim == 0 else vector


def _even(bikes: int, capacities: Float64[np.ndarray, " stations"]) -> Float64[np.ndarray, " stations"]:
    """Equally many bikes as far as capacities allow, the remainder one each to the first with room."""
    start = np.zeros_like(capacities)
    while (left := bikes - start.sum()) > 0:
        open_stations = np.flatnonzero(start < capacities)
        share = left // len(open_stations)
        if share == 0:
            start[open_stations[: int(left)]] += 1.0
        else:
            start = np.minimum(start + share * (start < capacities), capacities)
    return start


def _distances(stations: int, distances: ArrayLike | None) -> Float64[np.ndarray, "stations stations"]:
    if distances is None:
        number = np.arange(stations)
        hops = np.abs(number[:, None] - number)
        ring = np.minimum(hops, stations - hops)
        return np.array(RECORDED_DISTANCES.get(stations, ring), dtype=np.float64)
    apart = np.array(distances, dtype=np.float64)
    if apart.shape != (stations, stations):
        raise ValueError(f"distances must have shape ({stations}, {stations}), not {apart.shape}.")
    if not np.all(np.isfinite(apart)) or np.any(apart < 0.0) or np.any(apart != apart.T):
        raise ValueError("distances must be finite, not negative and the same in both directions.")
    return apart
