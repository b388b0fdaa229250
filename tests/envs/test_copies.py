"""Copies and saved states of the registered environments: each copy is a single one, each restored one the same."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from feasible.constraints import ConstrainedEnv
from tests.envs.registered import EVERY, assert_same_step, feasible_action, make, make_vec


@EVERY
@pytest.mark.parametrize("threads", [1, 2])
def test_copies_equal_single_environments(env_id: str, threads: int) -> None:
    """Episodes of 12 steps, so that copies start again in the same step, with what went before in `final_obs`."""
    envs = make_vec(env_id, 3, threads=threads, episode_length=12)
    singles = [make(env_id, episode_length=12) for _ in range(3)]
    assert envs.metadata["autoreset_mode"] == AutoresetMode.SAME_STEP
    assert envs.single_observation_space == singles[0].observation_space
    assert envs.single_action_space == singles[0].action_space
    generator = np.random.default_rng(0)
    obs, _ = envs.reset(seed=20)
    for copy, single in enumerate(singles):
        np.testing.assert_array_equal(obs[copy], single.reset(seed=20 + copy)[0])
    for step in range(1, 31):
        actions = np.stack([feasible_action(env_id, row, generator) for row in obs])
        obs, rewards, terminated, truncated, info = envs.step(actions)
        assert truncated.tolist() == [step % 12 == 0] * 3
        assert not terminated.any()
        for copy, single in enumerate(singles):
            single_obs, reward, _, ended, _ = single.step(actions[copy])
            assert rewards[copy] == reward
            assert ended == truncated[copy]
            if ended:
                np.testing.assert_array_equal(info["final_obs"][copy], single_obs)
                single_obs, _ = single.reset()
            np.testing.assert_array_equal(obs[copy], single_obs)
    envs.close()


@EVERY
def test_projected_copies_report_feasible_actions_and_how_far_proposals_were(env_id: str) -> None:
    envs = make_vec(env_id, 4, on_infeasible="project")
    single = make(env_id, on_infeasible="project")
    envs.action_space.seed(0)
    obs, _ = envs.reset(seed=0)
    np.testing.assert_array_equal(obs[0], single.reset(seed=0)[0])
    proposed = envs.action_space.sample()
    sets = [envs.constraint(row) for row in obs]
    *_, info = envs.step(proposed)
    for copy, feasible_set in enumerate(sets):
        assert feasible_set.contains(info["executed_action"][copy])
        inside = bool(feasible_set.contains(proposed[copy]) & (feasible_set.integrality(proposed[copy]) == 0.0))
        np.testing.assert_array_equal(np.array_equal(info["executed_action"][copy], proposed[copy]), inside)
    *_, single_info = single.step(proposed[0])
    np.testing.assert_allclose(single_info["executed_action"], info["executed_action"][0], atol=1e-6)


@EVERY
@pytest.mark.parametrize("wrapped", [False, True])
def test_a_restored_environment_continues_bit_for_bit(env_id: str, wrapped: bool) -> None:
    """Also behind wrappers, over the end of the episode, and in one that was never reset."""

    def build() -> gym.Env:
        if not wrapped:
            return make(env_id, episode_length=25)
        inner = gym.make(env_id, disable_env_checker=False, episode_length=25)
        assert not isinstance(inner, ConstrainedEnv)
        return gym.wrappers.OrderEnforcing(inner, disable_render_order_enforcing=True)

    first, second = build(), build()
    generator = np.random.default_rng(0)
    obs, _ = first.reset(seed=1)
    for _ in range(10):
        obs = first.step(feasible_action(env_id, obs, generator))[0]
    state = first.get_wrapper_attr("get_state")()
    assert all(isinstance(value, np.ndarray) and value.dtype != object for value in state.values())
    if wrapped:
        second.reset(seed=99)
    second.get_wrapper_attr("set_state")(state)
    ended = 0
    for _ in range(30):
        action = feasible_action(env_id, obs, generator)
        mine, theirs = first.step(action), second.step(action)
        assert_same_step(mine, theirs)
        obs = mine[0]
        if mine[3]:
            ended += 1
            obs, _ = first.reset()
            np.testing.assert_array_equal(second.reset()[0], obs)
    assert ended == 1


@EVERY
def test_restored_copies_continue_bit_for_bit(env_id: str) -> None:
    first, second = (make_vec(env_id, 3, episode_length=25, threads=threads) for threads in (1, 2))
    generator = np.random.default_rng(0)
    obs, _ = first.reset(seed=1)
    for step in range(50):
        if step == 10:
            second.set_state(first.get_state())
        actions = np.stack([feasible_action(env_id, row, generator) for row in obs])
        mine = first.step(actions)
        if step >= 10:
            assert_same_step(mine, second.step(actions))
        obs = mine[0]
    second.close()
