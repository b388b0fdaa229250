"""How many customers want to ride from where to where: the law of a day's demand, and given days."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float64, Int64, Shaped
from numba import njit
from numpy.typing import ArrayLike

from feasible.envs.bike_sharing.system import BikeSystem

Day = Shaped[np.ndarray, "steps origin destination"]
Days = Shaped[np.ndarray, "steps copies origin destination"]
DemandLaw = Callable[[np.random.Generator, int], Day]
"""Draws the demand of so many steps from a generator, and from nothing else."""

DEFAULT_DESTINATIONS = 4
# Days whose random words are in memory at a time: few enough for the cache.
TOGETHER = 32


@dataclass(frozen=True, eq=False)
class UniformDemand:
    """Independent integers, uniform on low..high inclusive, for ordered pairs in `pairs`, zero elsewhere."""

    low: int
    high: int
    pairs: Bool[np.ndarray, "origin destination"]

    def __post_init__(self) -> None:
        if not (isinstance(self.low, int) and isinstance(self.high, int) and 0 <= self.low <= self.high < 2**32):
            raise ValueError(f"demand must be integers 0 <= low <= high, not ({self.low!r}, {self.high!r}).")

    @cached_property
    def places(self) -> Int64[np.ndarray, " pairs"]:
        """Where the pairs with demand stand in a flattened matrix."""
        return np.flatnonzero(self.pairs)

    def __call__(self, generator: np.random.Generator, steps: int) -> Day:
        return self.draw([generator], steps)[:, 0]

    def draw(self, generators: Sequence[np.random.Generator], steps: int) -> Days:
        """A day for each generator: what a call with it alone gives."""
        # Small integers: a day of hundreds of stations fits in memory.
        dtype = np.int16 if self.high <= np.iinfo(np.int16).max else np.int64
        days = np.zeros((steps, len(generators), *self.pairs.shape), dtype)
        # Raw words, one for each pair with demand: a call of `integers` costs as much as a day of them.
        words = np.empty((min(len(generators), TOGETHER), steps * self.places.size), np.uint64)
        flat = days.reshape(steps, len(generators), -1)
        for first in range(0, len(generators), TOGETHER):
            some = generators[first : first + TOGETHER]
            for row, generator in enumerate(some):
                words[row] = generator.bit_generator.random_raw(words.shape[1])
            _fill(words[: len(some)], self.low, self.high, self.places, flat[:, first : first + TOGETHER])
        return days


@njit(cache=True, nogil=True)
def _fill(words, low, high, places, days):
    """low + floor(w (high - low + 1) / 2^64) for 64-bit words w: uniform up to (high - low + 1) parts in 2^64.

    The product has 96 bits, so its lower half is carried by hand.
    """
    span, half, rest = np.uint64(high - low + 1), np.uint64(32), np.uint64(0xFFFFFFFF)
    for copy in range(words.shape[0]):
        for step in range(days.shape[0]):
            for pair in range(places.size):
                word = words[copy, step * places.size + pair]
                carried = ((word & rest) * span) >> half
                days[step, copy, places[pair]] = low + np.int64(((word >> half) * span + carried) >> half)


def draw_days(law: DemandLaw, generators: Sequence[np.random.Generator], steps: int) -> Days:
    """A day of the law from each generator."""
    if isinstance(law, UniformDemand):
        return law.draw(generators, steps)
    return np.stack([law(generator, steps) for generator in generators], axis=1)


def demand_law(system: BikeSystem, demand: tuple[int, int] | DemandLaw, destinations: int | None) -> DemandLaw:
    """The law itself if one is given; for (low, high) the uniform law to each station's nearest destinations.

    The default of four destinations is every other station in the paper's two systems, and keeps the demand
    out of a station the same in larger ones.
    """
    if callable(demand):
        return _checked(demand, system.stations)
    count = min(DEFAULT_DESTINATIONS, system.stations - 1) if destinations is None else destinations
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count < system.stations:
        raise ValueError(f"destinations must be an integer from 1 to {system.stations - 1}, not {count!r}.")
    try:
        low, high = demand
    except (TypeError, ValueError):
        raise ValueError(f"demand must be (low, high) or a function, not {demand!r}.") from None
    pairs = np.zeros((system.stations, system.stations), dtype=bool)
    np.put_along_axis(pairs, system.neighbours[:, :count], True, axis=1)
    return UniformDemand(low, high, pairs)


def given_demand(values: ArrayLike, stations: int, longest: int) -> Float64[np.ndarray, "*copies steps i j"]:
    """A demand from outside, for 1 to `longest` steps; copies, where there are any, lead."""
    day = np.array(values, dtype=np.float64)
    if day.ndim < 3 or day.shape[-2:] != (stations, stations) or not 1 <= day.shape[-3] <= longest:
        raise ValueError(
            f"demand must be 1 to {longest} steps of shape ({stations}, {stations}), not shape {day.shape}."
        )
    if not np.all(np.isfinite(day)) or np.any(day < 0.0):
        raise ValueError("demand must be finite and not negative.")
    return day


def given_allocation(values: ArrayLike, system: BikeSystem) -> Float64[np.ndarray, "*copies stations"]:
    """A start from outside, which may be fractional; copies, where there are any, lead."""
    bikes = np.array(values, dtype=np.float64)
    if bikes.ndim < 1 or bikes.shape[-1] != system.stations:
        raise ValueError(f"allocation must have {system.stations} entries, not shape {bikes.shape}.")
    slack = system.tolerance
    if not np.all(np.isfinite(bikes)) or np.any(bikes < -slack) or np.any(bikes > system.capacities + slack):
        raise ValueError("allocation must lie between 0 and the capacities.")
    return bikes


def reset_options(options: Mapping[str, ArrayLike] | None) -> tuple[ArrayLike | None, ArrayLike | None]:
    """The demand and the allocation of a reset's options; a name that is not known is a mistake."""
    options = {} if options is None else options
    if unknown := sorted(set(options) - {"demand", "allocation"}):
        raise ValueError(f"options may hold 'demand' and 'allocation', not {unknown[0]!r}.")
    return options.get("demand"), options.get("allocation")


def _checked(law: DemandLaw, stations: int) -> DemandLaw:
    def draw(generator: np.random.Generator, steps: int) -> Day:
        day = given_demand(law(generator, steps), stations, steps)
        if day.shape != (steps, stations, stations):
            raise ValueError(f"demand must give shape ({steps}, {stations}, {stations}), not {day.shape}.")
        return day

    return draw
