"""The complete state of copies of a packet network: one row of numbers, indices and counts a copy.

Three arrays hold everything, so that saving, restoring and handing the state to compiled code are cheap;
`unpack` gives one copy's quantities their names, as views.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int64, UInt64
from numba import njit

from feasible.envs.network.wiring import Wiring

WINDOW = 10
FEATURES = 4
BLOCK = 512
FEWEST_PACKETS = 512

# Entries of `State.clock` and `State.counts`, rows of `State.ledger`, `State.tally` and `State.flows`.
NOW, TICK, LAST_TICK, DURATION, REWARD = 0, 1, 2, 3, 4
PLAYED, IN_FLIGHT, FREE, TICKS, SEEDED, NEXT_SERVICE, NEXT_GAP = 0, 1, 2, 3, 4, 5, 6
RATE, LEFT, COST, CREDIT = 0, 1, 2, 3
SENT, RECEIVED, DROPPED = 0, 1, 2
ROUND_TRIPS, THROUGHPUT, LATENCY, DROPS = 0, 1, 2, 3

# The records of servers and packets lie in flat arrays, at their number shifted by these many bits.
SERVER, ROW, PACKET = np.uint64(2), np.uint64(3), np.uint64(1)
# Fields of a server's times (4 numbers) and ends (8 indices), and of a packet (2 numbers, 2 indices). The
# first fields of a packet, when it leaves its server and which packet follows, are at its very place.
BUSY, PROPAGATION, UNIT_SERVICE = np.uint64(0), np.uint64(1), np.uint64(2)
FIRST, LAST, OLDEST = np.uint64(0), np.uint64(1), np.uint64(2)
NEWEST, ROOM, SIZE = np.uint64(3), np.uint64(4), np.uint64(5)
ROUND_TRIP, PLACE = np.uint64(1), np.uint64(1)


class Batch(NamedTuple):
    """The state of n copies."""

    numbers: Float64[np.ndarray, "n a"]
    indices: UInt64[np.ndarray, "n b"]
    counts: Int64[np.ndarray, "n 7"]


class State(NamedTuple):
    """The state of one copy by name; each is a view.

    `clock`: now, next and last tick, duration and reward of the last step. `counts`: steps played, packets
    in flight, first free packet, ticks of this step, whether seeded, next service, next gap. `ledger`: rate
    of each path, what it has left to send in this step, its cost, its carried credit. `tally`: packets of
    each path sent, received, dropped in this step. `flows`: sum of round trips, throughput, mean round
    trip, drops of each flow in this step. `history`: the observation. `tree_time`, `tree_leaf`: winner tree
    of the servers by when their first packet leaves. `services`, `gaps`: random numbers yet to be used,
    `words` the generator that makes the next ones. `server_times`: when each server will be idle, its
    propagation and mean service time. `server_ends`: the first and last packet inside it; for a forward one
    also the oldest and newest place in its `ring` of completion times, the room left in that before the
    completed ones must be found out, and its size. `packet_times`: when a packet leaves its server, its
    round trip so far. `packet_links`: the packet behind it (of a free packet: the next free one), its place
    in the routes.
    """

    clock: Float64[np.ndarray, " 5"]
    ledger: Float64[np.ndarray, "4 k"]
    tally: Float64[np.ndarray, "3 k"]
    flows: Float64[np.ndarray, "4 f"]
    history: Float64[np.ndarray, "10 4"]
    server_times: Float64[np.ndarray, " s4"]
    tree_time: Float64[np.ndarray, " t"]
    services: Float64[np.ndarray, " u"]
    gaps: Float64[np.ndarray, " u"]
    ring: Float64[np.ndarray, "l q"]
    packet_times: Float64[np.ndarray, " c2"]
    words: UInt64[np.ndarray, " 4"]
    server_ends: UInt64[np.ndarray, " s8"]
    tree_leaf: UInt64[np.ndarray, " t"]
    packet_links: UInt64[np.ndarray, " c2"]
    counts: Int64[np.ndarray, " 7"]


@njit(cache=True, nogil=True)
def _leaves(servers):
    leaves = 2
    while leaves < servers:
        leaves *= 2
    return leaves


@njit(cache=True, nogil=True)
def _fixed_sizes(wiring):
    """Columns of numbers and of indices before the packets."""
    paths, servers, flows = wiring.route.shape[0], wiring.servers.shape[1], wiring.flows
    links, tree = servers // 2, 2 * _leaves(servers)
    numbers = 5 + 7 * paths + 4 * flows + WINDOW * FEATURES + 4 * servers + tree + 2 * BLOCK
    return numbers + links * wiring.queue_size, 4 + 8 * servers + tree


@njit(cache=True, nogil=True)
def _cut(row, start, length):
    return row[start : start + length], start + length


@njit(cache=True, nogil=True)
def unpack(wiring, batch, copy):
    """One copy's state by name."""
    paths, servers, flows = wiring.route.shape[0], wiring.servers.shape[1], wiring.flows
    links, tree = servers // 2, 2 * _leaves(servers)
    numbers, indices = batch.numbers[copy], batch.indices[copy]
    packets = (numbers.size - _fixed_sizes(wiring)[0]) // 2
    clock, at = _cut(numbers, 0, 5)
    ledger, at = _cut(numbers, at, 4 * paths)
    tally, at = _cut(numbers, at, 3 * paths)
    flow_results, at = _cut(numbers, at, 4 * flows)
    history, at = _cut(numbers, at, WINDOW * FEATURES)
    server_times, at = _cut(numbers, at, 4 * servers)
    tree_time, at = _cut(numbers, at, tree)
    services, at = _cut(numbers, at, BLOCK)
    gaps, at = _cut(numbers, at, BLOCK)
    ring, at = _cut(numbers, at, links * wiring.queue_size)
    packet_times, at = _cut(numbers, at, 2 * packets)
    words, at = _cut(indices, 0, 4)
    server_ends, at = _cut(indices, at, 8 * servers)
    tree_leaf, at = _cut(indices, at, tree)
    packet_links, at = _cut(indices, at, 2 * packets)
    return State(
        clock,
        ledger.reshape((4, paths)),
        tally.reshape((3, paths)),
        flow_results.reshape((4, flows)),
        history.reshape((WINDOW, FEATURES)),
        server_times,
        tree_time,
        services,
        gaps,
        ring.reshape((links, wiring.queue_size)),
        packet_times,
        words,
        server_ends,
        tree_leaf,
        packet_links,
        batch.counts[copy],
    )


class Results(NamedTuple):
    """What the last step of every copy gave, copied out; the fields are those of `State`."""

    clock: Float64[np.ndarray, "n 5"]
    tally: Float64[np.ndarray, "n 3 k"]
    flows: Float64[np.ndarray, "n 4 f"]
    history: Float64[np.ndarray, "n 40"]


def results(wiring: Wiring, batch: Batch) -> Results:
    """The results of all copies at once: `unpack` puts them side by side at the start of a row."""
    copies, paths, flows = len(batch.counts), len(wiring.route), wiring.flows
    rows, window = batch.numbers, WINDOW * FEATURES
    tally = 5 + 4 * paths
    flow_results = tally + 3 * paths
    history = flow_results + 4 * flows
    return Results(
        rows[:, :5].copy(),
        rows[:, tally:flow_results].copy().reshape(copies, 3, paths),
        rows[:, flow_results:history].copy().reshape(copies, 4, flows),
        rows[:, history : history + window].copy(),
    )


def new_batch(wiring: Wiring, copies: int, packets: int = FEWEST_PACKETS) -> Batch:
    """Copies of a network, neither seeded nor started yet, with room for this many packets in flight."""
    numbers, indices = _fixed_sizes(wiring)
    # Enough for the start-up runs, so that only steps ever ask for more.
    packets = max(packets, 4 * len(wiring.route))
    batch = Batch(
        np.zeros((copies, numbers + 2 * packets)),
        np.zeros((copies, indices + 2 * packets), dtype=np.uint64),
        np.zeros((copies, 7), dtype=np.int64),
    )
    for copy in range(copies):
        state = unpack.py_func(wiring, batch, copy)
        state.counts[NEXT_SERVICE] = state.counts[NEXT_GAP] = BLOCK
        state.packet_links[::2] = np.arange(1, packets + 1)
    return batch


def with_more_packets(wiring: Wiring, batch: Batch) -> Batch:
    """The same state with room for twice as many packets.

    The free packets are a linked list that ends at the room there is, so the new ones continue it.
    """
    copies = len(batch.counts)
    wider = new_batch(wiring, copies, 2 * unpack.py_func(wiring, batch, 0).packet_times.size // 2)
    for copy in range(copies):
        before, after = unpack.py_func(wiring, batch, copy), unpack.py_func(wiring, wider, copy)
        for old, new in zip(before, after, strict=True):
            new[: len(old)] = old
    return wider
