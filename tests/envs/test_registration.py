"""The registered environments: Gymnasium's checker, what they are made from, versions, pictures and imports."""

import os
import subprocess
import sys
import warnings
from pathlib import Path

import gymnasium as gym
import jax
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import feasible
from feasible.constraints import ConstrainedEnv
from feasible.envs.network import NSFNET, link_rows
from feasible.envs.network.constrained import feasible_rates
from tests.envs.registered import BIKES, CHEETAH, CHEETAH_BOX, EVERY, IDS, NETWORK, OTHERS, REACHER, make, make_vec
from tests.envs.test_network_topology import DIAMOND


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
    jax.tree.map(np.testing.assert_array_equal, rates, feasible_rates(NSFNET))  # all of it lies in the action space
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
    assert finished.stdout.splitlines() == ["[]", str(sorted([*IDS, *OTHERS])), "Box constrain make"]
    assert {"sets", "constrain", "make", "make_vec", "Task", "InfeasibleActionError"} <= set(dir(feasible))
    with pytest.raises(AttributeError, match="has no attribute 'constrains'"):
        feasible.constrains  # noqa: B018  # pyright: ignore[reportAttributeAccessIssue]
