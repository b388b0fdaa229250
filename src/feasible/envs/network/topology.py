"""A packet network as data: links, flows and their paths, and the rate constraints that follow from them.

A path `k` that carries `a_k` packets a second loads every link it crosses, so the feasible rates are

    { a : sum of a_k over the paths k through link l  <=  bandwidth of l, for every link l;  a >= 0 }.

`link_rows` lists these constraints by link, `rate_polytope` gives the same set with nothing redundant.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int


@dataclass(frozen=True)
class Link:
    """One link: `rate` packets a second, `propagation` seconds, at most `queue_size` packets queued forward.

    `ends` are the two nodes it joins; an access link of a single host has none and is not drawn on the map.
    """

    rate: float
    propagation: float = 0.05
    queue_size: int = 500
    ends: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        if not (math.isfinite(self.rate) and self.rate > 0.0):
            raise ValueError(f"Link: rate must be a positive number of packets a second, not {self.rate}.")
        if not (math.isfinite(self.propagation) and self.propagation >= 0.0):
            raise ValueError(f"Link: propagation must be zero or more seconds, not {self.propagation}.")
        if self.queue_size < 1 or self.queue_size != int(self.queue_size):
            raise ValueError(f"Link: queue_size must be a whole number of at least 1, not {self.queue_size}.")
        if self.ends is not None and self.ends[0] == self.ends[1]:
            raise ValueError(f"Link: ends must be two different nodes, not {self.ends}.")


@dataclass(frozen=True)
class Topology:
    """A network: `links` by id, `flows` as the paths (link ids) of each flow, `positions` of the nodes.

    Action entry k is the rate of path k, counted through the flows in order. Acknowledgements travel back
    with the service times and propagation of the links divided by `return_speedup`.
    """

    links: tuple[Link, ...]
    flows: tuple[tuple[tuple[int, ...], ...], ...]
    positions: tuple[tuple[float, float], ...] = ()
    return_speedup: float = 1000.0

    def __post_init__(self) -> None:
        if not self.links:
            raise ValueError("Topology: links must name at least one link.")
        if not self.flows:
            raise ValueError("Topology: flows must name at least one flow.")
        if not (math.isfinite(self.return_speedup) and self.return_speedup > 0.0):
            raise ValueError(f"Topology: return_speedup must be a positive number, not {self.return_speedup}.")
        for number, link in enumerate(self.links):
            for node in link.ends or ():
                if not 0 <= node < len(self.positions):
                    raise ValueError(
                        f"Topology: link {number} ends at node {node}, but positions names only nodes"
                        f" 0 to {len(self.positions) - 1}."
                    )
        if not np.isfinite(np.asarray(self.positions, dtype=np.float64)).all():
            raise ValueError("Topology: positions must be finite coordinates.")
        for flow, paths in enumerate(self.flows):
            if not paths:
                raise ValueError(f"Topology: flow {flow} must have at least one path.")
            for path in paths:
                _check_path(self.links, flow, path)

    @property
    def paths(self) -> tuple[tuple[int, ...], ...]:
        """All paths, flow by flow: path k is what action entry k sends on."""
        return tuple(path for paths in self.flows for path in paths)

    @property
    def path_flows(self) -> tuple[int, ...]:
        """The flow of each path."""
        return tuple(flow for flow, paths in enumerate(self.flows) for _ in paths)


def _check_path(links: Sequence[Link], flow: int, path: tuple[int, ...]) -> None:
    if not path:
        raise ValueError(f"Topology: every path of flow {flow} must cross at least one link.")
    for link in path:
        if not 0 <= link < len(links):
            raise ValueError(
                f"Topology: path {path} of flow {flow} uses link {link}, but there are only links"
                f" 0 to {len(links) - 1}."
            )
    if len(set(path)) < len(path):
        raise ValueError(f"Topology: path {path} of flow {flow} must not cross a link twice.")
    drawn = [(link, ends) for link in path if (ends := links[link].ends) is not None]
    reached: set[int] = set(drawn[0][1]) if drawn else set()
    for (before, _), (link, ends) in pairwise(drawn):
        meeting = reached & set(ends)
        if not meeting:
            raise ValueError(
                f"Topology: path {path} of flow {flow} goes from link {before} to link {link}, which do not"
                " meet in a node; list the links in the order in which they are crossed."
            )
        reached = set(ends) - meeting


class RatePolytope(NamedTuple):
    """The feasible rates { a : A a <= b, low <= a <= high }."""

    A: Float[np.ndarray, "m k"]
    b: Float[np.ndarray, " m"]
    low: Float[np.ndarray, " k"]
    high: Float[np.ndarray, " k"]


def _incidence(topology: Topology) -> Float[np.ndarray, "l k"]:
    """Entry (l, k) is 1 where path k crosses link l."""
    incidence = np.zeros((len(topology.links), len(topology.paths)))
    for number, path in enumerate(topology.paths):
        incidence[list(path), number] = 1.0
    return incidence


def rate_bounds(topology: Topology) -> Float[np.ndarray, " k"]:
    """The largest rate of each path alone: the smallest bandwidth on it."""
    return np.array([min(topology.links[link].rate for link in path) for path in topology.paths])


def link_rows(
    topology: Topology,
) -> tuple[Float[np.ndarray, "m k"], Float[np.ndarray, " m"], Int[np.ndarray, " m"]]:
    """The constraints `A a <= b` of the links that several paths share, and the link each row is named after.

    A link of a single path is a bound (`rate_bounds`), not a row; a link that its paths cannot fill even at
    their bounds (the access links of NSFNET) constrains nothing; of links with the same paths the tightest
    is kept, the lowest id among equals. That leaves eight rows on NSFNET: links 16, 17, 19 (= 21), 22, 23,
    24, 25 and 27 (= 30); links 18, 20 (path 5) and 26, 28, 29 (path 7) are the bound 50. Rows that another
    row implies (17 by 22, 19 by 16, 25 by 23) are kept here, since each names a link that can be
    overloaded.
    """
    incidence, high = _incidence(topology), rate_bounds(topology)
    tightest: dict[bytes, int] = {}
    for link, row in enumerate(incidence):
        rate = topology.links[link].rate
        if row.sum() < 2 or row @ high <= rate:
            continue
        known = tightest.setdefault(row.tobytes(), link)
        if rate < topology.links[known].rate:
            tightest[row.tobytes()] = link
    link_ids = np.array(sorted(tightest.values()), dtype=np.int64)
    return incidence[link_ids], np.array([topology.links[link].rate for link in link_ids]), link_ids


def rate_polytope(topology: Topology) -> RatePolytope:
    """The feasible rates with no redundant row: what a solver should be given.

    With rates that cannot be negative, a row is implied by any other whose paths contain its own and whose
    bandwidth is not larger. On NSFNET five of the eight `link_rows` remain: links 16, 22, 23, 24 and 27.
    """
    A, b, _ = link_rows(topology)
    needed = [
        not any(other != row and (A[other] >= A[row]).all() and b[other] <= b[row] for other in range(len(b)))
        for row in range(len(b))
    ]
    high = rate_bounds(topology)
    return RatePolytope(A[needed], b[needed], np.zeros_like(high), high)


_CORE_ENDS = (
    (0, 1),
    (0, 4),
    (1, 2),
    (1, 3),
    (2, 4),
    (3, 5),
    (4, 7),
    (5, 6),
    (5, 10),
    (6, 7),
    (6, 8),
    (7, 11),
    (8, 9),
    (9, 10),
    (10, 11),
)

NSFNET = Topology(
    links=(
        *(Link(rate=5000.0) for _ in range(16)),
        *(Link(rate=50.0, ends=ends) for ends in _CORE_ENDS),
    ),
    flows=(
        ((0, 16, 19, 21, 24, 14), (0, 16, 19, 21, 23, 25, 27, 30, 14), (0, 17, 22, 27, 30, 14)),
        ((0, 16, 19, 21, 23, 25, 10), (0, 16, 18, 20, 22, 10), (0, 17, 22, 10)),
        ((7, 23, 26, 28, 29, 14), (7, 24, 14), (7, 23, 25, 27, 30, 14)),
    ),
    positions=(
        (0.0, 1.6),
        (1.3, 2.7),
        (1.6, 1.6),
        (3.0, 3.1),
        (1.7, 0.4),
        (4.7, 2.9),
        (4.6, 1.7),
        (4.0, 0.3),
        (5.8, 1.55),
        (6.9, 1.4),
        (8.0, 2.0),
        (6.4, 0.2),
    ),
)
"""The T3 backbone of the paper: 16 access links, 15 core links of 50 packets a second, three flows of three
paths each (0 to 10, 0 to 7 and 5 to 10)."""

NSFNET_20 = Topology(
    links=NSFNET.links,
    flows=(
        ((0, 16, 19, 21, 24, 14), (0, 17, 6), (0, 17, 22, 27, 15), (0, 16, 19, 21, 23, 26, 28, 13)),
        ((7, 23, 25, 10), (7, 24, 30, 15), (7, 21, 19, 16, 1), (7, 24, 29, 13)),
        ((14, 29, 28, 12), (14, 30, 27, 22, 6), (14, 24, 21, 4), (14, 30, 27, 22, 20, 3)),
        ((12, 26, 25, 10), (12, 28, 29, 30, 15), (12, 26, 25, 22, 17, 1), (12, 26, 23, 21, 19, 2)),
        ((6, 17, 1), (6, 22, 25, 9), (6, 22, 25, 26, 11), (6, 20, 3)),
    ),
    positions=NSFNET.positions,
)
"""The same backbone with five flows of four paths each, as in ARAM's larger task: from the nodes 0, 5, 10, 8 and 4,
each path to another node. 14 core links, all but that from 1 to 2, carry some of them.

Its rates differ from ARAM's constraint in one row that matters: that counts path 6 (5 to 0, over 3 and 1) at the link
from 9 to 10, which the path does not cross, and not at the link from 1 to 3, which it does.
"""

TOPOLOGIES: Mapping[str, Topology] = {"nsfnet": NSFNET, "nsfnet-20": NSFNET_20}
"""By the name under which an environment takes them."""
