"""The Gymnasium side of the packet network: spaces, seeds, saved states, copies, pictures."""

import warnings

import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from feasible.envs.network import NSFNET, NSFNetEnv, NSFNetVectorEnv, Rules
from tests.envs.test_network_topology import DIAMOND

RULES = pytest.mark.parametrize("rules", [Rules.recorded, Rules.corrected], ids=["recorded", "corrected"])


def rates(steps: int, seed: int = 0, highest: float = 40.0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0.0, highest, (steps, 9)).astype(np.float32)


def assert_same_step(one: tuple, other: tuple) -> None:
    np.testing.assert_array_equal(one[0], other[0])
    assert one[1:4] == other[1:4]
    assert one[4].keys() == other[4].keys()
    for name in one[4]:
        np.testing.assert_array_equal(one[4][name], other[4][name])


@RULES
def test_gymnasium_checker_passes(rules: Rules):
    # What the checker may warn of: the paper's action box is 0 to 100, and delays have no upper bound.
    accepted = ("symmetric and normalized", "maximum value is infinity", "not having a spec")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_env(NSFNetEnv(rules=rules, render_mode="rgb_array"))
    for warning in caught:
        assert any(words in str(warning.message) for words in accepted), warning.message


def test_spaces_and_episode_length():
    env = NSFNetEnv()
    assert env.action_space.shape == (9,)
    assert env.action_space.dtype == np.float32
    assert (env.action_space.low == 0.0).all()  # pyright: ignore[reportAttributeAccessIssue]
    assert (env.action_space.high == 100.0).all()  # pyright: ignore[reportAttributeAccessIssue]
    obs, info = env.reset(seed=0)
    assert (obs == 0.0).all()
    assert obs.shape == (40,)
    assert obs.dtype == np.float64
    assert info == {}
    for step in range(1, 1001):
        obs, reward, terminated, truncated, _ = env.step(np.full(9, 1.0))
        assert obs in env.observation_space
        assert np.isfinite(float(reward))
        assert not terminated
        assert truncated == (step == 1000)
    with pytest.raises(ResetNeeded, match="call reset"):
        env.step(np.full(9, 1.0))


@RULES
def test_same_seed_same_episode_other_seed_other_episode(rules: Rules):
    first, second, third = (NSFNetEnv(rules=rules) for _ in range(3))
    for env, seed in ((first, 7), (second, 7), (third, 8)):
        env.reset(seed=seed)
    differs = False
    for action in rates(20):
        step = first.step(action)
        assert_same_step(step, second.step(action))
        differs |= step[1] != third.step(action)[1]
    assert differs
    # Later episodes go on in the stream of the seed.
    first.reset()
    second.reset()
    third.reset(seed=7)
    replayed = []
    for action in rates(5):
        step = first.step(action)
        assert_same_step(step, second.step(action))
        replayed.append(step[1] == third.step(action)[1])
    assert not all(replayed)


def test_global_generator_is_neither_used_nor_changed():
    outcomes = []
    for global_seed in (0, 1):
        np.random.seed(global_seed)  # noqa: NPY002
        before = np.random.get_state()[1].copy()  # noqa: NPY002  # pyright: ignore[reportAttributeAccessIssue, reportArgumentType, reportCallIssue]
        env = NSFNetEnv()
        env.reset(seed=3)
        outcomes.append([env.step(action)[1] for action in rates(5)])
        after = np.random.get_state()[1]  # noqa: NPY002  # pyright: ignore[reportArgumentType]
        np.testing.assert_array_equal(before, after)
    assert outcomes[0] == outcomes[1]


@RULES
@pytest.mark.parametrize("highest", [20.0, 100.0], ids=["light", "overload"])
def test_restored_state_continues_identically(rules: Rules, highest: float):
    env = NSFNetEnv(rules=rules, episode_length=40)
    env.reset(seed=5)
    actions = rates(60, highest=highest)
    for action in actions[:25]:
        env.step(action)
    saved = env.get_state()
    kept = {name: array.copy() for name, array in saved.items()}
    other = NSFNetEnv(rules=rules, episode_length=40)
    other.set_state(saved)
    for action in actions[25:40]:
        assert_same_step(env.step(action), other.step(action))
    env.reset()
    other.reset()
    for action in actions[40:]:
        assert_same_step(env.step(action), other.step(action))
    for name, array in saved.items():
        np.testing.assert_array_equal(array, kept[name])
    # Back in time in an environment that has gone on (and has made room for more packets since).
    env.set_state(saved)
    other.set_state(saved)
    assert_same_step(env.step(actions[25]), other.step(actions[25]))


def test_foreign_state_is_refused():
    env = NSFNetEnv()
    env.reset(seed=0)
    saved = env.get_state()
    with pytest.raises(ValueError, match="must be what get_state gave"):
        env.set_state({"numbers": saved["numbers"]})
    with pytest.raises(ValueError, match="same arguments"):
        NSFNetEnv(DIAMOND).set_state(saved)
    with pytest.raises(ValueError, match="same arguments"):
        NSFNetVectorEnv(2).set_state(saved)
    assert_same_step(env.step(rates(1)[0]), _restored(saved).step(rates(1)[0]))


def _restored(saved: dict[str, np.ndarray]) -> NSFNetEnv:
    env = NSFNetEnv()
    env.set_state(saved)
    return env


@RULES
@pytest.mark.parametrize("threads", [1, 2])
def test_vector_copies_equal_single_environments(rules: Rules, threads: int):
    """Gymnasium's own vector environment over single ones is the measure, autoreset included."""
    arguments = {"rules": rules, "episode_length": 7}
    ours = NSFNetVectorEnv(3, **arguments, threads=threads)
    plain = SyncVectorEnv([lambda: NSFNetEnv(**arguments)] * 3, autoreset_mode=AutoresetMode.SAME_STEP)
    assert ours.metadata["autoreset_mode"] == AutoresetMode.SAME_STEP
    assert ours.action_space == plain.action_space
    assert ours.observation_space == plain.observation_space
    np.testing.assert_array_equal(ours.reset(seed=11)[0], plain.reset(seed=11)[0])
    actions = np.random.default_rng(0).uniform(0.0, 100.0, (20, 3, 9)).astype(np.float32)
    for action in actions:
        mine, theirs = ours.step(action), plain.step(action)
        for one, other in zip(mine[:4], theirs[:4], strict=True):
            np.testing.assert_array_equal(one, other)
            assert one.dtype == other.dtype
        assert_same_info(mine[4], theirs[4])
    ours.close()
    plain.close()


def assert_same_info(one: dict, other: dict) -> None:
    assert one.keys() == other.keys()
    for name, value in one.items():
        if isinstance(value, dict):
            assert_same_info(value, other[name])
        elif value.dtype == object:
            for mine, theirs in zip(value, other[name], strict=True):
                np.testing.assert_array_equal(mine, theirs)
        else:
            np.testing.assert_array_equal(value, other[name])


def test_vector_state_continues_identically():
    env, other = NSFNetVectorEnv(3, episode_length=9), NSFNetVectorEnv(3, episode_length=9)
    env.reset(seed=[4, 5, 6])
    actions = np.random.default_rng(1).uniform(0.0, 100.0, (24, 3, 9))
    for action in actions[:12]:
        env.step(action)
    other.set_state(env.get_state())
    for action in actions[12:]:
        for one, two in zip(env.step(action)[:4], other.step(action)[:4], strict=True):
            np.testing.assert_array_equal(one, two)


def test_probe_packets_put_one_packet_on_every_path():
    for rules, seconds in ((Rules.recorded, 5), (Rules.corrected, 20)):
        with_probes, without = (NSFNetEnv(rules=rules, probe_packets=probe) for probe in (True, False))
        sent = {True: np.zeros(9), False: np.zeros(9)}
        for env, probe in ((with_probes, True), (without, False)):
            env.reset(seed=0)
            env.step(np.zeros(9))
            for _ in range(seconds):
                sent[probe] += np.asarray(env.step(np.zeros(9))[4]["sent"])
        assert (np.abs(sent[True] - seconds) <= (0 if rules is Rules.recorded else 1)).all()
        assert (sent[False] == 0).all()


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (np.zeros(8), r"shape \(9,\), one rate for each path, not \(8,\)"),
        (np.array([np.nan] + [1.0] * 8), "finite rates"),
        (np.array([np.inf] + [1.0] * 8), "finite rates"),
    ],
)
def test_bad_action_is_refused_and_nothing_steps(action: np.ndarray, message: str):
    env = NSFNetEnv()
    env.reset(seed=0)
    before = env.get_state()
    with pytest.raises(ValueError, match=message):
        env.step(action)
    for name, array in env.get_state().items():
        np.testing.assert_array_equal(array, before[name])


def test_bad_arguments_are_refused():
    with pytest.raises(ValueError, match="episode_length must be at least 1"):
        NSFNetEnv(episode_length=0)
    with pytest.raises(ValueError, match="render_mode must be None or 'rgb_array'"):
        NSFNetEnv(render_mode="human")
    with pytest.raises(ValueError, match="number of copies must be at least 1"):
        NSFNetVectorEnv(0)
    with pytest.raises(ValueError, match="threads must be an integer of at least 1"):
        NSFNetVectorEnv(2, threads=0)
    with pytest.raises(ValueError, match="must name 2 seeds"):
        NSFNetVectorEnv(2).reset(seed=[1, 2, 3])
    with pytest.raises(ResetNeeded, match="call reset"):
        NSFNetEnv().step(np.zeros(9))
    with pytest.raises(ResetNeeded, match="call reset"):
        NSFNetVectorEnv(2).step(np.zeros((2, 9)))


def test_picture_shows_the_load():
    """A loaded link is drawn in the colours of load: more red ink than in the picture of an idle network."""
    env = NSFNetEnv(render_mode="rgb_array")
    env.reset(seed=0)
    idle = env.render()
    for _ in range(5):
        env.step(np.full(9, 30.0))
    busy = env.render()
    assert idle is not None
    assert busy is not None
    assert idle.shape == busy.shape == (600, 960, 3)
    assert idle.dtype == busy.dtype == np.uint8

    def red(frame: np.ndarray) -> int:
        pixels = frame.astype(int)
        return int(((pixels[..., 0] > 180) & (pixels[..., 1] < 90) & (pixels[..., 2] < 90)).sum())

    assert red(busy) > red(idle) + 2000
    vector = NSFNetVectorEnv(2, render_mode="rgb_array")
    vector.reset(seed=0)
    frames = vector.render()
    assert frames is not None
    assert len(frames) == 2
    np.testing.assert_array_equal(frames[0], idle)


def test_other_networks_play():
    env = NSFNetEnv(DIAMOND, Rules.corrected, render_mode="rgb_array")
    env.reset(seed=0)
    for _ in range(20):
        _, reward, _, _, info = env.step(np.array([5.0, 8.0, 10.0, 12.0]))
        np.testing.assert_allclose(np.asarray(info["sent"]), [5.0, 8.0, 10.0, 12.0], atol=1.0)
        assert np.isfinite(float(reward))
    assert env.render() is not None
    assert NSFNetEnv(NSFNET).action_space == NSFNetEnv().action_space
