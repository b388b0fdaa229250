"""The exact decision process of bike sharing against joint simulation, the recordings and Bellman's equation."""

from pathlib import Path

import numpy as np
import pytest

from feasible.envs.bike_sharing import BikeSystem, bike_system, play
from feasible.envs.bike_sharing.env import EPISODE_LENGTH
from feasible.paper.optimum import (
    DISCOUNT,
    NOISE,
    Model,
    action_returns,
    build_model,
    critical_price,
    discounted,
    finite_horizon,
    start_of,
)

RECORDING = Path(__file__).parents[1] / "data" / "bike_sharing_3.npz"


@pytest.fixture(scope="module")
def system() -> BikeSystem:
    return bike_system(3)


@pytest.fixture(scope="module")
def model(system: BikeSystem) -> Model:
    return build_model(system)


def demands(rng: np.random.Generator, copies: int) -> np.ndarray:
    demand = rng.integers(5, 25, size=(copies, 3, 3)).astype(np.float64)
    demand[:, range(3), range(3)] = 0.0
    return demand


def test_the_model_has_all_allocations_and_is_stochastic(model: Model) -> None:
    assert model.allocations.shape == (136, 3)
    np.testing.assert_array_equal(model.allocations.sum(axis=1), 90.0)
    np.testing.assert_allclose(model.kernel.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    apart = np.abs(model.allocations[:, None] - model.allocations[None]).sum(axis=2)
    np.testing.assert_allclose(model.moving, apart, rtol=0, atol=1e-12)  # two for each bike that is moved


@pytest.mark.parametrize("stock", [(30, 30, 30), (20, 35, 35), (35, 22, 33)])
def test_convolved_stations_equal_joint_simulation(model: Model, system: BikeSystem, stock: tuple[int, ...]) -> None:
    copies = 200_000
    row = int(np.flatnonzero((model.allocations == stock).all(axis=1))[0])
    bikes = np.tile(model.allocations[row], (copies, 1))
    outcome = play(system, bikes, demands(np.random.default_rng(row), copies))
    error = outcome.reward.std() / copies**0.5
    assert abs(outcome.reward.mean() + model.cost[row]) < 4 * error
    whole = np.rint(outcome.allocation)
    assert np.abs(outcome.allocation - whole).max() < NOISE
    counts = (whole[:, None] == model.allocations[None]).all(axis=2).sum(axis=0)
    assert counts.sum() == copies
    expected = copies * model.kernel[row]
    assert (counts[expected == 0.0] == 0).all()
    # Pearson's statistic with f degrees of freedom has mean f and variance 2 f.
    frequent = expected > 5.0
    statistic = ((counts - expected)[frequent] ** 2 / expected[frequent]).sum()
    freedom = frequent.sum() - 1
    assert statistic < freedom + 4 * (2 * freedom) ** 0.5


def test_staying_put_returns_what_simulated_and_recorded_episodes_do(model: Model, system: BikeSystem) -> None:
    expected = finite_horizon(model)[-1].staying[start_of(model, system)]
    rng, copies = np.random.default_rng(0), 2_000
    bikes, returns = np.tile(system.initial, (copies, 1)), np.zeros(copies)
    for _ in range(EPISODE_LENGTH):
        outcome = play(system, bikes, demands(rng, copies))
        bikes, returns = outcome.allocation, returns + outcome.reward
    assert abs(returns.mean() - expected) < 4 * returns.std() / copies**0.5
    with np.load(RECORDING) as known:
        stayed = np.isin(known["episode_policy"], ("keep", "keep_rint", "none_action"))
        episodes = known["episodes"][stayed & (known["episode_demand"] == "native")]
        recorded = [known["reward"][known["ep"] == episode].sum() for episode in episodes]
    assert len(recorded) == 6
    assert abs(np.mean(recorded) - expected) < 3 * returns.std() / len(recorded) ** 0.5


def test_staying_put_is_optimal_everywhere(model: Model) -> None:
    endless = discounted(model)
    assert endless.stays.all()
    residual = action_returns(model, endless.best, DISCOUNT).max(axis=1) - endless.best
    np.testing.assert_allclose(residual, 0.0, rtol=0, atol=1e-9)
    for optimum in finite_horizon(model):
        assert optimum.stays.all()
        np.testing.assert_allclose(optimum.best, optimum.staying, rtol=1e-12)


def test_the_critical_price_is_where_moving_starts_to_pay(model: Model, system: BikeSystem) -> None:
    critical = critical_price(model, discounted(model).staying, DISCOUNT)
    assert 0.0 < critical < system.costs.moving
    for factor, stays in ((1.001, True), (0.999, False)):
        cheaper = model._replace(moving=factor * critical * model.moved)
        optimum = discounted(cheaper)
        assert optimum.stays.all() == stays
        residual = action_returns(cheaper, optimum.best, DISCOUNT).max(axis=1) - optimum.best
        np.testing.assert_allclose(residual, 0.0, rtol=0, atol=1e-9)
        assert (optimum.best >= optimum.staying - NOISE).all()
