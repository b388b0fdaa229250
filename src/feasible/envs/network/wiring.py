"""A topology and its rules as the tables that compiled code reads."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int64, UInt64

from feasible.envs.network.randomness import poisson_gap_table
from feasible.envs.network.rules import Rules
from feasible.envs.network.topology import Topology

# Rows of `Wiring.servers` and `Wiring.paths`.
DELAY, UNIT, LIMIT = 0, 1, 2
FLOW, DROP_FLOW = 0, 1


class Wiring(NamedTuple):
    """Topology and rules as tables. A server is one direction of a link: l forward, links + l back.

    `route[k]` are the servers that a packet of path k enters, then the number of servers for its end;
    `paths` the flow of each path and the flow that pays for drops on it (-1: none); `servers` their
    propagation delay, mean service time and queue size (infinite on the way back). `gaps` is the alias
    table of the gaps between ticks.
    """

    route: UInt64[np.ndarray, "k h"]
    paths: Int64[np.ndarray, "2 k"]
    servers: Float64[np.ndarray, "3 s"]
    gaps: Float64[np.ndarray, "3 c"]
    flows: int
    queue_size: int
    first_step: float
    uncounted: float
    own_service: float
    paced: bool
    all_flows: bool


def build_wiring(topology: Topology, rules: Rules) -> Wiring:
    """The tables of a network. Cost: once per environment, O(paths x links)."""
    links, paths = topology.links, topology.paths
    routes = [_round_trip(path, len(links), rules) for path in paths]
    route = np.full((len(paths), max(map(len, routes)) + 1), 2 * len(links), dtype=np.uint64)
    for number, servers in enumerate(routes):
        route[number, : len(servers)] = servers
    positions = [position for flow in topology.flows for position in range(len(flow))]
    if rules.drops_by == "flow":
        drop_flows = list(topology.path_flows)
    else:
        drop_flows = [position if position < len(topology.flows) else -1 for position in positions]
    propagation = np.array([link.propagation for link in links])
    service = np.array([1.0 / link.rate for link in links])
    sizes = np.array([float(link.queue_size) for link in links])
    return Wiring(
        route=route,
        paths=np.array([topology.path_flows, drop_flows], dtype=np.int64),
        servers=np.array(
            [
                np.concatenate([propagation, propagation / topology.return_speedup]),
                np.concatenate([service, service / topology.return_speedup]),
                np.concatenate([sizes, np.full(len(links), np.inf)]),
            ]
        ),
        gaps=poisson_gap_table(rules.tick_rate),
        flows=len(topology.flows),
        queue_size=int(sizes.max()),
        first_step=float(rules.first_step),
        uncounted=float(rules.uncounted_packets),
        own_service=float(rules.own_service),
        paced=rules.emission == "paced",
        all_flows=rules.observed == "all_flows",
    )


def _round_trip(path: tuple[int, ...], links: int, rules: Rules) -> list[int]:
    backwards = path[::-1] if rules.return_route == "reversed" else (path[-1], *path[:0:-1])
    return [*path, *(links + link for link in backwards)]
