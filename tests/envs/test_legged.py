"""Batched robots that fall, against Gymnasium's own environments, to the last bit; and the speed they may keep."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from feasible.envs.mujoco import MujocoVectorEnv, make_mujoco
from feasible.envs.mujoco.constrained import hopper, humanoid
from tests.envs.test_mujoco import gymnasiums_own

LENGTH = 40
SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "Hopper-v4": {},
    "Hopper-v5": {"exclude_current_positions_from_observation": False, "ctrl_cost_weight": 0.1},
    "Walker2d-v4": {"healthy_reward": 2.0},
    "Walker2d-v5": {"terminate_when_unhealthy": False},
    "Ant-v4": {"healthy_z_range": (0.5, 0.9)},
    "Humanoid-v5": humanoid.settings,
}
LOST = ("tendon_length", "tendon_velocity")  # of `info`


def actions_of(env: MujocoVectorEnv, steps: int, seed: int = 0) -> np.ndarray:
    space = env.single_action_space
    shape = (steps, env.num_envs, env.model.nu)
    return np.random.default_rng(seed).uniform(space.low, space.high, shape).astype(np.float32)  # pyright: ignore[reportAttributeAccessIssue]


def row(infos: dict[str, Any], copy: int) -> dict[str, object]:
    """What the infos of a batch hold of one copy."""
    own = [name for name in infos if not name.startswith(("_", "final"))]
    return {name: infos[name][copy] for name in own if infos[f"_{name}"][copy]}


@pytest.mark.parametrize("env_id", SETTINGS)
def test_they_equal_gymnasiums_over_falls_and_time_limits(env_id: str) -> None:
    settings = SETTINGS[env_id]
    env = MujocoVectorEnv(3, env_id, max_episode_steps=LENGTH, threads=2, **settings)
    singles = [gymnasiums_own(env_id, **settings) for _ in range(3)]
    obs, infos = env.reset(seed=5)
    for copy, single in enumerate(singles):
        shown, info = single.reset(seed=5 + copy)
        np.testing.assert_array_equal(obs[copy], shown)
        assert row(infos, copy) == {name: info[name] for name in info if name not in LOST}
    elapsed, fell, ran_out = np.zeros(3, int), 0, 0
    for actions in actions_of(env, 2 * LENGTH + 5):
        obs, rewards, terminated, truncated, infos = env.step(actions)
        elapsed += 1
        for copy, single in enumerate(singles):
            shown, reward, fallen, _, info = single.step(actions[copy])
            over = bool(elapsed[copy] == LENGTH)
            assert rewards[copy] == reward
            assert (terminated[copy], truncated[copy]) == (fallen, over)
            told: Any = infos["final_info"] if fallen or over else infos
            assert row(told, copy) == {name: info[name] for name in info if name not in LOST}
            if fallen or over:
                fell, ran_out, elapsed[copy] = fell + fallen, ran_out + over, 0
                np.testing.assert_array_equal(np.asarray(infos["final_obs"])[copy], shown)
                shown, info = single.reset()
                assert row(infos, copy) == {name: info[name] for name in info if name not in LOST}
            np.testing.assert_array_equal(obs[copy], shown)
    assert fell > 0 or not settings.get("terminate_when_unhealthy", True)
    assert ran_out > 0 or fell > 3
    env.close()


@pytest.mark.parametrize("env_id", ["Hopper-v4", "Ant-v4", "Humanoid-v5"])
def test_restored_copies_continue_bit_for_bit_wherever_each_is_in_its_episode(env_id: str) -> None:
    settings = SETTINGS[env_id]
    first, second = (MujocoVectorEnv(3, env_id, max_episode_steps=LENGTH, **settings) for _ in range(2))
    actions = actions_of(first, 80)
    first.reset(seed=0)
    second.reset(seed=9)
    for step, action in enumerate(actions):
        if step == 33:
            state = first.get_state()
            second.set_state(state)
            assert len(set(state["elapsed"].tolist())) > 1  # their clocks differ
        mine = first.step(action)
        if step >= 33:
            for ours, theirs in zip(mine[:4], second.step(action)[:4], strict=True):
                np.testing.assert_array_equal(ours, theirs)


def test_one_clock_of_an_older_state_is_that_of_all_copies() -> None:
    first, second = MujocoVectorEnv(2, "HalfCheetah-v5", max_episode_steps=9), MujocoVectorEnv(2, max_episode_steps=9)
    first.reset(seed=0)
    first.step(np.zeros((2, 6)))
    second.set_state({**first.get_state(), "elapsed": np.array(8)})
    assert second.step(np.zeros((2, 6)))[3].all()


@pytest.mark.parametrize("env_id", ["Walker2d-v4", "Humanoid-v5"])
def test_a_restored_single_environment_falls_at_the_same_step(env_id: str) -> None:
    first, second = (make_mujoco(env_id, **SETTINGS[env_id]) for _ in range(2))
    first.action_space.seed(0)
    first.reset(seed=4)
    for _ in range(8):
        first.step(first.action_space.sample())
    second.set_state(first.get_state())
    fallen = False
    while not fallen:
        action = first.action_space.sample()
        mine, theirs = first.step(action), second.step(action)
        np.testing.assert_array_equal(mine[0], theirs[0])
        assert mine[1:4] == theirs[1:4]
        fallen = mine[2]
    np.testing.assert_array_equal(first.reset()[0], second.reset()[0])


def test_a_target_speed_replaces_the_reward_of_the_velocity() -> None:
    single, copies = hopper(target_speed=3.0), hopper.copies(2, target_speed=3.0)
    plain = gymnasiums_own("Hopper-v4")
    for env in (single, plain):
        env.reset(seed=1)
    copies.reset(seed=1)
    action = np.array([0.2, -0.1, 0.05], np.float32)
    for _ in range(20):
        reward, batched = single.step(action)[1], copies.step(np.tile(action, (2, 1)))[1]
        _, usual, fallen, _, info = plain.step(action)
        assert reward == batched[0]
        assert reward == pytest.approx(float(usual) - info["x_velocity"] + 1.0 - abs(info["x_velocity"] - 3.0))
        if fallen:
            break
    for target, words in (("fast", "a finite number"), (np.nan, "a finite number")):
        with pytest.raises(ValueError, match=f"target_speed must be {words} of metres per second"):
            hopper(target_speed=target)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="target_speed is for robots that walk or hop, not for HalfCheetah-v5"):
        MujocoVectorEnv(1, "HalfCheetah-v5", target_speed=1.0)


@pytest.mark.parametrize(
    ("env_id", "settings", "name"),
    [
        ("Ant-v4", {"use_contact_forces": True}, "use_contact_forces"),
        ("Humanoid-v5", {}, "include_cinert_in_observation"),
        ("Humanoid-v5", {**humanoid.settings, "contact_cost_weight": 1e-6}, "contact_cost_weight"),
    ],
)
def test_what_needs_contact_forces_is_refused(env_id: str, settings: dict[str, Any], name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} must be off: copies compute no contact forces"):
        MujocoVectorEnv(1, env_id, **settings)


def test_limits_and_budgets_are_named() -> None:
    with pytest.raises(ValueError, match="There is no limit 'power'; did you mean"):
        hopper(limit="power")
    for budget in (0.0, -1.0, np.inf, True):
        with pytest.raises(ValueError, match="budget must be a positive number"):
            hopper.copies(1, budget=budget)
    with pytest.raises(ValueError, match="version must be 'v5', not 'v4'"):
        humanoid(version="v4")
