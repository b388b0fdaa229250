"""Batched and restorable MuJoCo against Gymnasium's own environments, to the last bit."""

import os
import subprocess
import sys
import warnings
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from feasible.envs.mujoco import MujocoVectorEnv, RestorableMujoco, make_mujoco, vector
from feasible.envs.mujoco.simulations import Simulations

ALL = ["HalfCheetah-v4", "HalfCheetah-v5", "Reacher-v4", "Reacher-v5"]


def gymnasiums_own(env_id: str, **settings: object) -> gym.Env[np.ndarray, np.ndarray]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*is out of date", category=DeprecationWarning)
        return gym.make(env_id, None, disable_env_checker=True, **settings)


def random_actions(env_id: str, shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    entries = 6 if env_id.startswith("HalfCheetah") else 2
    return np.random.default_rng(seed).uniform(-1.0, 1.0, (*shape, entries)).astype(np.float32)


def row(infos: dict[str, Any], copy: int) -> dict[str, object]:
    """One copy's part of a batch's infos."""
    return {name: infos[name][copy] for name in infos if not name.startswith(("_", "final"))}


def assert_equal_to_gymnasium(
    batched: MujocoVectorEnv, env_id: str, actions: np.ndarray, seed: int, **settings: object
) -> int:
    """Plays actions (steps, copies, entries) in both, compares all they return, counts ended episodes."""
    copies = actions.shape[1]
    singles = [gymnasiums_own(env_id, **settings) for _ in range(copies)]
    obs, infos = batched.reset(seed=seed)
    ended = 0
    for copy, single in enumerate(singles):
        single_obs, single_info = single.reset(seed=seed + copy)
        np.testing.assert_array_equal(obs[copy], single_obs)
        assert row(infos, copy) == single_info
    for action in actions:
        obs, rewards, terminated, truncated, infos = batched.step(action)
        final: Any = infos.get("final_info", infos)
        for copy, single in enumerate(singles):
            single_obs, reward, single_terminated, single_truncated, info = single.step(action[copy])
            assert rewards[copy] == reward
            assert (terminated[copy], truncated[copy]) == (single_terminated, single_truncated)
            assert row(final, copy) == info
            if single_truncated:
                ended += 1
                np.testing.assert_array_equal(np.asarray(infos["final_obs"])[copy], single_obs)
                single_obs, info = single.reset()
                assert row(infos, copy) == info
            np.testing.assert_array_equal(obs[copy], single_obs)
    return ended


@pytest.mark.parametrize("env_id", ["HalfCheetah-v4", "HalfCheetah-v5"])
def test_cheetahs_equal_gymnasiums_over_a_whole_episode_and_into_the_next(env_id: str) -> None:
    env = MujocoVectorEnv(2, env_id)
    assert assert_equal_to_gymnasium(env, env_id, random_actions(env_id, (1050, 2)), seed=3) == 2
    env.close()


@pytest.mark.parametrize("env_id", ["Reacher-v4", "Reacher-v5"])
def test_reachers_equal_gymnasiums_over_several_episodes(env_id: str) -> None:
    env = MujocoVectorEnv(5, env_id)
    assert assert_equal_to_gymnasium(env, env_id, random_actions(env_id, (170, 5)), seed=8) == 15
    env.close()


@pytest.mark.parametrize("env_id", ALL)
def test_actions_in_double_precision_and_settings_are_gymnasiums_too(env_id: str) -> None:
    cheetah = {
        "ctrl_cost_weight": 0.3,
        "reset_noise_scale": 0.2,
        "exclude_current_positions_from_observation": False,
    }
    reacher = {"reward_dist_weight": 2.5, "reward_control_weight": 0.7}
    settings = cheetah if env_id.startswith("HalfCheetah") else reacher if env_id == "Reacher-v5" else {}
    env = MujocoVectorEnv(3, env_id, **settings)  # pyright: ignore[reportArgumentType]
    actions = random_actions(env_id, (60, 3)).astype(np.float64)
    assert_equal_to_gymnasium(env, env_id, actions, seed=1, **settings)
    single = gymnasiums_own(env_id, **settings)
    assert env.single_observation_space == single.observation_space
    assert env.single_action_space == single.action_space


@pytest.mark.parametrize("env_id", ["HalfCheetah-v5", "Reacher-v4"])
def test_the_number_of_threads_changes_nothing(env_id: str) -> None:
    actions = random_actions(env_id, (120, 5))
    played = []
    for threads in (1, 2, 7):
        env = MujocoVectorEnv(5, env_id, threads=threads)
        first, _ = env.reset(seed=0)
        steps = [env.step(action)[:2] for action in actions]
        played.append((first, np.stack([obs for obs, _ in steps]), np.stack([reward for _, reward in steps])))
        env.close()
    for other in played[1:]:
        for ours, theirs in zip(played[0], other, strict=True):
            np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("env_id", ["HalfCheetah-v5", "Reacher-v4", "Hopper-v4"])
@pytest.mark.parametrize("threads", [1, 2])
def test_without_mujocos_batches_copies_do_the_same(env_id: str, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with MuJoCo before 4.0; among hoppers some fall while others go on."""

    def played() -> list[np.ndarray]:
        env = MujocoVectorEnv(3, env_id, threads=threads, max_episode_steps=40)
        shown, generator = [env.reset(seed=4)[0]], np.random.default_rng(0)
        for step in range(90):
            shown += env.step(generator.uniform(-1.0, 1.0, env.action_space.shape or ()))[:4]
            if step == 50:
                env.set_state(env.get_state())
        env.close()
        return shown

    of_batches = played()
    monkeypatch.setattr(vector, "Batch", Simulations)
    for ours, theirs in zip(played(), of_batches, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("env_id", ALL)
def test_a_restored_batch_continues_bit_for_bit(env_id: str) -> None:
    actions = random_actions(env_id, (140, 3))
    first, second = MujocoVectorEnv(3, env_id), MujocoVectorEnv(3, env_id, threads=2)
    first.reset(seed=0)
    for action in actions[:70]:
        first.step(action)
    state = first.get_state()
    assert all(isinstance(value, np.ndarray) and value.dtype != object for value in state.values())
    second.reset(seed=9)
    second.step(actions[0])
    second.set_state(state)
    for action in actions[70:]:
        ours, theirs = first.step(action), second.step(action)
        np.testing.assert_array_equal(ours[0], theirs[0])
        np.testing.assert_array_equal(ours[1], theirs[1])
        np.testing.assert_array_equal(ours[3], theirs[3])
    second.close()
    with pytest.raises(ValueError, match="state: simulation must have shape"):
        MujocoVectorEnv(2, env_id).set_state(state)


@pytest.mark.parametrize("env_id", ALL)
def test_a_restored_single_environment_continues_bit_for_bit(env_id: str) -> None:
    """The end of the episode and the start of the next included: clock and generator are restored too."""
    length = 90 if env_id.startswith("HalfCheetah") else None
    actions = random_actions(env_id, (130,))
    first, second = (make_mujoco(env_id, max_episode_steps=length) for _ in range(2))
    first.reset(seed=4)
    for action in actions[:30]:
        first.step(action)
    state = first.get_state()
    second.set_state(state)
    ended = 0
    for action in actions[30:]:
        ours, theirs = first.step(action), second.step(action)
        np.testing.assert_array_equal(ours[0], theirs[0])
        assert ours[1:] == theirs[1:]
        if ours[3]:
            ended += 1
            np.testing.assert_array_equal(first.reset()[0], second.reset()[0])
    assert ended >= 1


def test_restoring_at_many_moments_needs_the_warm_start() -> None:
    """In contact with the ground a restored copy separates from the original if the warm start is lost."""
    actions = random_actions("HalfCheetah-v5", (310, 1))
    original, restored, cold = (MujocoVectorEnv(1) for _ in range(3))
    original.reset(seed=0)
    separated = 0
    for start in range(300):
        if start % 5 == 0:
            state = original.get_state()
            restored.set_state(state)
            cold.set_state(state)
            cold.simulations.bind("qacc_warmstart")[:] = 0.0
        obs, reward, *_ = original.step(actions[start])
        restored_obs, restored_reward, *_ = restored.step(actions[start])
        np.testing.assert_array_equal(restored_obs, obs)
        np.testing.assert_array_equal(restored_reward, reward)
        separated += not np.array_equal(cold.step(actions[start])[0], obs)
    assert separated > 0


def test_a_single_copy_and_a_restorable_environment_share_their_trajectory() -> None:
    single, batched = make_mujoco("Reacher-v4"), MujocoVectorEnv(1, "Reacher-v4")
    assert isinstance(single, RestorableMujoco)
    np.testing.assert_array_equal(single.reset(seed=2)[0], batched.reset(seed=2)[0][0])
    for action in random_actions("Reacher-v4", (49, 1)):
        np.testing.assert_array_equal(single.step(action[0])[0], batched.step(action)[0][0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"env_id": "HalfCheeta-v5"}, "did you mean 'HalfCheetah-v5'"),
        ({"env_id": "Ant-v5"}, "env_id: There is no robot"),
        ({"num_envs": 0}, "num_envs must be an integer of at least 1"),
        ({"threads": 0}, "threads must be an integer of at least 1"),
        ({"max_episode_steps": 0}, "max_episode_steps must be an integer of at least 1"),
        ({"gravity": 0}, "HalfCheetah-v5 has no setting 'gravity'"),
    ],
)
def test_bad_arguments_are_named(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MujocoVectorEnv(**arguments)  # pyright: ignore[reportArgumentType]


def test_calls_out_of_order_and_of_the_wrong_shape_are_named() -> None:
    env = MujocoVectorEnv(2)
    with pytest.raises(RuntimeError, match="reset must be called before step"):
        env.step(np.zeros((2, 6)))
    with pytest.raises(RuntimeError, match="reset must be called before get_state"):
        env.get_state()
    with pytest.raises(RuntimeError, match="reset must be called before get_state"):
        make_mujoco("Reacher-v5").get_state()
    env.reset(seed=0)
    with pytest.raises(ValueError, match="actions must have shape"):
        env.step(np.zeros((2, 5)))
    with pytest.raises(ValueError, match="options must be empty"):
        env.reset(options={"x": 1})
    with pytest.raises(ValueError, match="MuJoCo environments"):
        RestorableMujoco(gym.make("CartPole-v1"))


def orange(picture: np.ndarray | None) -> float:
    """The share of a picture that shows the robot, on a floor of black and pale green."""
    assert picture is not None
    red, green, blue = np.moveaxis(picture.astype(int), -1, 0)
    return float(((red > green + 20) & (red > blue + 40)).mean())


def test_off_screen_picture_follows_the_simulation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUJOCO_GL", os.environ.get("MUJOCO_GL", "egl"))
    env = make_mujoco("HalfCheetah-v5", render_mode="rgb_array")
    env.reset(seed=0)
    first = env.render()
    state = env.get_state()
    for action in random_actions("HalfCheetah-v5", (40,)):
        env.step(action)
    later = env.render()
    assert first is not None
    assert later is not None
    assert first.shape == (480, 480, 3)
    assert first.dtype == np.uint8
    assert first.std() > 20.0
    assert (np.abs(first.astype(int) - later).max(axis=-1) > 30).mean() > 0.01
    env.set_state(state)
    np.testing.assert_array_equal(env.render(), first)
    far = env.get_state()
    far["simulation"] = far["simulation"].copy()
    far["simulation"][1] += 40.0  # after the time comes the place: ten squares of the floor away, the view is the same
    env.set_state(far)
    assert orange(env.render()) == pytest.approx(orange(first), rel=0.1)
    assert orange(first) > 0.01
    env.close()
    assert make_mujoco("HalfCheetah-v5").render() is None


def test_without_opengl_rendering_says_what_to_install_and_all_else_works() -> None:
    """In a process of its own, that may only use a window system which is not there."""
    program = (
        "from feasible.envs.mujoco import make_mujoco\n"
        "env = make_mujoco('Reacher-v4', render_mode='rgb_array')\n"
        "env.reset(seed=0)\n"
        "env.step(env.action_space.sample())\n"
        "try:\n"
        "    env.render()\n"
        "except RuntimeError as error:\n"
        "    print(error)\n"
        "env.step(env.action_space.sample())\n"
    )
    environment = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY")}
    environment["MUJOCO_GL"] = "glfw"
    finished = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert finished.stdout.startswith("render needs OpenGL off-screen: install EGL (Debian: libegl1")
    assert len(finished.stdout.splitlines()) == 1
