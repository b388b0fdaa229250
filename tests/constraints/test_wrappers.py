"""Constrained environments: refusal without a step, repair, vector environments, and what a user can get wrong."""

from collections.abc import Callable
from typing import Literal

import gymnasium as gym
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from jaxtyping import Array
from numpy.typing import NDArray

import feasible as fs
from feasible.constraints import ConstrainedEnv, ConstrainedVectorEnv
from feasible.errors import InvalidStepError
from tests.run.toys import UNREADABLE, Unreadable, Writing


class Integrator(gym.Env[NDArray, NDArray]):
    """x moves by the action; nothing else happens, so a step that should not be is seen."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (2,), np.float64)
    action_space = gym.spaces.Box(-1.0, 1.0, (2,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, object] | None = None):
        super().reset(seed=seed)
        self.x = self.np_random.uniform(-1, 1, 2)
        return self.x.copy(), {}

    def step(self, action: NDArray) -> tuple[NDArray, float, bool, bool, dict]:
        self.x = self.x + action
        return self.x.copy(), float(-np.sum(self.x**2)), False, False, {}


def shrinking(obs: Array) -> fs.sets.Ball:
    return fs.sets.Ball(jnp.zeros(2, obs.dtype), 0.5 / (1.0 + jnp.sum(obs**2)))


def test_an_infeasible_action_is_refused_and_nothing_steps() -> None:
    env = fs.constrain(Integrator(), shrinking)
    before, _ = env.reset(seed=0)
    with pytest.raises(fs.InfeasibleActionError, match=r"violates '\|\|a - centre\|\| - radius <= 0' by"):
        env.step(np.array([1.0, 0.0], np.float32))
    np.testing.assert_array_equal(env.unwrapped.x, before)  # pyright: ignore[reportAttributeAccessIssue]


def test_a_feasible_action_is_executed_as_it_is() -> None:
    env = fs.constrain(Integrator(), shrinking)
    before, _ = env.reset(seed=0)
    action = np.array([0.01, -0.02], np.float32)
    after, *_ = env.step(action)
    np.testing.assert_array_equal(after, before + action)


def test_the_set_is_that_of_the_latest_raw_observation() -> None:
    env = fs.constrain(Integrator(), shrinking)
    assert isinstance(env, ConstrainedEnv)
    obs, _ = env.reset(seed=1)
    for _ in range(5):
        np.testing.assert_allclose(env.action_set().diameter(), 1.0 / (1.0 + np.sum(obs**2)))
        obs, *_ = env.step(np.asarray(env.action_set().maximise_linear(obs), np.float32))


def test_projection_repairs_and_reports() -> None:
    env = fs.constrain(Integrator(), shrinking, on_infeasible="project")
    before, _ = env.reset(seed=0)
    after, _, _, _, info = env.step(np.array([1.0, 0.0], np.float32))
    radius = 0.5 / (1.0 + np.sum(before**2))
    np.testing.assert_allclose(after - before, [radius, 0.0], atol=1e-6)
    np.testing.assert_allclose(info["executed_action"], [radius, 0.0], atol=1e-6)
    np.testing.assert_allclose(info["proposed_violation"], 1.0 - radius, atol=1e-6)


@pytest.mark.filterwarnings("ignore:.*different from the unwrapped version.*")
@pytest.mark.filterwarnings("ignore:.*symmetric and normalized.*")
@pytest.mark.filterwarnings("ignore:.*infinity.*")
@pytest.mark.filterwarnings("ignore:.*not within the observation space.*")
def test_gymnasiums_checker_passes_in_project_mode() -> None:
    env = fs.constrain(
        gym.make("Pendulum-v1"), lambda obs: fs.sets.Box([-1.0], jnp.abs(obs[:1])), on_infeasible="project"
    )
    check_env(env, skip_render_check=True)


def test_non_finite_and_misshapen_actions_are_refused() -> None:
    for mode in ("raise", "project"):
        env = fs.constrain(Integrator(), shrinking, on_infeasible=mode)
        before, _ = env.reset(seed=0)
        with pytest.raises(fs.InfeasibleActionError, match="NaN"):
            env.step(np.array([np.nan, 0.0], np.float32))
        with pytest.raises(fs.InfeasibleActionError, match="shape"):
            env.step(np.zeros(3, np.float32))
        np.testing.assert_array_equal(env.unwrapped.x, before)  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize("kind", [fs.sets.Allocation, fs.sets.IntegerAllocation])
@pytest.mark.parametrize("mode", ["raise", "project"])
def test_nan_is_no_allocation(kind: Callable[..., fs.sets.ActionSet], mode: Literal["raise", "project"]) -> None:
    """Alone and among others, nothing is stepped."""
    action = np.array([[0.0, 1.0], [np.nan, 1.0]], np.float32)
    alone = fs.constrain(Integrator(), lambda obs: kind(1.0, jnp.zeros(2), 1.0), on_infeasible=mode)
    before, _ = alone.reset(seed=0)
    with pytest.raises(
        fs.InfeasibleActionError, match=r"The action has a NaN or an infinite entry and was not executed"
    ):
        alone.step(action[1])
    np.testing.assert_array_equal(alone.unwrapped.x, before)  # pyright: ignore[reportAttributeAccessIssue]
    plants = gym.vector.SyncVectorEnv([Integrator, Integrator])
    several = fs.constrain(plants, lambda obs: kind(1.0, jnp.zeros(2), 1.0), on_infeasible=mode)
    before, _ = several.reset(seed=0)
    with pytest.raises(fs.InfeasibleActionError, match="The action of copy 1 has a NaN or an infinite entry"):
        several.step(action)
    np.testing.assert_array_equal([plant.x for plant in plants.envs], before)  # pyright: ignore[reportAttributeAccessIssue]


def test_an_empty_set_is_named_with_its_observation() -> None:
    env = fs.constrain(Integrator(), lambda obs: fs.sets.Allocation(5.0 + 0.0 * obs[0], jnp.zeros(2), 1.0))
    env.reset(seed=0)
    with pytest.raises(fs.EmptySetError, match=r"observation \[.*\] is empty: Allocation: total must not exceed"):
        env.step(np.zeros(2, np.float32))


def test_fractional_actions_are_refused_by_integer_sets() -> None:
    env = fs.constrain(Integrator(), lambda obs: fs.sets.IntegerAllocation(1, jnp.zeros(2), 1.0))
    env.reset(seed=0)
    with pytest.raises(fs.InfeasibleActionError, match=r"0\.5 away from integers"):
        env.step(np.array([0.5, 0.5], np.float32))
    env.step(np.array([0.0, 1.0], np.float32))


def test_what_constrain_refuses() -> None:
    with pytest.raises(ValueError, match="action space must be a one-dimensional Box"):
        fs.constrain(gym.make("CartPole-v1"), shrinking)
    with pytest.raises(ValueError, match="sets have dim 3, but the action space has 2 entries"):
        fs.constrain(Integrator(), lambda obs: fs.sets.Ball(jnp.zeros(3), 1.0))
    with pytest.raises(ValueError, match="must return an ActionSet, got an array"):
        fs.constrain(Integrator(), lambda obs: obs)
    with pytest.raises(ValueError, match="pure JAX function"):
        fs.constrain(Integrator(), lambda obs: fs.sets.Ball(np.zeros(2), 1.0 if obs[0] > 0 else 2.0))
    with pytest.raises(ValueError, match="on_infeasible must be"):
        fs.constrain(Integrator(), shrinking, on_infeasible="ignore")  # pyright: ignore[reportCallIssue, reportArgumentType]
    with pytest.raises(gym.error.ResetNeeded, match="call reset before step"):
        fs.constrain(Integrator(), shrinking).step(np.zeros(2, np.float32))


def test_normalised_observations_are_refused_where_the_constraint_would_see_them() -> None:
    single, vector = gym.wrappers.NormalizeObservation, gym.wrappers.vector.NormalizeObservation
    said = "NormalizeObservation is inside, so the constraint would see normalised values.*normalised=True"
    for env in (
        single(Integrator()),
        gym.wrappers.TimeLimit(single(Integrator()), 5),
        vector(gym.vector.SyncVectorEnv([Integrator] * 2)),
        gym.vector.SyncVectorEnv([lambda: single(Integrator())] * 2),
    ):
        with pytest.raises(ValueError, match=said):
            fs.constrain(env, shrinking)  # pyright: ignore[reportCallIssue, reportArgumentType]
    fs.constrain(gym.wrappers.NormalizeReward(Integrator()), shrinking)


def test_vector_environments_judge_every_copy() -> None:
    vector = gym.vector.SyncVectorEnv([Integrator] * 3)
    env = fs.constrain(vector, shrinking)
    assert isinstance(env, ConstrainedVectorEnv)
    before, _ = env.reset(seed=0)
    actions = np.zeros((3, 2), np.float32)
    actions[2] = [0.0, 1.0]
    with pytest.raises(fs.InfeasibleActionError, match=r"The action of copy 2 violates"):
        env.step(actions)
    after, *_ = env.step(np.zeros((3, 2), np.float32))
    np.testing.assert_array_equal(after, before)


class Ending(Integrator):
    """Its second step ends the episode, where no action is feasible any more."""

    def reset(self, *, seed: int | None = None, options: dict[str, object] | None = None):
        self.made = 0
        return super().reset(seed=seed)

    def step(self, action: NDArray):
        self.made += 1
        obs, reward, *_ = super().step(action)
        return (np.full(2, 9.0) if self.made == 2 else obs), reward, self.made == 2, False, {}


def until_nine(obs: Array) -> fs.sets.Ball:
    """Empty from 9 on."""
    return fs.sets.Ball(jnp.zeros(2, obs.dtype), jnp.where(obs[0] < 9.0, 0.5, -1.0))


@pytest.mark.parametrize("mode", ["raise", "project"])
def test_an_action_that_a_late_reset_ignores_is_not_judged(mode: Literal["raise", "project"]) -> None:
    env = fs.constrain(gym.vector.SyncVectorEnv([Ending, Integrator]), until_nine, on_infeasible=mode)
    still, far = np.zeros((2, 2), np.float32), np.array([[0.9, 0.9], [0.0, 0.0]], np.float32)
    env.reset(seed=0)
    for _ in range(2):
        env.step(still)
        assert env.step(still)[2].tolist() == [True, False]  # pyright: ignore[reportAttributeAccessIssue]
        if mode == "raise":
            with pytest.raises(fs.InfeasibleActionError, match="The action of copy 1 violates"):
                env.step(far[::-1])
        obs, _, _, _, info = env.step(far)
        assert np.abs(obs[0]).max() <= 1.0  # where an episode begins
        if mode == "project":
            np.testing.assert_array_equal(info["executed_action"], far)
            np.testing.assert_array_equal(info["proposed_violation"], [0.0, 0.0])
    env.step(still)
    env.step(still)
    env.reset(options={"reset_mask": np.array([True, False])})
    if mode == "raise":
        with pytest.raises(fs.InfeasibleActionError, match="The action of copy 0 violates"):
            env.step(far)
    else:
        assert env.step(far)[4]["proposed_violation"][0] > 0.5


def test_vector_projection_equals_single_projection() -> None:
    singles = [fs.constrain(Integrator(), shrinking, on_infeasible="project") for _ in range(3)]
    vector = fs.constrain(gym.vector.SyncVectorEnv([Integrator] * 3), shrinking, on_infeasible="project")
    vector.reset(seed=4)
    for i, env in enumerate(singles):
        env.reset(seed=4 + i)
    rng = np.random.default_rng(0)
    for _ in range(4):
        actions = rng.uniform(-1, 1, (3, 2)).astype(np.float32)
        obs, _, _, _, info = vector.step(actions)
        for i, env in enumerate(singles):
            alone, _, _, _, own = env.step(actions[i])
            np.testing.assert_allclose(obs[i], alone, atol=1e-12)
            np.testing.assert_allclose(info["executed_action"][i], own["executed_action"], atol=1e-7)


def test_a_step_that_cannot_be_read_is_named_and_a_reset_needed() -> None:
    changed: list = [None]
    simulator = Unreadable(lambda outcome: changed[0](outcome))
    env = fs.constrain(simulator, lambda obs: fs.sets.Box([-1.0, -1.0], [1.0, 1.0]))
    idle = np.zeros(2, np.float32)
    for change, said in UNREADABLE.values():
        changed[0] = change
        simulator.steps = 0
        env.reset(seed=0)
        env.step(idle)
        with pytest.raises(InvalidStepError, match=said):
            env.step(idle)
        with pytest.raises(gym.error.ResetNeeded):
            env.step(idle)
    copies = fs.constrain(gym.vector.SyncVectorEnv([lambda: simulator]), lambda obs: fs.sets.Box(-1.0, [1.0, 1.0]))
    simulator.steps = 0
    copies.reset(seed=0)
    copies.step(idle[None])
    with pytest.raises(InvalidStepError, match="The environment of copy 0 returned no five values from step 2"):
        copies.step(idle[None])


def test_a_nan_in_a_set_is_named_with_its_step_and_observation() -> None:
    env = fs.constrain(Integrator(), lambda obs: fs.sets.WeightedL1Box(jnp.log(obs), 1.0, 1.0))
    env.reset(seed=0)
    said = r"The feasible set at step 0 of observation \[.*\] cannot be made, .*: WeightedL1Box: weights must be finite"
    with pytest.raises(fs.InfeasibleActionError, match=said):
        env.step(np.zeros(2, np.float32))


def test_an_environment_may_write_to_a_projected_action() -> None:
    env = fs.constrain(Writing(), lambda obs: fs.sets.Box([-1.0, -0.5], [1.0, 0.5]), on_infeasible="project")
    env.reset(seed=0)
    info = env.step(np.ones(2, np.float32))[4]
    np.testing.assert_array_equal(info["executed_action"], [1.0, 0.5])
