"""The registered environments: checker, refusals, copies, saved states and pictures, all through Gymnasium."""

import os
import subprocess
import sys
import warnings
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode

import feasible
from feasible.constraints import ConstrainedEnv, ConstrainedVectorEnv
from feasible.envs.network import NSFNET, link_rows
from tests.envs.test_network_topology import DIAMOND

IDS = [
    "feasible/BikeSharing-v0",
    "feasible/NSFNet-v0",
    "feasible/Reacher-v0",
    "feasible/HalfCheetah-v0",
    "feasible/HalfCheetahBox-v0",
]
BIKES, NETWORK, REACHER, CHEETAH, CHEETAH_BOX = IDS
EVERY = pytest.mark.parametrize("env_id", IDS)


def make(env_id: str, **options: object) -> ConstrainedEnv:
    env = gym.make(env_id, **options)  # pyright: ignore[reportArgumentType]
    assert isinstance(env, ConstrainedEnv)
    return env


def make_vec(env_id: str, num_envs: int, **options: object) -> ConstrainedVectorEnv:
    envs = gym.make_vec(env_id, num_envs, **options)  # pyright: ignore[reportArgumentType]
    assert isinstance(envs, ConstrainedVectorEnv)
    return envs


def feasible_action(env_id: str, obs: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """A random action inside the set, by arithmetic of the test's own."""
    if env_id == BIKES:
        moves = generator.integers(0, 4, 5)
        return (30 + moves - np.roll(moves, 1)).astype(np.float32)
    if env_id == NETWORK:
        return generator.uniform(0.0, 12.0, 9).astype(np.float32)
    if env_id == REACHER:
        return generator.uniform(-0.15, 0.15, 2).astype(np.float32)
    action = generator.uniform(-1.0, 1.0, 6)
    if env_id == CHEETAH:
        action *= min(1.0, 19.9 / np.abs(action * obs[11:17]).sum())
    return action.astype(np.float32)


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


def assert_same_state(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> None:
    assert one.keys() == other.keys()
    for name, value in one.items():
        assert value.dtype != object
        np.testing.assert_array_equal(value, other[name], err_msg=name)


def assert_same_step(one: tuple, other: tuple) -> None:
    for mine, theirs in zip(one[:4], other[:4], strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize(
    ("env_id", "options"),
    [*((env_id, {}) for env_id in IDS), (BIKES, {"stations": 3}), (REACHER, {"version": "v5"})],
)
def test_gymnasiums_checker_passes_in_project_form(env_id: str, options: dict[str, object]) -> None:
    # Its advice to bound and to normalise is no finding: bikes and packets are counted, robots are Gymnasium's own.
    accepted = ("symmetric and normalized", "This is probably too")
    env = make(env_id, on_infeasible="project", render_mode="rgb_array", **options)
    assert env.unwrapped is env
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_env(env)
    for warning in caught:
        assert any(words in str(warning.message) for words in accepted), warning.message


@pytest.mark.parametrize("env_id", [BIKES, NETWORK, REACHER])
def test_by_default_sampled_actions_are_refused(env_id: str) -> None:
    """So what the checker sampled above went through projections; most of the box is outside these sets."""
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


def test_the_constraint_sees_the_raw_observation_behind_wrappers() -> None:
    inner = make(CHEETAH, on_infeasible="project")
    env = gym.wrappers.NormalizeObservation(inner)
    shown, _ = env.reset(seed=0)
    for _ in range(20):
        shown = env.step(np.ones(6, dtype=np.float32))[0]
    velocities = inner.env.unwrapped.data.qvel[3:9]  # pyright: ignore[reportAttributeAccessIssue]
    np.testing.assert_allclose(inner.action_set().weights, velocities, rtol=1e-6)  # pyright: ignore[reportAttributeAccessIssue]
    assert np.abs(shown[11:17] - velocities).max() > 0.5


def test_constraints_follow_from_the_environments_own_data() -> None:
    bikes = make(BIKES, stations=4, capacities=[10, 20, 30, 40], bikes=70)
    bikes.reset(seed=0)
    corner = np.asarray(bikes.action_set().maximise_linear([0.0, 0.0, 1.0, 2.0]))
    np.testing.assert_array_equal(corner, [0, 0, 30, 40])
    rates = make(NETWORK).constraint(np.zeros(40))
    A, b, _ = link_rows(NSFNET)
    vertices = np.asarray(rates.vertices)  # pyright: ignore[reportAttributeAccessIssue]
    assert len(vertices) == 44
    assert (vertices @ A.T <= b + 1e-3).all()
    assert float(rates.support(np.ones(9))) == pytest.approx(150.0, abs=1e-3)
    own = make(NETWORK, topology=DIAMOND, on_infeasible="project")
    own.reset(seed=0)
    executed = own.step(np.full(own.action_space.shape, 100.0))[4]["executed_action"]  # pyright: ignore[reportCallIssue, reportArgumentType]
    own_A, own_b, _ = link_rows(DIAMOND)
    assert (own_A @ executed <= own_b + 1e-2).all()
    assert (own_A @ executed).max() > 0.0
    torques = make(REACHER).constraint(np.zeros(11)).project([3.0, 4.0])
    np.testing.assert_allclose(torques, np.sqrt(0.05) * np.array([0.6, 0.8]), rtol=1e-6)
    shown = make(CHEETAH, exclude_current_positions_from_observation=False)
    obs, _ = shown.reset(seed=0)
    np.testing.assert_allclose(shown.action_set().weights, obs[12:18], rtol=1e-6)  # pyright: ignore[reportAttributeAccessIssue]


def test_versions_are_gymnasiums() -> None:
    assert make(REACHER).observation_space.shape == (11,)
    assert make(REACHER, version="v5").observation_space.shape == (10,)
    assert make_vec(REACHER, 2, version="v5").single_observation_space.shape == (10,)
    assert str(make(CHEETAH).env.unwrapped) == "<HalfCheetahEnv<HalfCheetah-v5>>"
    assert str(make(CHEETAH_BOX, version="v4").env.unwrapped) == "<HalfCheetahEnv<HalfCheetah-v4>>"
    for build in (lambda: make(CHEETAH, version="v2"), lambda: make_vec(CHEETAH, 2, version="v2")):
        with pytest.raises(ValueError, match="version must be 'v4' or 'v5', not 'v2'"):
            build()


@EVERY
def test_the_default_mode_of_make_vec_is_the_batched_form_and_specs_make_anew(env_id: str) -> None:
    envs = make_vec(env_id, 2, on_infeasible="project")
    assert envs.spec is not None
    assert envs.spec.kwargs["vectorization_mode"] == "vector_entry_point"
    plain = gym.make_vec(env_id, 2, vectorization_mode="sync", on_infeasible="project")
    np.testing.assert_array_equal(envs.reset(seed=5)[0], plain.reset(seed=5)[0])
    env = make(env_id, on_infeasible="project")
    assert env.spec is not None
    again = gym.make(env.spec)
    assert isinstance(again, ConstrainedEnv)
    assert again.on_infeasible == "project"
    with pytest.raises(ValueError, match="on_infeasible must be 'raise' or 'project', got 'clip'"):
        make(env_id, on_infeasible="clip")
    with pytest.raises(ValueError, match="threads must be"):
        make_vec(env_id, 2, threads=0)


@EVERY
def test_pictures(env_id: str) -> None:
    env = make(env_id, render_mode="rgb_array", on_infeasible="project")
    env.action_space.seed(0)
    env.reset(seed=0)
    first = np.asarray(env.render())
    for _ in range(15):
        env.step(env.action_space.sample())
    later = np.asarray(env.render())
    assert first.shape == later.shape
    assert first.dtype == later.dtype == np.uint8
    assert later.std() > 5.0
    assert (np.abs(first.astype(int) - later).max(axis=-1) > 30).mean() > 0.001
    assert env.metadata["render_modes"] == ["rgb_array"]
    assert make(env_id).render() is None
    with pytest.raises(ValueError, match="render_mode must be None or 'rgb_array', not 'human'"):
        make(env_id, render_mode="human")


def test_making_a_robot_says_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    make(CHEETAH)
    make_vec(CHEETAH, 2)
    assert capfd.readouterr() == ("", "")
    assert list(tmp_path.iterdir()) == []


def test_importing_the_package_registers_and_loads_no_simulator() -> None:
    program = (
        "import sys, gymnasium, feasible\n"
        "heavy = ('jax', 'numba', 'mujoco', 'matplotlib', 'scipy', 'equinox', 'tyro', 'rich')\n"
        "print([name for name in heavy if name in sys.modules])\n"
        "print(sorted(name for name in gymnasium.registry if name.startswith('feasible/')))\n"
        "print(feasible.sets.Box.__name__, feasible.constrain.__name__, feasible.make.__name__)\n"
    )
    finished = subprocess.run(
        [sys.executable, "-c", program], env=os.environ, capture_output=True, text=True, check=True
    )
    assert finished.stdout.splitlines() == ["[]", str(sorted(IDS)), "Box constrain make"]
    assert {"sets", "constrain", "make", "make_vec", "tasks", "InfeasibleActionError"} <= set(dir(feasible))
    with pytest.raises(AttributeError, match="has no attribute 'constrains'"):
        feasible.constrains  # noqa: B018  # pyright: ignore[reportAttributeAccessIssue]
