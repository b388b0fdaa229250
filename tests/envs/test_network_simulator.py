"""The compiled packet network against the plain event loop, closed forms and the conservation of packets."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from feasible.envs.network import NSFNET, Link, Rules, Topology, simulate_recorded
from feasible.envs.network.copies import Copies
from feasible.envs.network.randomness import (
    OTHER,
    SHARE,
    VALUE,
    fill_exponential,
    fill_gaps,
    next_word,
    poisson_gap_table,
)
from feasible.envs.network.state import DROPPED, FIRST, IN_FLIGHT, LAST, LATENCY, RECEIVED, SENT, THROUGHPUT
from tests.envs.network_reference import RecordedSource, ReferenceNetwork
from tests.envs.test_network_topology import DIAMOND

CORNER_RATES = [0.0, -0.0, 1e-14, 0.3, 1.0, 12.5, 49.999999, 50.0, 100.0, 400.0, -1.0, -1e-9]


def random_actions(rng: np.random.Generator, steps: int) -> np.ndarray:
    """Ordinary rates, corner cases, overload beyond the ticks, and now and then a negative first rate."""
    actions = rng.uniform(0.0, 30.0, (steps, 9))
    corner = rng.random((steps, 9)) < 0.4
    actions[corner] = rng.choice(CORNER_RATES, corner.sum())
    positive = rng.random(steps) < 0.8
    actions[positive, 0] = rng.uniform(0.0, 60.0, positive.sum())
    return actions


# A recorded service time does not know its link: with 20 ms each the access links are overloaded too.
@pytest.mark.parametrize(("seed", "service_time"), [(0, 0.02), (1, 0.02), (2, 0.004), (3, 0.001), (4, 0.001)])
def test_equals_the_plain_event_loop(seed: int, service_time: float):
    rng = np.random.default_rng(seed)
    actions = random_actions(rng, 15)
    services = rng.exponential(service_time, 200_000)
    gaps = 1.0 / (rng.poisson(500.0, 10_000) + 1.0)
    source = RecordedSource(services.tolist(), gaps.tolist())
    reference = ReferenceNetwork(source)
    used, expected = [source.gaps_used], []
    for action in actions:
        expected.append(reference.step(action.tolist()))
        used.append(source.gaps_used)
    # Not one gap more than the loop used.
    ours = simulate_recorded(actions, services, gaps[: used[-1]], np.diff([0, *used]))
    for name, values in ours.items():
        plain = np.array([step[name] for step in expected])
        np.testing.assert_allclose(values, plain, rtol=0.0, atol=1e-9, err_msg=name)
    assert (ours["drop"].sum() > 0) == (service_time == 0.02), "full queues are meant to be among the cases"


def test_drop_and_burst_corner_cases_by_hand():
    """Ceilings, silence and forgotten packets, read off the emission rule; no randomness matters for them."""
    copies = Copies(NSFNET, Rules.recorded, 1, probe_packets=False)
    copies.seed(0, np.random.default_rng(0))
    cases = {
        (12.5,) * 9: [13] * 9,
        (1e-12, 0.0, -0.0, 3.0, 2.0001, 0.0, 50.0, 0.0, 0.2): [1, 0, 0, 3, 3, 0, 50, 0, 1],
        (-1.0, 5.0, 5.0, 5.0, 5.0, 5.0, 5.0, 5.0, 5.0): [0] * 9,
        (5.0, -1.0, 5.0, 5.0, 5.0, 5.0, 5.0, 5.0, 5.0): [5, 0, 5, 5, 5, 5, 5, 5, 5],
    }
    copies.restart(0)
    copies.step(np.zeros((1, 9)))
    for action, sent in cases.items():
        copies.step(np.array([action]))
        assert copies.results().tally[0, SENT].tolist() == sent
    copies.step(np.full((1, 9), 100.0))
    assert 450 < copies.results().tally[0, SENT].sum() < 550


def packets_inside(copies: Copies) -> np.ndarray:
    """Packets of each path that are inside a server, found by walking the servers' lists."""
    state, (paths, stride) = copies.states[0], copies.wiring.route.shape
    counts = np.zeros(paths)
    leaves = state.tree_time.size // 2
    for server, ends in enumerate(state.server_ends.reshape(-1, 8)):
        if state.tree_time[leaves + server] == np.inf:
            continue
        packet, leaving = int(ends[FIRST]), -np.inf
        while True:
            assert state.packet_times[packet] >= leaving, "a FIFO lets no packet overtake"
            leaving = state.packet_times[packet]
            counts[int(state.packet_links[packet + 1]) // stride] += 1
            if packet == ends[LAST]:
                break
            packet = int(state.packet_links[packet])
    return counts


@settings(max_examples=40, deadline=None)
@given(data=st.data(), seed=st.integers(0, 2**31), corrected=st.booleans(), probe=st.booleans())
@pytest.mark.parametrize("topology", [NSFNET, DIAMOND], ids=["nsfnet", "diamond"])
def test_packets_are_conserved(topology: Topology, data: st.DataObject, seed: int, corrected: bool, probe: bool):
    """On every path: packets in flight before + sent = received + dropped + in flight after."""
    rules = Rules.corrected if corrected else Rules.recorded
    copies = Copies(topology, rules, 1, probe_packets=probe)
    copies.seed(0, np.random.default_rng(seed))
    copies.restart(0)
    paths = len(topology.paths)
    inside = packets_inside(copies)
    rates = st.one_of(st.floats(0.0, 100.0), st.sampled_from([*CORNER_RATES, 2000.0]))
    for action in data.draw(st.lists(st.lists(rates, min_size=paths, max_size=paths), min_size=1, max_size=8)):
        copies.step(np.array([action]))
        tally = copies.results().tally[0]
        after = packets_inside(copies)
        np.testing.assert_array_equal(inside + tally[SENT], tally[RECEIVED] + tally[DROPPED] + after)
        assert copies.states[0].counts[IN_FLIGHT] == after.sum()
        inside = after


def test_paced_emission_sends_exactly_the_rates():
    rates = np.array([[0.0, 0.25, 1.0, 3.7, 12.5, 20.0, 7.1, 40.0, 0.01]])
    copies = Copies(NSFNET, Rules.corrected, 1, probe_packets=False)
    copies.seed(0, np.random.default_rng(0))
    copies.restart(0)
    sent, seconds = np.zeros(9), 0.0
    for _ in range(200):
        copies.step(rates)
        outcome = copies.results()
        sent += outcome.tally[0, SENT]
        seconds += outcome.clock[0, 3]
    # A phase of at most one packet at either end.
    assert (np.abs(sent - rates[0] * seconds) <= 1.0 + 1e-9).all()


def test_corrected_delay_is_that_of_a_queue_in_closed_form():
    """One link, evenly spaced arrivals at rate 30 to a server of rate 50 (the queue D/M/1).

    With arrivals every 1/a seconds and exponential services of rate m, the mean time in the system is
    1/(m (1 - s)), where s = exp(-(m/a) (1 - s)).
    """
    link = Topology(links=(Link(rate=50.0, propagation=0.1),), flows=(((0,),),), return_speedup=1e6)
    copies = Copies(link, Rules.corrected, 1, probe_packets=False)
    copies.seed(0, np.random.default_rng(1))
    copies.restart(0)
    delays, weights = [], []
    for step in range(6000):
        copies.step(np.array([[30.0]]))
        outcome = copies.results()
        if step > 20:
            delays.append(outcome.flows[0, LATENCY, 0])
            weights.append(outcome.tally[0, RECEIVED, 0])
            assert outcome.flows[0, THROUGHPUT, 0] > 0.0
    share = 0.5
    for _ in range(200):
        share = np.exp(-(50.0 / 30.0) * (1.0 - share))
    mean = np.average(delays, weights=weights)
    assert mean == pytest.approx(0.1 + 1.0 / (50.0 * (1.0 - share)), rel=0.01)


def test_generator_is_xoshiro256plusplus():
    """First words from the state (1, 2, 3, 4), as the authors' C program gives them."""
    published = [
        41943041,
        58720359,
        3588806011781223,
        3591011842654386,
        9228616714210784205,
        9973669472204895162,
        14011001112246962877,
        12406186145184390807,
        15849039046786891736,
        10450023813501588000,
    ]
    state = [1, 2, 3, 4]
    for expected in published:
        word, *state = next_word(*(np.uint64(part) for part in state))
        assert word == expected


def test_services_are_exponential():
    words = np.random.default_rng(0).integers(0, 2**64, 4, dtype=np.uint64)
    block = np.empty(2_000_000)
    fill_exponential(words, block)
    assert stats.kstest(block, "expon").pvalue > 0.01
    # The tail beyond the lowest layer and the topmost layer have code of their own.
    tail = block[block > 7.7] - 7.7
    assert stats.binomtest(tail.size, block.size, np.exp(-7.7)).pvalue > 0.01
    assert stats.kstest(tail, "expon").pvalue > 0.01
    top = block[block < 0.05]
    assert stats.kstest(top, stats.truncexpon(b=0.05).cdf).pvalue > 0.01


@pytest.mark.parametrize("mean", [1.0, 30.0, 500.0, 1000.0, 40000.0])
def test_gap_table_is_the_poisson_law(mean: float):
    """The table as a law: the shares of all columns that give 1/(n + 1) add up to the Poisson probability."""
    table = poisson_gap_table(mean)
    columns = table.shape[1]
    law: dict[int, float] = {}
    for share, value, other in zip(table[SHARE], table[VALUE], table[OTHER], strict=True):
        for gap, weight in ((value, share), (other, 1.0 - share)):
            count = round(1.0 / gap - 1.0)
            law[count] = law.get(count, 0.0) + weight / columns
    counts = np.array(sorted(law))
    np.testing.assert_allclose([law[count] for count in counts], stats.poisson.pmf(counts, mean), rtol=1e-8, atol=1e-14)


def test_gaps_follow_the_table():
    words = np.random.default_rng(1).integers(0, 2**64, 4, dtype=np.uint64)
    block = np.empty(500_000)
    fill_gaps(words, poisson_gap_table(500.0), block)
    counts = np.rint(1.0 / block - 1.0).astype(int)
    edges = np.arange(440, 561, 5)
    observed = np.histogram(counts, np.concatenate([[-1], edges, [10**6]]))[0]
    probabilities = np.diff([0.0, *stats.poisson.cdf(edges - 1, 500.0), 1.0])
    assert stats.chisquare(observed, probabilities * block.size).pvalue > 0.01
