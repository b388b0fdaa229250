"""The step of bike sharing against the recordings, a plain loop, and what bikes cannot do."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from feasible.envs.bike_sharing import Rules, bike_system, play
from tests.envs.bike_sharing_reference import play_loop, split

DATA = Path(__file__).parents[1] / "data"


def recording(stations: int) -> dict[str, np.ndarray]:
    with np.load(DATA / f"bike_sharing_{stations}.npz") as stored:
        return {name: stored[name] for name in stored.files}


@pytest.mark.parametrize("stations", [3, 5])
def test_constants_are_the_recorded_ones(stations: int) -> None:
    known, system = recording(stations), bike_system(stations)
    np.testing.assert_array_equal(system.neighbours, known["nearest_order"][:, 1:])
    np.testing.assert_array_equal(system.capacities, known["capacities"])
    np.testing.assert_array_equal(system.initial, known["initial_allocation"])
    np.testing.assert_allclose(system.distances, known["distance"], atol=1e-8)
    assert system.bikes == known["nbikes"]
    np.testing.assert_array_equal(system.low, np.full(stations, {3: 20.0, 5: 10.0}[stations]))


@pytest.mark.parametrize("stations", [3, 5])
def test_every_recorded_step_of_all_episodes_at_once(stations: int) -> None:
    known, system = recording(stations), bike_system(stations)
    bikes = known["obs"][:, stations : 2 * stations]
    absent = np.isnan(known["action"]).any(axis=1)
    assert absent.sum() == 100
    given_action = play(system, bikes[~absent], known["demand"][~absent], known["action"][~absent])
    no_action = play(system, bikes[absent], known["demand"][absent], None)
    for rows, outcome in ((~absent, given_action), (absent, no_action)):
        after = known["next_obs"][rows]
        expected = {
            "allocation": after[:, stations : 2 * stations],
            "outgoing": after[:, :stations],
            "flows": known["served"][rows],
            **{name: known[name][rows] for name in ("moving", "lost", "overflow", "revenue", "reward")},
        }
        for name, values in expected.items():
            np.testing.assert_allclose(getattr(outcome, name), values, rtol=0, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("stations", [3, 5])
def test_recorded_steps_chain_within_an_episode(stations: int) -> None:
    """Each step continues from our own allocation, so an error would grow instead of being corrected."""
    known, system = recording(stations), bike_system(stations)
    assert len(known["episodes"]) == 55
    for episode in known["episodes"]:
        rows = np.flatnonzero(known["ep"] == episode)
        bikes = known["obs"][rows[0], stations : 2 * stations]
        for row in rows:
            action = known["action"][row]
            outcome = play(system, bikes, known["demand"][row], None if np.isnan(action).any() else action)
            bikes = outcome.allocation
            np.testing.assert_allclose(bikes, known["next_obs"][row, stations:-1], rtol=0, atol=1e-9)
            np.testing.assert_allclose(outcome.reward, known["reward"][row], rtol=0, atol=1e-9)


@pytest.mark.parametrize("stations", [2, 3, 5, 9])
@pytest.mark.parametrize("fractional", [False, True])
@pytest.mark.parametrize("highest", [3, 24])
def test_vectorised_equals_the_plain_loop(stations: int, fractional: bool, highest: int) -> None:
    generator = np.random.default_rng([stations, fractional, highest])
    system = bike_system(stations, capacities=generator.integers(20, 40, stations), bikes=15 * stations)
    copies = 200
    demand = generator.integers(0, highest, (copies, stations, stations), endpoint=True).astype(float)
    demand[:, range(stations), range(stations)] = 0.0
    bikes, action = (generator.dirichlet(np.ones(stations), copies) * system.bikes for _ in range(2))
    bikes, action = (np.minimum(x if fractional else np.rint(x), system.capacities) for x in (bikes, action))
    outcome = play(system, bikes, demand, action)
    order = np.concatenate([np.arange(stations)[:, None], system.neighbours], axis=1).tolist()
    capacities = system.capacities.tolist()
    for copy in range(copies):
        expected = play_loop(bikes[copy].tolist(), demand[copy].tolist(), action[copy].tolist(), capacities, order)
        for name, value in expected._asdict().items():
            np.testing.assert_allclose(getattr(outcome, name)[copy], value, rtol=0, atol=1e-10, err_msg=name)


def test_shortage_by_hand() -> None:
    """5 bikes for demands 3, 3, 3, 1: 1.5, 1.5, 1.5, 0.5 become 2, 2, 2, 0, and the last 2 becomes 1."""
    system = bike_system(5)
    bikes = np.array([5.0, 35.0, 35.0, 35.0, 35.0])
    demand = np.zeros((5, 5))
    demand[0] = [0, 3, 3, 3, 1]
    outcome = play(system, bikes, demand)
    np.testing.assert_array_equal(outcome.flows[0], [0, 2, 2, 1, 0])
    assert outcome.lost == 5.0


def test_last_destination_can_be_left_with_less_than_nothing() -> None:
    """9 bikes over six destinations of 2 are 1.5 each: five times 2 leave -1 for the sixth."""
    system = bike_system(7)
    demand = np.zeros((7, 7))
    demand[0, 1:] = 2.0
    bikes = np.array([9.0, 20.0, 20.0, 20.0, 20.0, 20.0, 20.0])
    np.testing.assert_array_equal(play(system, bikes, demand).flows[0], [0, 2, 2, 2, 2, 2, -1])
    corrected = play(bike_system(7, rules=Rules.corrected), bikes, demand).flows[0]
    np.testing.assert_array_equal(corrected, [0, 2, 2, 2, 1, 1, 1])


def test_bikes_vanish_where_every_flow_rounds_to_nothing() -> None:
    """2 bikes for four demands of 4 are four halves, which round to zero."""
    demand = np.zeros((5, 5))
    demand[0, 1:] = 4.0
    bikes = np.array([2.0, 20.0, 20.0, 20.0, 20.0])
    recorded = play(bike_system(5), bikes, demand)
    assert recorded.vanished == 2.0
    assert recorded.allocation.sum() == 80.0
    corrected = play(bike_system(5, rules=Rules.corrected), bikes, demand)
    assert corrected.vanished == 0.0
    np.testing.assert_array_equal(corrected.flows[0], [0, 1, 1, 0, 0])


def test_overflow_order_is_the_difference_between_the_rules() -> None:
    """0 and 1 have two bikes too many and both 2 as nearest: by number 0 goes there, by distance 1 does."""
    distances = np.full((5, 5), 9.0)
    for i, j, distance in ((0, 2, 2.0), (1, 2, 1.0), (0, 3, 3.0), (1, 4, 3.0)):
        distances[i, j] = distances[j, i] = distance
    bikes = np.array([30.0, 30.0, 28.0, 10.0, 10.0])
    demand = np.zeros((5, 5))
    demand[3, 0] = demand[4, 1] = 2.0
    for rules, expected in ((Rules.recorded, [30, 30, 30, 8, 10]), (Rules.corrected, [30, 30, 30, 10, 8])):
        system = bike_system(5, capacities=30, bikes=108, distances=distances, rules=rules)
        outcome = play(system, bikes, demand)
        np.testing.assert_array_equal(outcome.allocation, expected)
        assert outcome.overflow == 4.0


def test_excess_stays_where_there_is_no_room_at_all() -> None:
    system = bike_system(2, capacities=10, bikes=20)
    demand = np.array([[0.0, 3.0], [0.0, 0.0]])
    outcome = play(system, np.array([11.0, 10.0]), demand)
    np.testing.assert_array_equal(outcome.allocation, [10, 11])
    assert outcome.overflow == 2.0


@settings(max_examples=60, deadline=None)
@given(
    bikes=arrays(np.int64, 5, elements=st.integers(0, 35)),
    demand=arrays(np.int64, (5, 5), elements=st.integers(0, 30)),
)
def test_bikes_are_conserved(bikes: np.ndarray, demand: np.ndarray) -> None:
    np.fill_diagonal(demand, 0)
    held, wanted = bikes.astype(float), demand.astype(float)
    recorded = play(bike_system(5), held, wanted)
    outgoing = demand.sum(axis=1)
    lost_at = [bikes[i] for i in range(5) if bikes[i] < outgoing[i] and not any(split(held[i], wanted[i].tolist()))]
    assert recorded.allocation.sum() == pytest.approx(bikes.sum() - sum(lost_at), abs=1e-9)
    assert recorded.allocation.max() <= 35.0 + 1e-9
    corrected = play(bike_system(5, rules=Rules.corrected), held, wanted)
    assert corrected.allocation.sum() == bikes.sum()
    assert corrected.allocation.max() <= 35.0
    assert corrected.allocation.min() >= 0.0
    assert np.all((corrected.flows >= 0.0) & (corrected.flows <= wanted))
    np.testing.assert_array_equal(corrected.flows, np.rint(corrected.flows))


@settings(max_examples=60, deadline=None)
@given(bikes=st.integers(0, 40), demand=st.lists(st.integers(0, 30), min_size=4, max_size=4))
def test_corrected_flows_are_the_largest_remainders(bikes: int, demand: list[int]) -> None:
    """Against exact fractions, ties to the lower number."""
    wanted = np.zeros((5, 5))
    wanted[0, 1:] = demand
    held = np.array([bikes, 0, 0, 0, 0], dtype=float)
    system = bike_system(5, capacities=50, rules=Rules.corrected)
    flows = play(system, held, wanted).flows[0, 1:]
    total = sum(demand)
    if bikes >= total:
        np.testing.assert_array_equal(flows, demand)
        return
    quotas = [Fraction(bikes * d, total) for d in demand]
    expected = [int(quota) for quota in quotas]
    by_remainder = sorted(range(4), key=lambda j: (expected[j] - quotas[j], j))
    for j in by_remainder[: bikes - sum(expected)]:
        expected[j] += 1
    # Floating point may order remainders that are equal as fractions either way.
    assert flows.sum() == bikes
    for j in range(4):
        tied = [k for k in range(4) if quotas[k] % 1 == quotas[j] % 1]
        if len(tied) == 1:
            assert flows[j] == expected[j]
        assert abs(Fraction(int(flows[j])) - quotas[j]) < 1


def test_hundreds_of_stations() -> None:
    generator = np.random.default_rng(0)
    system = bike_system(200)
    demand = np.where(np.eye(200), 0, generator.integers(0, 2, (3, 200, 200))).astype(float)
    bikes = np.tile(system.initial, (3, 1))
    for rules in (Rules.recorded, Rules.corrected):
        outcome = play(bike_system(200, rules=rules), bikes, demand)
        total = outcome.allocation.sum(axis=1) + outcome.vanished
        np.testing.assert_allclose(total, 6000.0, rtol=0, atol=1e-8)
    order = np.concatenate([np.arange(200)[:, None], system.neighbours], axis=1).tolist()
    expected = play_loop(bikes[0].tolist(), demand[0].tolist(), None, system.capacities.tolist(), order)
    outcome = play(system, bikes, demand)
    np.testing.assert_allclose(outcome.allocation[0], expected.allocation, rtol=0, atol=1e-9)


def test_a_rule_that_is_not_known_is_refused() -> None:
    with pytest.raises(ValueError, match="shortage must be 'last_destination' or 'largest_remainder'"):
        Rules(shortage="first")  # pyright: ignore[reportArgumentType]
