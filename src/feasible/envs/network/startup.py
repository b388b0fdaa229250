"""The start of an episode of the packet network: empty links, then two short runs that put packets under way."""

import numpy as np
from numba import njit

from feasible.envs.network.simulator import OK, run
from feasible.envs.network.state import (
    BUSY,
    CREDIT,
    FREE,
    IN_FLIGHT,
    NEWEST,
    NEXT_GAP,
    OLDEST,
    PLAYED,
    PROPAGATION,
    RATE,
    ROOM,
    SIZE,
    UNIT_SERVICE,
)
from feasible.envs.network.wiring import DELAY, LIMIT, UNIT

RUNS, SECONDS, RATE_OF_EVERY_PATH = 2, 0.15, 1.0 / 6.0
# Ticks come this many times as often as in the steps that follow.
TICKS_FACTOR = 2.0


@njit(cache=True, nogil=True)
def restart(wiring, state, table):
    """Empty links, clock 0, then the start-up runs, which by the recorded rules put one packet on every path.

    `table` is the law of the gaps during start-up.
    """
    state.clock[:] = 0.0
    state.counts[PLAYED] = 0
    state.counts[IN_FLIGHT] = 0
    state.counts[FREE] = 0
    for packet in range(state.packet_links.size // 2):
        state.packet_links[2 * packet] = packet + 1
    servers = wiring.servers.shape[1]
    times, ends = state.server_times.reshape((servers, -1)), state.server_ends.reshape((servers, -1))
    times[:, BUSY] = 0.0
    times[:, PROPAGATION] = wiring.servers[DELAY]
    times[:, UNIT_SERVICE] = wiring.servers[UNIT]
    for link in range(servers // 2):
        ends[link, OLDEST] = 0
        ends[link, NEWEST] = 0
        ends[link, ROOM] = np.uint64(wiring.servers[LIMIT, link])
        ends[link, SIZE] = ends[link, ROOM]
    state.tree_time[:] = np.inf
    state.history[:] = 0.0
    paths = state.ledger.shape[1]
    for path in range(paths):
        # Phases spread evenly, or paths of equal rates would all emit at the same ticks.
        state.ledger[CREDIT, path] = path / paths
        state.ledger[RATE, path] = RATE_OF_EVERY_PATH
    for _ in range(RUNS):
        status = run(wiring, state, SECONDS, table)
        if status != OK:
            return status
    # Gaps left over follow the law of the start-up; a replay goes on where it is.
    if state.words.size > 0:
        state.counts[NEXT_GAP] = state.gaps.size
    return OK
