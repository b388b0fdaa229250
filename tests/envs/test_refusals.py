"""Infeasible actions at the registered environments: refused, with nothing stepped."""

import numpy as np
import pytest

import feasible
from tests.envs.registered import (
    BIKES,
    CHEETAH,
    CHEETAH_BOX,
    EVERY,
    NETWORK,
    REACHER,
    assert_same_state,
    assert_same_step,
    feasible_action,
    make,
    make_vec,
)

INVALID = {
    BIKES: {
        "wrong sum": [30, 30, 30, 30, 29],
        "above a capacity": [36, 30, 30, 27, 27],
        "negative": [-1, 46, 35, 35, 35],
        "below what the others can hold": [9, 36, 35, 35, 35],
        "fractional bikes": [30.5, 29.5, 30, 30, 30],
    },
    NETWORK: {
        "overloaded link": [12.6, 12.6, 0, 12.6, 12.6, 0, 0, 0, 0],
        "above a bound": [0, 0, 0, 0, 0, 0, 51, 0, 0],
        "negative": [-1, 5, 5, 5, 5, 5, 5, 5, 5],
    },
    REACHER: {"too strong": [0.2, 0.11], "far out": [1, -1]},
    CHEETAH: {"out of the box": [1.01, 0, 0, 0, 0, 0], "beyond all": [1e9] * 6},
    CHEETAH_BOX: {"out of the box": [0, 0, 0, 0, 0, -1.01]},
}
ANYWHERE = {"not a number": np.nan, "infinite": np.inf}


def invalid_actions(env_id: str, size: int) -> dict[str, np.ndarray]:
    wrong = {name: np.full(size, value) for name, value in ANYWHERE.items()}
    wrong |= {"too short": np.zeros(size - 1), "a matrix": np.zeros((1, size)), "a number": np.zeros(())}
    return wrong | {name: np.array(action, dtype=np.float64) for name, action in INVALID[env_id].items()}


@pytest.mark.parametrize("env_id", [BIKES, NETWORK, REACHER])
def test_by_default_sampled_actions_are_refused(env_id: str) -> None:
    """So what Gymnasium's checker samples goes through projections; most of the box is outside these sets."""
    env = make(env_id)
    env.action_space.seed(0)
    env.reset(seed=0)
    with pytest.raises(feasible.InfeasibleActionError, match="was not executed"):
        env.step(env.action_space.sample())


@EVERY
def test_invalid_actions_are_refused_with_nothing_stepped(env_id: str) -> None:
    env, twin = make(env_id), make(env_id)
    generator = np.random.default_rng(0)
    obs, _ = env.reset(seed=3)
    twin.reset(seed=3)
    for _ in range(3):
        action = feasible_action(env_id, obs, generator)
        obs = env.step(action)[0]
        twin.step(action)
    before = env.get_state()
    for action in invalid_actions(env_id, env.action_space.shape[0]).values():  # pyright: ignore[reportOptionalSubscript]
        with pytest.raises(feasible.InfeasibleActionError, match="action"):
            env.step(action)
        assert_same_state(env.get_state(), before)
    action = feasible_action(env_id, obs, generator)
    assert_same_step(env.step(action), twin.step(action))


@EVERY
def test_one_invalid_action_of_a_batch_stops_all_copies(env_id: str) -> None:
    envs = make_vec(env_id, 3)
    generator = np.random.default_rng(0)
    obs, _ = envs.reset(seed=3)
    before = envs.get_state()
    for action in invalid_actions(env_id, envs.single_action_space.shape[0]).values():  # pyright: ignore[reportOptionalSubscript]
        good = np.stack([feasible_action(env_id, row, generator) for row in obs])
        if action.shape != good.shape[1:]:
            with pytest.raises(feasible.InfeasibleActionError, match=r"must have shape \(3, "):
                envs.step(np.stack([action] * 3))
        else:
            good = good.astype(np.float64)
            good[1] = action
            with pytest.raises(feasible.InfeasibleActionError, match="of copy 1 "):
                envs.step(good)
        assert_same_state(envs.get_state(), before)


def test_a_power_beyond_the_budget_is_refused_in_the_state_where_it_is_one() -> None:
    """The same torques are feasible at rest and not at speed."""
    env, generator = make(CHEETAH), np.random.default_rng(1)
    full = np.ones(6, dtype=np.float32)
    obs, _ = env.reset(seed=0)
    assert np.abs(obs[11:17]).sum() < 20.0
    env.step(full)
    refused = 0
    for _ in range(30):
        before = env.get_state()
        obs = before["judged_observation"]
        if np.abs(obs[11:17]).sum() > 20.01:
            with pytest.raises(feasible.InfeasibleActionError, match="violates"):
                env.step(full)
            assert_same_state(env.get_state(), before)
            refused += 1
        env.step(feasible_action(CHEETAH, obs, generator))
    assert refused >= 5
