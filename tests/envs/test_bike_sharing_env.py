"""Bike sharing as an environment: recordings through `reset(options)`, seeds, states, refusals, batches."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from feasible.envs.bike_sharing import BikeSharingEnv, BikeSharingVectorEnv, Costs, Rules
from feasible.errors import InfeasibleActionError
from tests.envs.test_bike_sharing_dynamics import recording

REPORTED = ("lost", "overflow", "moving", "revenue")


def feasible_actions(env: BikeSharingEnv | BikeSharingVectorEnv, shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Integer allocations: the initial one with a few bikes moved around the ring."""
    generator = np.random.default_rng(seed)
    moves = generator.integers(0, 4, (*shape, env.system.stations))
    return (env.system.initial + moves - np.roll(moves, 1, axis=-1)).astype(np.float32)


@pytest.mark.parametrize("stations", [3, 5])
def test_recorded_episodes_through_the_environment(stations: int) -> None:
    known, env = recording(stations), BikeSharingEnv(stations)
    played = 0
    for episode in known["episodes"]:
        rows = np.flatnonzero(known["ep"] == episode)
        if not np.array_equal(known["action"][rows], np.rint(known["action"][rows])):
            continue
        start = known["obs"][rows[0], stations:-1]
        obs, info = env.reset(options={"demand": known["demand"][rows], "allocation": start})
        assert info == {}
        np.testing.assert_allclose(obs, known["obs"][rows[0]], rtol=0, atol=1e-9)
        for row in rows:
            obs, reward, terminated, truncated, info = env.step(known["action"][row])
            np.testing.assert_allclose(obs, known["next_obs"][row], rtol=0, atol=1e-9)
            assert reward == pytest.approx(known["reward"][row], abs=1e-9)
            assert (terminated, truncated) == (False, bool(known["done"][row]))
            for name in REPORTED:
                assert info[name] == pytest.approx(known[name][row], abs=1e-9)
        played += 1
    assert played >= 30


@pytest.mark.parametrize("stations", [3, 5])
def test_every_recorded_step_with_an_integer_action_as_an_episode_of_one_step(stations: int) -> None:
    """Also those in episodes with fractional or absent actions; some start from a fractional allocation."""
    known = recording(stations)
    rows = np.flatnonzero((known["action"] == np.rint(known["action"])).all(axis=1))
    bikes = known["obs"][rows, stations:-1]
    assert len(rows) > 4000
    assert (np.abs(bikes - np.rint(bikes)) > 1e-3).any(axis=1).sum() >= 5
    env = BikeSharingVectorEnv(len(rows), stations)
    env.reset(options={"demand": known["demand"][rows][:, None], "allocation": bikes})
    _, rewards, _, truncated, infos = env.step(known["action"][rows])
    assert truncated.all()
    final = np.asarray(infos["final_obs"])
    np.testing.assert_allclose(final[:, :-1], known["next_obs"][rows, :-1], rtol=0, atol=1e-9)
    np.testing.assert_allclose(rewards, known["reward"][rows], rtol=0, atol=1e-9)


def test_mean_returns_of_simple_policies_are_the_recorded_ones() -> None:
    """Fixed 30 everywhere: -2599 (BSS-3) and -16449 (BSS-5), from recordings with another generator."""
    for stations, expected in ((3, -2599.0), (5, -16449.0)):
        env = BikeSharingVectorEnv(400, stations)
        env.reset(seed=0)
        actions = np.full((400, stations), 30.0)
        returns = sum(env.step(actions)[1] for _ in range(100))
        assert np.mean(returns) == pytest.approx(expected, rel=0.03)


def test_demand_is_uniform_on_5_to_24_and_zero_on_the_diagonal() -> None:
    env = BikeSharingEnv(5)
    env.reset(seed=3)
    day = env.get_state()["demand"]
    assert day.shape == (100, 5, 5)
    assert not day[:, range(5), range(5)].any()
    drawn = day[:, ~np.eye(5, dtype=bool)]
    counts = np.bincount(drawn.ravel(), minlength=25)
    assert counts[:5].sum() == 0
    # Chi-square with 19 degrees of freedom: 43.8 is the 0.1% point.
    assert ((counts[5:] - 100.0) ** 2 / 100.0).sum() < 43.8


def test_every_episode_starts_at_the_initial_allocation_and_ends_by_truncation() -> None:
    env = BikeSharingEnv(3)
    for seed in (0, None):
        obs, _ = env.reset(seed=seed)
        np.testing.assert_array_equal(obs, [0, 0, 0, 30, 30, 30, 0])
        ends = [env.step([20, 35, 35])[2:4] for _ in range(100)]
        assert ends == [(False, False)] * 99 + [(False, True)]
    with pytest.raises(RuntimeError, match="reset must be called"):
        env.step([30, 30, 30])


def test_the_seed_alone_decides() -> None:
    def episode(seed: int) -> list[float]:
        env = BikeSharingEnv(5)
        env.reset(seed=seed)
        return [env.step([30] * 5)[1] for _ in range(20)]

    first = episode(11)
    np.random.seed(99)  # noqa: NPY002 -- the global generator must have no effect
    assert episode(11) == first
    assert episode(12) != first


def test_save_and_restore_in_the_middle_of_an_episode() -> None:
    env, other = BikeSharingEnv(5), BikeSharingEnv(5)
    actions = feasible_actions(env, (250,), seed=1)
    env.reset(seed=5)
    for action in actions[:37]:
        env.step(action)
    state = env.get_state()
    assert all(isinstance(value, np.ndarray) and value.dtype != object for value in state.values())
    other.reset(seed=77)
    other.set_state(state)
    for action in actions[37:]:
        ours, theirs = env.step(action), other.step(action)
        np.testing.assert_array_equal(ours[0], theirs[0])
        assert ours[1:] == theirs[1:]
        if ours[3]:
            np.testing.assert_array_equal(env.reset()[0], other.reset()[0])
    with pytest.raises(ValueError, match="state: allocation must have shape"):
        BikeSharingEnv(3).set_state(state)


INVALID = {
    "wrong total": [30, 30, 30, 30, 29],
    "negative": [-1, 46, 35, 35, 35],
    "above capacity": [36, 30, 30, 27, 27],
    "fraction": [30.5, 29.5, 30, 30, 30],
    "just outside the tolerance": [30.0004, 29.9996, 30, 30, 30],
    "not a number": [float("nan"), 30, 30, 30, 30],
    "infinite": [float("inf"), 30, 30, 30, 30],
    "too few entries": [50, 50, 50],
    "a matrix": [[30] * 5],
    "none": None,
    "words": ["a"] * 5,
}


@pytest.mark.parametrize("action", INVALID.values(), ids=INVALID.keys())
def test_invalid_actions_are_refused_and_nothing_steps(action: object) -> None:
    env, batched = BikeSharingEnv(5), BikeSharingVectorEnv(2, 5)
    env.reset(seed=0)
    env.step([30] * 5)
    before = env.get_state()
    with pytest.raises(InfeasibleActionError, match="action"):
        env.step(action)  # pyright: ignore[reportArgumentType]
    for name, value in env.get_state().items():
        np.testing.assert_array_equal(value, before[name])
    batched.reset(seed=0)
    before = batched.get_state()
    with pytest.raises(InfeasibleActionError, match="action"):
        batched.step([[30] * 5, action])  # pyright: ignore[reportArgumentType]
    for name, value in batched.get_state().items():
        np.testing.assert_array_equal(value, before[name])


def test_an_action_within_the_tolerance_is_played_as_its_integers() -> None:
    exact, near = BikeSharingEnv(5), BikeSharingEnv(5)
    exact.reset(seed=0)
    near.reset(seed=0)
    ours, theirs = exact.step([30] * 5), near.step([30.0003, 29.9998, 30, 30, 29.9999])
    np.testing.assert_array_equal(ours[0], theirs[0])
    assert ours[1] == theirs[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"stations": 1}, "stations must be an integer of at least 2"),
        ({"capacities": [35, 35]}, "capacities must be 5 finite numbers"),
        ({"capacities": 0}, "capacities must be whole numbers of at least 1"),
        ({"bikes": 176}, "bikes must be an integer from 1 to the total capacity 175"),
        ({"distances": [[0.0]]}, "distances must have shape"),
        ({"distances": np.triu(np.ones((5, 5)))}, "distances must be finite, not negative and the same"),
        ({"demand": (9, 5)}, "demand must be integers 0 <= low <= high"),
        ({"demand": 7}, "demand must be"),
        ({"destinations": 5}, "destinations must be an integer from 1 to 4"),
        ({"initial_allocation": [31, 30, 30, 30, 30]}, "initial_allocation must be 150 bikes"),
        ({"episode_length": 0}, "episode_length must be an integer of at least 1"),
        ({"render_mode": "human"}, "render_mode must be None or 'rgb_array'"),
    ],
)
def test_bad_arguments_are_named(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BikeSharingEnv(**arguments)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"demand": np.zeros((101, 5, 5))}, "demand must be 1 to 100 steps"),
        ({"demand": -np.ones((3, 5, 5))}, "demand must be finite and not negative"),
        ({"allocation": [30, 30, 30]}, "allocation must have 5 entries"),
        ({"allocation": [40, 30, 30, 30, 20]}, "allocation must lie between 0 and the capacities"),
        ({"alocation": [30] * 5}, "options may hold 'demand' and 'allocation', not 'alocation'"),
    ],
)
def test_bad_options_are_named(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BikeSharingEnv(5).reset(options=options)  # pyright: ignore[reportArgumentType]


def test_costs_and_a_law_of_ones_own() -> None:
    def rush_hour(generator: np.random.Generator, steps: int) -> np.ndarray:
        day = np.zeros((steps, 3, 3))
        day[:, 0, 1] = generator.integers(10, 12, steps)
        return day

    env = BikeSharingEnv(3, demand=rush_hour, costs=Costs(lost=7.0, overflow=3.0, moving=0.5), episode_length=4)
    env.reset(seed=0)
    _, reward, _, _, info = env.step([20, 35, 35])
    assert info["overflow"] >= 10.0
    assert info["moving"] == 10.0
    assert reward == -(7.0 * info["lost"] + 3.0 * info["overflow"] + 0.5 * info["moving"])
    with pytest.raises(ValueError, match="demand must give shape"):
        BikeSharingEnv(3, demand=lambda generator, steps: np.zeros((1, 3, 3))).reset(seed=0)


class AnyAction(BikeSharingEnv):
    """Plays the initial allocation whatever the checker samples from the box."""

    def step(self, action: object) -> tuple[np.ndarray, float, bool, bool, dict[str, float]]:
        assert self.action_space.contains(action)
        return super().step(self.system.initial)


# Its advice to bound and to normalise is no finding: these are bikes, counted, and demand has no bound.
@pytest.mark.filterwarnings("ignore:.*This is probably too (high|low)")
@pytest.mark.filterwarnings("ignore:.*we recommend using a symmetric and normalized space")
def test_gymnasiums_checker_finds_nothing() -> None:
    check_env(AnyAction(5, render_mode="rgb_array"), skip_render_check=True)


def test_picture_shows_bikes_and_rides() -> None:
    env = BikeSharingEnv(3, render_mode="rgb_array")
    env.reset(options={"demand": np.zeros((2, 3, 3)), "allocation": [20, 35, 35]})
    quiet = env.render()
    assert quiet is not None
    assert quiet.shape == (720, 720, 3)
    assert quiet.dtype == np.uint8
    env.reset(options={"demand": 5.0 * (1 - np.eye(3))[None].repeat(2, axis=0), "allocation": [20, 35, 35]})
    env.step([20, 35, 35])
    busy = env.render()
    assert busy is not None
    # Two full stations are red; rides add arrows to an otherwise equal picture.
    for frame in (quiet, busy):
        red = (frame[..., 0] > 180) & (frame[..., 1] < 100) & (frame[..., 2] < 120)
        assert red.mean() > 0.01
    assert (np.abs(quiet.astype(int) - busy).max(axis=-1) > 30).mean() > 0.01
    assert BikeSharingEnv(3).render() is None


def test_copies_equal_single_environments_over_episodes() -> None:
    copies, steps = 4, 230
    batched = BikeSharingVectorEnv(copies, 5, rules=Rules.corrected)
    singles = SyncVectorEnv(
        [lambda: BikeSharingEnv(5, rules=Rules.corrected)] * copies, autoreset_mode=AutoresetMode.SAME_STEP
    )
    assert batched.metadata["autoreset_mode"] == AutoresetMode.SAME_STEP
    assert batched.observation_space == singles.observation_space
    assert batched.action_space == singles.action_space
    actions = feasible_actions(batched, (steps, copies), seed=2)
    np.testing.assert_array_equal(batched.reset(seed=40)[0], singles.reset(seed=40)[0])
    for t in range(steps):
        ours, theirs = batched.step(actions[t]), singles.step(actions[t])
        for mine, other in zip(ours[:4], theirs[:4], strict=True):
            np.testing.assert_array_equal(mine, other)
        assert set(ours[4]) == set(theirs[4])
        if t % 100 == 99:
            np.testing.assert_array_equal(ours[4]["final_obs"], np.stack(theirs[4]["final_obs"]))
            assert set(ours[4]["final_info"]) == set(theirs[4]["final_info"])
            for name, values in theirs[4]["final_info"].items():
                np.testing.assert_array_equal(ours[4]["final_info"][name], values)
        else:
            for name, values in theirs[4].items():
                np.testing.assert_array_equal(ours[4][name], values)


def test_copies_save_and_restore_over_the_end_of_an_episode() -> None:
    first, second = BikeSharingVectorEnv(3, 5), BikeSharingVectorEnv(3, 5)
    actions = feasible_actions(first, (220, 3), seed=3)
    first.reset(seed=0)
    for t in range(60):
        first.step(actions[t])
    second.set_state(first.get_state())
    for t in range(60, 220):
        ours, theirs = first.step(actions[t]), second.step(actions[t])
        np.testing.assert_array_equal(ours[0], theirs[0])
        np.testing.assert_array_equal(ours[1], theirs[1])


def test_batch_arguments_are_checked() -> None:
    with pytest.raises(ValueError, match="num_envs must be an integer of at least 1"):
        BikeSharingVectorEnv(0)
    env = BikeSharingVectorEnv(3, 5)
    with pytest.raises(RuntimeError, match="reset must be called"):
        env.step(np.full((3, 5), 30.0))
    with pytest.raises(ValueError, match="seed must be one integer"):
        env.reset(seed=[1, 2])
    with pytest.raises(ValueError, match="demand must be"):
        env.reset(options={"demand": np.zeros((2, 4, 5, 5))})
    env.reset(seed=[4, 5, 6])
    single = BikeSharingEnv(5)
    single.reset(seed=5)
    np.testing.assert_array_equal(env.get_state()["demand"][1], single.get_state()["demand"])


def test_200_stations() -> None:
    env = BikeSharingEnv(200, render_mode="rgb_array")
    obs, _ = env.reset(seed=0)
    assert obs.shape == (401,)
    for _ in range(3):
        obs, reward, *_, info = env.step(np.full(200, 30.0))
        assert obs[200:400].sum() == pytest.approx(6000.0 - info["vanished"], abs=1e-6)
        assert np.isfinite(reward)
    assert env.observation_space.contains(obs)
    frame = env.render()
    assert frame is not None
    assert frame.std() > 5.0
    assert isinstance(env.action_space, gym.spaces.Box)


def test_a_hundred_stations_are_played_and_more_than_memory_holds_are_refused() -> None:
    copies, single = BikeSharingVectorEnv(2, 100, threads=2), BikeSharingEnv(100)
    obs, _ = copies.reset(seed=0)
    np.testing.assert_array_equal(single.reset(seed=1)[0], obs[1])
    assert obs[0, 100:200].sum() == copies.system.bikes == 3_000
    even = np.full((2, 100), 30.0)
    obs, rewards, *_ = copies.step(even)
    shown, reward, *_ = single.step(even[1])
    np.testing.assert_array_equal(shown, obs[1])
    assert reward == rewards[1]
    assert (obs[:, :100] >= 4 * 5).all()  # customers of every station, for its four nearest
    words = r"stations: 10000000 stations need [\d,]+ GiB for their distances and demand, and this machine has"
    for build in (BikeSharingEnv, lambda stations: BikeSharingVectorEnv(2, stations)):
        with pytest.raises(ValueError, match=words):
            build(10_000_000)
