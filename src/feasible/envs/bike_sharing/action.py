"""The actions that bike sharing executes: integer allocations of the whole fleet within the capacities."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float64
from numba import njit
from numpy.typing import ArrayLike

from feasible.envs.bike_sharing.system import BikeSystem
from feasible.errors import InfeasibleActionError


def whole_allocation(
    system: BikeSystem, action: ArrayLike, copies: tuple[int, ...] = ()
) -> Float64[np.ndarray, "*copies stations"]:
    """The integer allocations that actions (copies in front) stand for.

    An entry may be off its integer by the tolerance; anything else raises `InfeasibleActionError`.
    """
    shape = (*copies, system.stations)
    try:
        proposed = np.ascontiguousarray(action, dtype=np.float64)
    except (TypeError, ValueError):
        raise InfeasibleActionError(f"action must be numbers of shape {shape}, not {action!r}.") from None
    if proposed.shape != shape:
        raise InfeasibleActionError(f"action must have shape {shape}, not {proposed.shape}.")
    whole = np.empty(shape)
    rows = (-1, system.stations)
    if _round(proposed.reshape(rows), system.capacities, system.bikes, system.tolerance, whole.reshape(rows)):
        return whole
    with np.errstate(invalid="ignore"):
        off = np.abs(proposed - whole)
    _refuse(off <= system.tolerance, proposed, "must be a whole number of bikes")
    _refuse(whole >= 0.0, proposed, "must not be negative")
    _refuse(whole <= system.capacities, proposed, "must not exceed the station's capacity")
    total = whole.sum(axis=-1)
    copy = tuple(np.argwhere(total != system.bikes)[0])
    raise InfeasibleActionError(
        f"action{_name(copy)} must add up to {system.bikes} bikes, but adds up to {total[copy]:.0f}."
    )


@njit(cache=True, nogil=True)
def _round(proposed, capacities, bikes, tolerance, whole):
    """Round all entries and say whether all is in order; a NaN makes every comparison false."""
    good = True
    for copy in range(proposed.shape[0]):
        total = 0.0
        for station in range(proposed.shape[1]):
            value = proposed[copy, station]
            nearest = np.rint(value)
            whole[copy, station] = nearest
            total += nearest
            good &= abs(value - nearest) <= tolerance and 0.0 <= nearest <= capacities[station]
        good &= total == bikes
    return good


def _refuse(
    allowed: Bool[np.ndarray, "*copies stations"],
    proposed: Float64[np.ndarray, "*copies stations"],
    rule: str,
) -> None:
    if not allowed.all():
        *copy, station = np.argwhere(~allowed)[0]
        raise InfeasibleActionError(
            f"action{_name(copy)} at station {station} {rule}, but is {proposed[(*copy, station)]}."
        )


def _name(copy: Sequence[int]) -> str:
    return f" of copy {copy[0]}" if len(copy) else ""
