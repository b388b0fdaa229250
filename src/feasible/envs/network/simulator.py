"""The packet network, event by event, compiled with Numba.

A packet enters the servers of its route one after another. A server with work W queued (the services yet to
be done) delays it by propagation + W and is given the packet's own exponential service; a forward server
with a full queue drops it instead. Since W = max(busy - now, 0), where `busy` is when the server will be
idle, no remaining service is ever counted down: a FIFO is its `busy` time and the completion times of its
packets, and those are looked through only when it seems full.

Packets leave a server in the order in which they entered it. So the next event of the whole network is found
among the first packets of the servers only, by a winner tree over them: an event costs O(log servers) however
many packets are in flight. Ticks of the single emission source are kept apart; a tick wins a tie.

Nothing is allocated while events run, and no lock is held: threads may run different copies.
"""

import math

import numpy as np
from numba import njit

from feasible.envs.network.randomness import VALUE, fill_exponential, fill_gaps
from feasible.envs.network.state import (
    BUSY,
    COST,
    CREDIT,
    DROPPED,
    DURATION,
    FIRST,
    FREE,
    IN_FLIGHT,
    LAST,
    LAST_TICK,
    LEFT,
    NEWEST,
    NEXT_GAP,
    NEXT_SERVICE,
    NOW,
    OLDEST,
    PACKET,
    PLACE,
    PROPAGATION,
    RATE,
    RECEIVED,
    ROOM,
    ROUND_TRIP,
    ROUND_TRIPS,
    ROW,
    SENT,
    SERVER,
    SIZE,
    TICK,
    TICKS,
    UNIT_SERVICE,
)
from feasible.envs.network.wiring import FLOW

OK, SERVICES_USED_UP, GAPS_USED_UP, PACKETS_USED_UP = 0, 1, 2, 3
STEP_SECONDS = 1.0
UNUSED_PATH_COST = 100000.0
WASTED_TICK = 6.0
# Indices are unsigned throughout: signed ones would be checked for counting from the end.
ZERO, ONE = np.uint64(0), np.uint64(1)


@njit(cache=True, nogil=True)
def _emissions_at_most(wiring, state, duration, table):
    """A bound on the packets of one run: what is asked for, and what the ticks allow."""
    rates = state.ledger[RATE]
    asked = 0.0
    for rate in rates:
        if rate > 0.0:
            asked += math.ceil(rate * duration) + 3.0 if wiring.paced else math.ceil(rate)
    if state.words.size == 0:
        ticks = 1.0 + state.gaps.size - state.counts[NEXT_GAP]
    else:
        # The last column of a table holds its shortest gap.
        ticks = 2.0 + duration / table[VALUE, -1]
    return min(asked, ticks * (rates.size if wiring.paced else 1.0))


@njit(cache=True, nogil=True, error_model="numpy")
def run(wiring, state, duration, table):
    """Send at the rates of the ledger and run events until the clock first passes now + duration.

    The last event is included. Gaps between ticks follow `table`. A state without random words is a replay:
    its services and gaps are used as they are and never refilled. Returns OK or what was used up; with
    PACKETS_USED_UP nothing has happened yet and the caller makes room.

    One long function with its arrays unpacked once, since Numba counts a reference for every array that is
    read from a tuple or handed to a function: cut into pieces it is four times slower.
    """
    clock, counts, tally, words = state.clock, state.counts, state.tally, state.words
    rates, left = state.ledger[RATE], state.ledger[LEFT]
    cost, credit = state.ledger[COST], state.ledger[CREDIT]
    round_trips, ring = state.flows[ROUND_TRIPS], state.ring.ravel()
    tree_time, tree_leaf = state.tree_time, state.tree_leaf
    server_times, server_ends = state.server_times, state.server_ends
    packet_times, packet_links = state.packet_times, state.packet_links
    services, gaps = state.services, state.gaps
    route, flow = wiring.route.ravel(), wiring.paths[FLOW]
    paced, own_service = wiring.paced, wiring.own_service
    paths, stride, block = rates.size, wiring.route.shape[1], np.uint64(gaps.size)
    links, places = np.uint64(state.ring.shape[0]), np.uint64(state.ring.shape[1])
    servers, leaves = links << ONE, np.uint64(tree_time.size) >> ONE
    if counts[IN_FLIGHT] + _emissions_at_most(wiring, state, duration, table) > packet_times.size >> 1:
        return PACKETS_USED_UP
    for k in range(paths):
        left[k] = rates[k]
        cost[k] = UNUSED_PATH_COST if rates[k] == 0.0 else 0.0
        # Only the first path can be chosen with nothing left to send.
        if k > 0 and left[k] <= 0.0:
            cost[k] = np.inf
    tally[:] = 0.0
    round_trips[:] = 0.0
    start = clock[NOW]
    now, tick, end = start, clock[TICK], start + duration
    next_service, next_gap = np.uint64(counts[NEXT_SERVICE]), np.uint64(counts[NEXT_GAP])
    ticks, waste, silent = 0, 0.0, False
    # When the source must be attended to: at its next tick; once it has nothing left to send, at the end.
    attention = tick
    while now < end:
        if attention <= tree_time[1]:
            if silent and tick >= end:
                # The last event of this run is this tick, unless a packet's comes before it.
                attention, silent = tick, False
                continue
            if next_gap == block:
                if words.size == 0:
                    return GAPS_USED_UP
                fill_gaps(words, table, gaps)
                next_gap = ZERO
            if silent:
                while tick < end and next_gap < block:
                    tick += gaps[next_gap]
                    next_gap += ONE
                    ticks += 1
                continue
            now = tick
            path = 0
            if paced:
                elapsed = now - clock[LAST_TICK]
                clock[LAST_TICK] = now
                path = -1
                for k in range(paths):
                    # The bound keeps a path faster than the ticks from saving up a burst for later.
                    credit[k] = min(credit[k] + max(rates[k], 0.0) * elapsed, 2.0)
                    if path < 0 and credit[k] >= 1.0:
                        path = k
            else:
                # The cheapest path that has packets left; the first wins ties whatever it has left.
                cheapest = cost[0]
                for k in range(1, paths):
                    cheaper = cost[k] < cheapest
                    path = k if cheaper else path
                    cheapest = min(cost[k], cheapest)
                if left[path] <= 0.0:
                    # So it will be at every later tick of this run.
                    silent = True
                    path = -1
                elif cheapest > waste and left[0] < 0.0:
                    waste += WASTED_TICK
                    path = -1
            # Several paths can be due at one tick of paced emission; the tick is over when none is.
            if path < 0 or not paced:
                tick = now + gaps[next_gap]
                next_gap += ONE
                ticks += 1
            attention = end if silent else tick
            if path < 0:
                continue
            if paced:
                credit[path] -= 1.0
            else:
                left[path] -= 1.0
                cost[path] += 1.0 / rates[path]
                if path > 0 and left[path] <= 0.0:
                    cost[path] = np.inf
            packet = np.uint64(counts[FREE]) << PACKET
            counts[FREE] = packet_links[packet]
            counts[IN_FLIGHT] += 1
            tally[SENT, path] += 1.0
            place = np.uint64(path * stride)
            round_trip = 0.0
        else:
            # The first packet of the winning server leaves it; the tree is played again upwards from there.
            now = tree_time[1]
            winner = tree_leaf[1] - leaves
            packet = server_ends[(winner << ROW) + FIRST]
            time = np.inf
            if packet != server_ends[(winner << ROW) + LAST]:
                behind = packet_links[packet]
                server_ends[(winner << ROW) + FIRST] = behind
                time = packet_times[behind]
            node = leaves + winner
            tree_time[node] = time
            while node > ONE:
                # Leaves, not servers, are stored: a choice between two plain loads would become a branch.
                rival_time, rival = tree_time[node ^ ONE], tree_leaf[node ^ ONE] - leaves
                winner = rival if rival_time < time else winner
                time = rival_time if rival_time < time else time
                node >>= ONE
                tree_time[node] = time
                tree_leaf[node] = leaves + winner
            place = packet_links[packet + PLACE] + ONE
            round_trip = packet_times[packet + ROUND_TRIP]
        while True:
            server = route[place]
            ends = server << ROW
            if server < links and server_ends[ends + ROOM] == ZERO:
                # Only now is it worth finding out which services are over.
                oldest, room = server_ends[ends + OLDEST], ZERO
                while room < server_ends[ends + SIZE] and ring[server * places + oldest] <= now:
                    oldest = oldest + ONE if oldest + ONE < places else ZERO
                    room += ONE
                server_ends[ends + OLDEST], server_ends[ends + ROOM] = oldest, room
                if room == ZERO:
                    server = servers + ONE
            if server >= servers:
                path = np.int64(place) // stride
                if server == servers:
                    tally[RECEIVED, path] += 1.0
                    round_trips[flow[path]] += round_trip
                else:
                    tally[DROPPED, path] += 1.0
                packet_links[packet] = np.uint64(counts[FREE])
                counts[FREE] = packet >> PACKET
                counts[IN_FLIGHT] -= 1
                break
            if next_service == np.uint64(services.size):
                if words.size == 0:
                    return SERVICES_USED_UP
                fill_exponential(words, services)
                next_service = ZERO
            times = server << SERVER
            service = services[next_service] * server_times[times + UNIT_SERVICE]
            next_service += ONE
            begin = max(now, server_times[times + BUSY])
            completion = begin + service
            server_times[times + BUSY] = completion
            if server < links:
                newest = server_ends[ends + NEWEST]
                ring[server * places + newest] = completion
                server_ends[ends + NEWEST] = newest + ONE if newest + ONE < places else ZERO
                server_ends[ends + ROOM] -= ONE
            crossing = server_times[times + PROPAGATION] + own_service * service
            leaving = begin + crossing
            round_trip += crossing + (begin - now)
            if now < end and leaving < attention and leaving < tree_time[1]:
                # Nothing else happens before this packet leaves again, as mostly on the fast way back.
                now = leaving
                place += ONE
                continue
            packet_times[packet] = leaving
            packet_times[packet + ROUND_TRIP] = round_trip
            packet_links[packet + PLACE] = place
            # Behind the others of the server; an idle server joins the tree up to where it does not win.
            node = leaves + server
            if tree_time[node] < np.inf:
                packet_links[server_ends[ends + LAST]] = packet
            else:
                server_ends[ends + FIRST] = packet
                while node >= ONE and leaving < tree_time[node]:
                    tree_time[node] = leaving
                    tree_leaf[node] = leaves + server
                    node >>= ONE
            server_ends[ends + LAST] = packet
            break
    clock[NOW], clock[TICK], clock[DURATION] = now, tick, now - start
    counts[TICKS], counts[NEXT_SERVICE], counts[NEXT_GAP] = ticks, next_service, next_gap
    return OK
