"""What the packet network does where the recorded program and the evident model differ, as one value."""

from dataclasses import dataclass
from typing import ClassVar, Literal


@dataclass(frozen=True)
class Rules:
    """The behaviour of a network: by default as recorded, `Rules.corrected` as the model evidently meant.

    `emission`: `"burst"` serves all paths from one source of ticks that starts afresh every step: each path
        gets ceil(rate) packets, interleaved by fair queueing, in the first part of the step, so any positive
        rate sends at least one packet and a negative rate of the first path silences all. Corrected
        `"paced"`: each path emits evenly at exactly its rate; what is left of a packet at the end of a step
        is carried over, and a negative rate is a zero of that path alone.
    `tick_rate`: mean emission ticks a second. It limits what can be sent in all (burst) or on each path
        (paced), and must exceed it on networks that are larger than NSFNET. The same in both.
    `first_step`: seconds of the first step of an episode, 0.15. Corrected: 1, as every other step.
    `uncounted_packets`: packets that throughput counts too few, 1. Corrected: 0.
    `drops_by`: `"position"` charges the drops on the f-th path OF EVERY FLOW to flow f. Corrected `"flow"`:
        the drops on its own paths.
    `observed`: `"first_flow"` shows ticks (not packets) a second, throughput and mean round trip of the first
        flow, and the share of lost packets with the drops of all flows over the first flow's packets.
        Corrected `"all_flows"`: packets sent a second, throughput, mean round trip and share of lost packets,
        each over all flows.
    `own_service`: whether a packet's own service time is part of its delay at a link. False; corrected: True.
    `return_route`: `"last_twice"` sends acknowledgements over the last link twice and never over the first.
        Corrected `"reversed"`: over every link of the path once, backwards.
    """

    emission: Literal["burst", "paced"] = "burst"
    tick_rate: float = 500.0
    first_step: float = 0.15
    uncounted_packets: int = 1
    drops_by: Literal["position", "flow"] = "position"
    observed: Literal["first_flow", "all_flows"] = "first_flow"
    own_service: bool = False
    return_route: Literal["last_twice", "reversed"] = "last_twice"

    recorded: ClassVar["Rules"]
    corrected: ClassVar["Rules"]

    def __post_init__(self) -> None:
        choices = {
            "emission": ("burst", "paced"),
            "drops_by": ("position", "flow"),
            "observed": ("first_flow", "all_flows"),
            "return_route": ("last_twice", "reversed"),
        }
        for field, known in choices.items():
            if getattr(self, field) not in known:
                raise ValueError(f"Rules: {field} must be {known[0]!r} or {known[1]!r}, not {getattr(self, field)!r}.")
        # Above the upper end the table of gaps would need more columns than a random word has spare bits.
        if not 1.0 <= self.tick_rate <= 20000.0:
            raise ValueError(f"Rules: tick_rate must be between 1 and 20000 a second, not {self.tick_rate}.")
        if not 0.0 < self.first_step <= 1000.0:
            raise ValueError(f"Rules: first_step must be a positive number of seconds, not {self.first_step}.")
        if self.uncounted_packets < 0:
            raise ValueError(f"Rules: uncounted_packets must be 0 or more, not {self.uncounted_packets}.")


Rules.recorded = Rules()
Rules.corrected = Rules(
    emission="paced",
    first_step=1.0,
    uncounted_packets=0,
    drops_by="flow",
    observed="all_flows",
    own_service=True,
    return_route="reversed",
)
