"""The portfolio: its market and its books against a plain loop, copies against single ones, saved states, bad input."""

import math

import numpy as np
import pytest
from gymnasium.utils import seeding

from feasible.envs.portfolio import Market, PortfolioEnv, PortfolioVectorEnv


def weights_like(generator: np.random.Generator, *shape: int) -> np.ndarray:
    return generator.dirichlet(np.ones(13), shape).astype(np.float32)


def test_the_market_is_the_one_that_is_stated() -> None:
    """Against the formulas, asset by asset, from the same draws."""
    market = Market(4)
    signals, growth = market.draw(np.random.default_rng(7), 5)
    drawn = np.random.default_rng(7).standard_normal((6, 7))
    for asset in range(1, 4):
        volatility = 0.03 + 0.06 * (asset - 1) / 2
        signal = 0.015 * drawn[0, asset - 1]
        for month in range(5):
            assert signals[month, asset] == pytest.approx(signal)
            shock = math.sqrt(0.3) * drawn[month, 6] + math.sqrt(0.7) * drawn[month, 3 + asset - 1]
            log_return = signal + 0.1 * volatility - volatility**2 / 2 + volatility * shock
            assert growth[month, asset] == pytest.approx(math.exp(log_return))
            signal = 0.8 * signal + 0.6 * 0.015 * drawn[month + 1, asset - 1]
    assert (growth[:, 0] == 1.0).all()
    assert (signals[:, 0] == 0.0).all()


def test_books_are_kept_as_by_hand() -> None:
    env = PortfolioEnv(cost=0.01)
    obs, _ = env.reset(seed=3)
    signals, growth = Market().draw(seeding.np_random(3)[0], 12)
    held, wealth = [1.0 / 13] * 13, 1.0
    generator = np.random.default_rng(0)
    for month in range(12):
        np.testing.assert_allclose(obs, [*held, *signals[month], month / 12], rtol=1e-12)
        action = weights_like(generator)
        obs, reward, terminated, truncated, info = env.step(action)
        wanted = [float(share) / sum(map(float, action)) for share in action]
        traded = sum(abs(new - old) for new, old in zip(wanted, held, strict=True))
        grown = [share * factor for share, factor in zip(wanted, growth[month].tolist(), strict=True)]
        factor = (1.0 - 0.01 * traded) * sum(grown)
        wealth *= factor
        held = [share / sum(grown) for share in grown]
        assert reward == pytest.approx(100.0 * math.log(factor))
        assert info == pytest.approx({"traded": traded, "wealth": wealth})
        assert (terminated, truncated) == (month == 11, False)


def test_copies_equal_single_portfolios_and_restored_ones_continue() -> None:
    copies, again = PortfolioVectorEnv(3), PortfolioVectorEnv(3, threads=2)
    singles = [PortfolioEnv() for _ in range(3)]
    obs, _ = copies.reset(seed=20)
    for copy, single in enumerate(singles):
        np.testing.assert_array_equal(obs[copy], single.reset(seed=20 + copy)[0])
    generator = np.random.default_rng(1)
    for step in range(1, 31):
        if step == 9:
            again.set_state(copies.get_state())
            other = PortfolioEnv()
            other.set_state(singles[1].get_state())
            singles[1] = other
        actions = weights_like(generator, 3)
        obs, rewards, terminated, truncated, info = copies.step(actions)
        assert terminated.tolist() == [step % 12 == 0] * 3
        assert not truncated.any()
        if step >= 9:
            np.testing.assert_array_equal(again.step(actions)[0], obs)
        for copy, single in enumerate(singles):
            shown, reward, ended, _, _ = single.step(actions[copy])
            assert rewards[copy] == reward
            if ended:
                np.testing.assert_array_equal(np.asarray(info["final_obs"])[copy], shown)
                shown, _ = single.reset()
            np.testing.assert_array_equal(obs[copy], shown)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"bound": 0.07}, "bound must be from 1/13 to 1, since 13 weights must add up to 1, not 0.07"),
        ({"bound": np.nan}, "bound must be from 1/13 to 1"),
        ({"turnover": -0.1}, "turnover must be above 0 and at most 2, where all is sold and bought anew, not -0.1"),
        ({"turnover": 3.0}, "turnover must be above 0 and at most 2"),
        ({"cost": 0.5}, "cost must be from 0 to below 0.5"),
        ({"assets": 1}, "assets must be an integer of at least 2, cash and another, not 1"),
        ({"episode_length": 0}, "episode_length must be an integer of at least 1"),
    ],
)
def test_bad_options_are_named(options: dict[str, float], words: str) -> None:
    for build in (PortfolioEnv, PortfolioVectorEnv):
        with pytest.raises(ValueError, match=words):
            build(**options)  # pyright: ignore[reportArgumentType]


def test_calls_out_of_order_and_of_the_wrong_shape_are_named() -> None:
    env = PortfolioEnv(render_mode="rgb_array")
    for call in (env.render, env.get_state, lambda: env.step(np.ones(13))):
        with pytest.raises(RuntimeError, match="reset must be called before"):
            call()
    env.reset(seed=0)
    with pytest.raises(ValueError, match="action must have shape"):
        env.step(np.ones(12))
    with pytest.raises(ValueError, match="action must be finite weights, some of them positive"):
        env.step(np.zeros(13))
    with pytest.raises(ValueError, match=r"state: signals must have shape \(1, 6, 13\)"):
        PortfolioEnv(episode_length=5).set_state(env.get_state())
    first = env.render()
    env.step(np.eye(13)[3])
    later = env.render()
    assert first is not None
    assert later is not None
    assert first.shape == later.shape
    assert (first != later).any()
    assert PortfolioEnv().render() is None
