"""The packet network against recorded runs: every trace number by number, statistics by one joint test."""

from pathlib import Path

import numpy as np
import pytest

from feasible.envs.network import NSFNetVectorEnv, Rules, simulate_recorded

DATA = Path(__file__).parents[1] / "data"
EXACT = np.load(DATA / "network_exact.npz")
STATISTICS = np.load(DATA / "network_statistics.npz")
QUANTITIES = ("reward", "obs", "drop", "recv", "sent", "thr", "lat", "t_end")
EPISODES = 24
RECORDED_EPISODES = int(STATISTICS["episodes"])


def replay(case: int) -> dict[str, np.ndarray]:
    names = ("action", "service_draws", "interarrivals", "n_interarrivals")
    return simulate_recorded(*(EXACT[f"case{case}_{name}"] for name in names))


@pytest.mark.parametrize("case", range(len(EXACT["cases"])), ids=list(EXACT["cases"]))
def test_trace_equals_recording(case: int):
    replayed = replay(case)
    assert set(replayed) == set(QUANTITIES)
    for name in QUANTITIES:
        recorded = EXACT[f"case{case}_{name}"]
        assert replayed[name].shape == recorded.shape, name
        np.testing.assert_allclose(replayed[name], recorded, rtol=0.0, atol=1e-9, err_msg=name)


def test_trace_that_ends_early_is_refused():
    actions, services, gaps, counts = (
        EXACT[f"case4_{name}"] for name in ("action", "service_draws", "interarrivals", "n_interarrivals")
    )
    with pytest.raises(ValueError, match="service_draws: the recording ran out during step"):
        simulate_recorded(actions, services[:2000], gaps, counts)
    with pytest.raises(ValueError, match="n_interarrivals: must hold 26 counts"):
        simulate_recorded(actions, services, gaps, counts[:-1])
    with pytest.raises(ValueError, match="n_interarrivals: must hold"):
        simulate_recorded(actions, services, gaps[:-1], counts)
    with pytest.raises(ValueError, match="actions: shape"):
        simulate_recorded(actions[:, :8], services, gaps, counts)


def simulate_statistics(action: np.ndarray, rules: Rules, episodes: int, seed: int) -> np.ndarray:
    """Per episode, the fields of the recorded statistics: means over steps 1 to 199, then those of step 0."""
    env = NSFNetVectorEnv(episodes, rules=rules, probe_packets=False)
    env.reset(seed=seed)
    steps = []
    for _ in range(int(STATISTICS["steps"])):
        obs, reward, _, _, info = env.step(np.tile(action, (episodes, 1)))
        received, dropped, sent, thr, lat, dur = (
            np.asarray(info[name]) for name in ("received", "dropped", "sent", "throughput", "latency", "duration")
        )
        steps.append(
            np.column_stack(
                [
                    reward,
                    thr,
                    lat,
                    *(dropped[:, position::3].sum(axis=1) for position in range(3)),
                    obs[:, -4:],
                    dur,
                    received.reshape(-1, 3, 3).sum(axis=2),
                    received,
                    sent,
                ]
            )
        )
    values = np.stack(steps, axis=1)
    return np.concatenate([values[:, 1:].mean(axis=1), values[:, 0]], axis=1)


def standardised_distance(
    mean: np.ndarray, error: np.ndarray, other_mean: np.ndarray, other_error: np.ndarray
) -> np.ndarray:
    """ln(1 + t^2 / 7) of Welch's t, field by field: Student's log-likelihood, so no single field decides.

    Fields that do not vary at all in either sample must be equal and contribute nothing. Rows are trials.
    """
    variance = error**2 + other_error**2
    constant = variance < 1e-24
    np.testing.assert_allclose(np.where(constant, mean - other_mean, 0.0), 0.0, rtol=0.0, atol=1e-9)
    t_squared = (mean - other_mean) ** 2 / np.where(constant, 1.0, variance)
    return np.where(constant, 0.0, np.log1p(t_squared / (RECORDED_EPISODES - 1)))


def mean_and_error(episodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Over the episodes, which are the last axis but one."""
    return episodes.mean(axis=-2), episodes.std(axis=-2, ddof=1) / np.sqrt(episodes.shape[-2])


def joint_statistics(
    actions: list[int], rules: Rules, trials: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """The statistic of the recording, and of as many episodes of our own in its place, over random splits.

    Of our `EPISODES` episodes of every action, 8 stand for a recording and the rest are compared with them
    and with the true recording. All actions and fields are summed; since the fields of an episode stay
    together, the statistic's law under equality includes their dependence and the few episodes behind each
    error (7 degrees of freedom).
    """
    recorded, ours = np.zeros(trials), np.zeros(trials)
    for number in actions:
        episodes = simulate_statistics(STATISTICS["actions"][number], rules, EPISODES, seed=1000 * number)
        recorded_mean = np.concatenate([STATISTICS["mean"][number], STATISTICS["first_step_mean"][number]])
        recorded_error = np.concatenate([STATISTICS["se"][number], STATISTICS["first_step_se"][number]])
        shuffled = episodes[rng.permuted(np.tile(np.arange(EPISODES), (trials, 1)), axis=1)]
        rest, own = mean_and_error(shuffled[:, RECORDED_EPISODES:]), mean_and_error(shuffled[:, :RECORDED_EPISODES])
        recorded += standardised_distance(recorded_mean, recorded_error, *rest).sum(axis=1)
        ours += standardised_distance(*own, *rest).sum(axis=1)
    return recorded, ours


def test_statistics_equal_recorded_ones_within_sampling_error():
    """One test for 47 actions x 72 fields: the recording is no further from us than we are from ourselves."""
    assert STATISTICS["fields"].size == 36
    recorded, ours = joint_statistics(
        list(range(len(STATISTICS["names"]))), Rules.recorded, trials=200, rng=np.random.default_rng(0)
    )
    # The recording is one draw, the splits share our episodes: compare its mean with their spread.
    assert recorded.mean() < np.quantile(ours, 0.995)
    assert recorded.mean() > np.quantile(ours, 0.005)


def test_statistics_tell_a_small_difference_of_the_model():
    """The same statistic sees that packets wait for their own service, 20 ms a link, on three actions."""
    names = list(STATISTICS["names"])
    actions = [names.index(name) for name in ("uniform_4.5", "interior5", "integer1")]
    recorded, ours = joint_statistics(actions, Rules(own_service=True), trials=50, rng=np.random.default_rng(0))
    assert recorded.min() > 3.0 * ours.max()
