"""Reward and observation of one step of the packet network.

    reward = sum over flows f of  ln max(T_f, e^-17.5) - 1.5 ln max(R_f, e^-5) - 0.5 ln max(X_f, 1)

with throughput T_f in packets a second, mean round trip R_f in seconds (0 without an acknowledgement) and
drops X_f; which packets each of them counts is for the rules to say.
"""

import math

from numba import njit

from feasible.envs.network.state import (
    DROPPED,
    DROPS,
    DURATION,
    FEATURES,
    LATENCY,
    RECEIVED,
    REWARD,
    ROUND_TRIPS,
    SENT,
    THROUGHPUT,
    TICKS,
    WINDOW,
)
from feasible.envs.network.wiring import DROP_FLOW, FLOW

# A packet of 1500 bytes, in units of ten megabits a second.
PACKET_RATE = 12000.0
RATE_UNIT = 1e7
LOWEST_THROUGHPUT = math.exp(-17.5)
LOWEST_LATENCY = math.exp(-5.0)


@njit(cache=True, nogil=True)
def measure(wiring, state):
    """Fill in the results of the step just run and append it to the observation. O(paths + window)."""
    duration = state.clock[DURATION]
    tally, flows, history = state.tally, state.flows, state.history
    flows[THROUGHPUT] = 0.0
    flows[DROPS] = 0.0
    sent, lost = 0.0, 0.0
    for path in range(tally.shape[1]):
        sent += tally[SENT, path]
        lost += tally[DROPPED, path]
        flows[THROUGHPUT, wiring.paths[FLOW, path]] += tally[RECEIVED, path]
        if wiring.paths[DROP_FLOW, path] >= 0:
            flows[DROPS, wiring.paths[DROP_FLOW, path]] += tally[DROPPED, path]
    acknowledged, round_trips, reward = 0.0, 0.0, 0.0
    for flow in range(flows.shape[1]):
        received = flows[THROUGHPUT, flow]
        flows[LATENCY, flow] = flows[ROUND_TRIPS, flow] / received if received > 0.0 else 0.0
        flows[THROUGHPUT, flow] = (received - wiring.uncounted) / duration
        reward += (
            math.log(max(flows[THROUGHPUT, flow], LOWEST_THROUGHPUT))
            - 1.5 * math.log(max(flows[LATENCY, flow], LOWEST_LATENCY))
            - 0.5 * math.log(max(flows[DROPS, flow], 1.0))
        )
        if flow == 0 or wiring.all_flows:
            acknowledged += received
            round_trips += flows[ROUND_TRIPS, flow]
    state.clock[REWARD] = reward
    for row in range(WINDOW - 1):
        for feature in range(FEATURES):
            history[row, feature] = history[row + 1, feature]
    emitted = sent if wiring.all_flows else float(state.counts[TICKS])
    history[-1, 0] = emitted * PACKET_RATE / duration / RATE_UNIT
    history[-1, 1] = (acknowledged - wiring.uncounted) * PACKET_RATE / duration / RATE_UNIT
    history[-1, 2] = round_trips / acknowledged if acknowledged > 0.0 else 0.0
    history[-1, 3] = lost / (lost + acknowledged) if lost > 0.0 else 0.0
