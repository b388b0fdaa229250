"""What bike sharing does where the recorded program and the evident model differ, as one value."""

from dataclasses import dataclass
from typing import ClassVar, Literal


@dataclass(frozen=True)
class Rules:
    """How the bikes behave; the defaults are the recorded program, `Rules.corrected` the model it meant.

    `shortage`: how a station with fewer bikes than demand splits them. `"last_destination"` rounds the
        proportional flows to integers (halves to even) and gives what is left to the last destination whose
        flow is not zero: it may get more than its demand, or less than nothing, and the bikes vanish where
        every flow rounds to zero. Corrected `"largest_remainder"`: whole flows that add up to the stock,
        proportional to demand up to less than one bike, none negative, none above a whole demand; no bike
        vanishes, and a station with bikes enough serves its demand without floating point noise.
    `overflow`: how full stations pass on their excess. `"station_order"` lets them do so by number, each
        filling the stations with room from the nearest on, so that low numbers take the near places.
        Corrected `"distance_order"`: the pairs of a full station and one with room take turns by growing
        distance, so that numbering decides between equal distances alone.
    """

    shortage: Literal["last_destination", "largest_remainder"] = "last_destination"
    overflow: Literal["station_order", "distance_order"] = "station_order"

    recorded: ClassVar["Rules"]
    corrected: ClassVar["Rules"]

    def __post_init__(self) -> None:
        choices = {
            "shortage": ("last_destination", "largest_remainder"),
            "overflow": ("station_order", "distance_order"),
        }
        for field, known in choices.items():
            if getattr(self, field) not in known:
                raise ValueError(f"Rules: {field} must be {known[0]!r} or {known[1]!r}, not {getattr(self, field)!r}.")


Rules.recorded = Rules()
Rules.corrected = Rules(shortage="largest_remainder", overflow="distance_order")
