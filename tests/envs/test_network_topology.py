"""Networks as data: the rate constraints that follow from the paths, and what is refused."""

import dataclasses
from itertools import chain

import numpy as np
import pytest
from scipy.optimize import linprog

from feasible.envs.network import NSFNET, Link, NSFNetEnv, NSFNetVectorEnv, Rules, Topology, link_rows, rate_polytope
from feasible.envs.network.topology import NSFNET_20
from tests.envs.network_reference import PATHS, bandwidth

DIAMOND = Topology(
    links=(
        Link(rate=100.0, ends=(0, 1)),
        Link(rate=30.0, ends=(1, 2)),
        Link(rate=40.0, ends=(1, 3)),
        Link(rate=20.0, ends=(2, 3)),
        Link(rate=60.0, ends=(0, 1)),
    ),
    flows=(((0, 1, 3), (0, 2), (4, 2)), ((4, 1),)),
    positions=((0.0, 0.0), (1.0, 0.0), (2.0, 1.0), (2.0, -1.0)),
)


def largest_load(link_paths: np.ndarray, topology: Topology) -> float:
    """The largest sum of rates over these paths that the polytope allows, by an outside solver."""
    polytope = rate_polytope(topology)
    bounds = list(zip(polytope.low, polytope.high, strict=True))
    solution = linprog(-link_paths, A_ub=polytope.A, b_ub=polytope.b, bounds=bounds)
    assert solution.success
    return -solution.fun


def test_nsfnet_has_the_paths_of_the_specification():
    assert NSFNET.paths == PATHS
    assert NSFNET.path_flows == (0, 0, 0, 1, 1, 1, 2, 2, 2)
    assert [link.rate for link in NSFNET.links] == [bandwidth(link) for link in range(31)]


def test_nsfnet_link_rows_are_the_specified_eight():
    A, b, link_ids = link_rows(NSFNET)
    specified = {
        16: (1, 2, 4, 5),
        17: (3, 6),
        19: (1, 2, 4),
        22: (3, 5, 6),
        23: (2, 4, 7, 9),
        24: (1, 8),
        25: (2, 4, 9),
        27: (2, 3, 9),
    }
    assert list(link_ids) == list(specified)
    for row, paths in zip(A, specified.values(), strict=True):
        assert tuple(np.flatnonzero(row) + 1) == paths
    assert (b == 50.0).all()


@pytest.mark.parametrize("topology", [NSFNET, DIAMOND], ids=["nsfnet", "diamond"])
def test_rate_polytope_is_the_set_of_all_link_constraints(topology: Topology):
    polytope = rate_polytope(topology)
    crossing = np.array([[link in path for path in topology.paths] for link in range(len(topology.links))])
    rng = np.random.default_rng(0)
    for rates in rng.uniform(-5.0, 60.0, (2000, len(topology.paths))):
        within_links = (crossing @ rates <= [link.rate for link in topology.links]).all()
        within = (polytope.A @ rates <= polytope.b).all() and (rates <= polytope.high).all()
        assert within == within_links or rates.min() < 0.0
    for link, paths in zip(topology.links, crossing.astype(float), strict=True):
        if paths.any():
            assert largest_load(paths, topology) <= link.rate + 1e-9
    for row, limit in zip(polytope.A, polytope.b, strict=True):
        # No row is redundant: without it more would be allowed.
        others = [i for i in range(len(polytope.b)) if (polytope.A[i] != row).any()]
        relaxed = linprog(
            -row,
            A_ub=polytope.A[others],
            b_ub=polytope.b[others],
            bounds=list(zip(polytope.low, polytope.high, strict=True)),
        )
        assert -relaxed.fun > limit + 1e-6


def test_nsfnet_polytope_is_the_papers():
    polytope = rate_polytope(NSFNET)
    assert (polytope.low == 0.0).all()
    assert (polytope.high == 50.0).all()
    assert largest_load(np.ones(9), NSFNET) == pytest.approx(150.0)


def test_diamond_rows_by_hand():
    A, b, link_ids = link_rows(DIAMOND)
    # Link 0 (100) cannot be filled: its paths are bounded by 20 and 40. Link 3 is the bound of path 1.
    assert list(link_ids) == [1, 2, 4]
    np.testing.assert_array_equal(A, [[1, 0, 0, 1], [0, 1, 1, 0], [0, 0, 1, 1]])
    np.testing.assert_array_equal(b, [30.0, 40.0, 60.0])
    np.testing.assert_array_equal(rate_polytope(DIAMOND).high, [20.0, 40.0, 40.0, 30.0])


@pytest.mark.parametrize(
    ("field", "change", "message"),
    [
        ("links", (), "links must name at least one link"),
        ("flows", (), "flows must name at least one flow"),
        ("flows", ((),), "flow 0 must have at least one path"),
        ("flows", (((),),), "must cross at least one link"),
        ("flows", (((0, 7),),), "uses link 7, but there are only links 0 to 4"),
        ("flows", (((0, -1),),), "uses link -1"),
        ("flows", (((0, 1, 0),),), "must not cross a link twice"),
        ("flows", (((0, 3),),), "from link 0 to link 3, which do not meet"),
        ("flows", (((1, 2, 0, 4),),), "link 2 to link 0, which do not meet"),
        ("positions", ((0.0, 0.0),), "ends at node 1, but positions names only nodes 0 to 0"),
        ("positions", ((0.0, 0.0), (1.0, np.nan), (2.0, 1.0), (2.0, -1.0)), "positions must be finite"),
        ("return_speedup", 0.0, "return_speedup must be a positive number"),
    ],
)
def test_bad_topology_is_refused(field: str, change: object, message: str):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(DIAMOND, **{field: change})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rate": 0.0}, "rate must be a positive number"),
        ({"rate": np.inf}, "rate must be a positive number"),
        ({"rate": 1.0, "propagation": -0.1}, "propagation must be zero or more"),
        ({"rate": 1.0, "queue_size": 0}, "queue_size must be a whole number of at least 1"),
        ({"rate": 1.0, "queue_size": 1.5}, "queue_size must be a whole number"),
        ({"rate": 1.0, "ends": (2, 2)}, "ends must be two different nodes"),
    ],
)
def test_bad_link_is_refused(arguments: dict[str, float], message: str):
    with pytest.raises(ValueError, match=message):
        Link(**arguments)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"emission": "steady"}, "emission must be 'burst' or 'paced'"),
        ({"drops_by": "path"}, "drops_by must be 'position' or 'flow'"),
        ({"tick_rate": 0.0}, "tick_rate must be between 1 and 20000"),
        ({"first_step": 0.0}, "first_step must be a positive number"),
        ({"uncounted_packets": -1}, "uncounted_packets must be 0 or more"),
    ],
)
def test_bad_rules_are_refused(arguments: dict[str, object], message: str):
    with pytest.raises(ValueError, match=message):
        Rules(**arguments)  # pyright: ignore[reportArgumentType]


def test_corrected_rules_differ_from_recorded_ones_in_every_quirk():
    recorded, corrected = (dataclasses.asdict(rules) for rules in (Rules.recorded, Rules.corrected))
    assert {name for name in recorded if recorded[name] == corrected[name]} == {"tick_rate"}


def test_every_path_reaches_its_flow_destination():
    for flow, ends in zip(NSFNET.flows, ((0, 10), (0, 7), (5, 10)), strict=True):
        for path in flow:
            visits = list(chain.from_iterable(NSFNET.links[link].ends or () for link in path))
            assert sorted(node for node in visits if visits.count(node) == 1) == sorted(ends)


# The paths through each link of ARAM's 20-path constraint, links 16, 17 and 19 to 30, but for path 6: it goes over the
# links 21, 19 and 16, and the peer counts it at 29 instead of 19.
PATHS_OF_LINKS = {
    16: {0, 3, 6},
    17: {1, 2, 14, 16},
    19: {0, 3, 6, 15},
    20: {11, 19},
    21: {0, 3, 6, 10, 15},
    22: {2, 9, 11, 14, 17, 18},
    23: {3, 4, 15},
    24: {0, 5, 7, 10},
    25: {4, 12, 14, 17, 18},
    26: {3, 12, 14, 15, 18},
    27: {2, 9, 11},
    28: {3, 8, 13},
    29: {7, 8, 13},
    30: {5, 9, 11, 13},
}


def test_the_20_paths_cross_the_links_they_are_known_for() -> None:
    A, b, links = link_rows(NSFNET_20)
    assert {int(link): set(np.flatnonzero(row)) for link, row in zip(links, A, strict=True)} == PATHS_OF_LINKS
    assert (b == 50.0).all()
    assert [len(paths) for paths in NSFNET_20.flows] == [4] * 5
    high = rate_polytope(NSFNET_20).high
    assert (high == 50.0).all()


def test_networks_and_rules_are_taken_by_their_names() -> None:
    named, given = NSFNetEnv("nsfnet-20", "corrected", highest_rate=50.0), NSFNetEnv(NSFNET_20, Rules.corrected)
    assert (named.topology, named.rules) == (given.topology, given.rules)
    assert named.action_space.high.tolist() == [50.0] * 20  # pyright: ignore[reportAttributeAccessIssue]
    copies = NSFNetVectorEnv(2, "nsfnet-20", highest_rate=50.0)
    single = NSFNetEnv("nsfnet-20", highest_rate=50.0)
    np.testing.assert_array_equal(copies.reset(seed=4)[0][1], single.reset(seed=5)[0])
    rates = np.full((2, 20), 8.0)
    for _ in range(3):
        obs, rewards, *_ = copies.step(rates)
        shown, reward, *_ = single.step(rates[1])
        np.testing.assert_array_equal(obs[1], shown)
        assert rewards[1] == reward
    with pytest.raises(ValueError, match="topology: There is no topology 'nsfnet-2'; did you mean"):
        NSFNetEnv("nsfnet-2")
    with pytest.raises(ValueError, match="rules: There is no set of rules 'correct'; did you mean 'corrected'"):
        NSFNetEnv(rules="correct")
    with pytest.raises(ValueError, match="highest_rate must be a positive number"):
        NSFNetEnv(highest_rate=0.0)
