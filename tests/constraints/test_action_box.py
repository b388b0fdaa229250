"""What is feasible lies in the constraint's set AND in the action space."""

from collections.abc import Callable

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array

import feasible as fs
from feasible import sets
from feasible.catalogue import registry
from feasible.constraints import ConstrainedEnv, Constraint
from feasible.constraints.action_box import Clipped, Watched, fixed, in_action_box
from feasible.envs.bike_sharing.constrained import allocations
from feasible.envs.mujoco.constrained import half_cheetah, reacher
from feasible.envs.mujoco.limits import Budgeted, Limit
from feasible.sets.base import ActionSet
from tests.constraints.test_wrappers import Integrator

SPACE = gym.spaces.Box(-1.0, 1.0, (2,), np.float32)
OBS = np.array([0.5, -0.25])
LOW, HIGH = np.array([-1.0, -np.inf]), np.array([0.5, 1.0])


def in_space(constraint: Constraint) -> Constraint:
    return in_action_box(constraint, SPACE, OBS)


@pytest.mark.parametrize(
    "make",
    [
        lambda: sets.Box([-2.0, -3.0], [2.0, 0.5]),
        lambda: sets.Allocation(0.25, [-2.0, -2.0], [2.0, 2.0]),
        lambda: sets.AllocationAtMost(0.75, [-2.0, -2.0], [2.0, 2.0]),
        lambda: sets.IntegerAllocation(0, [-2.0, -2.0], [2.0, 2.0]),
        lambda: sets.Ball([0.5, 0.5], 1.25),
    ],
    ids=["Box", "Allocation", "AllocationAtMost", "IntegerAllocation", "Ball"],
)
def test_the_part_of_a_set_in_a_box_is_what_lies_in_both(make: Callable[[], ActionSet]) -> None:
    feasible_set = make()
    part = feasible_set.within(LOW, HIGH)
    rng = np.random.default_rng(0)
    points = rng.uniform(-2, 2, (400, 2))
    points[::2, 1] = 0.25 - points[::2, 0]  # some on the plane of the allocation
    found = np.asarray(jax.vmap(part.contains)(points))
    both = np.asarray(jax.vmap(feasible_set.contains)(points)) & np.all((points >= LOW) & (points <= HIGH), axis=1)
    np.testing.assert_array_equal(found, both)
    assert feasible_set.within(-9.0, np.inf) is feasible_set


def test_symmetric_sets_stay_what_they_are_in_a_symmetric_box() -> None:
    for one in (
        sets.WeightedL1Box([1.0, 2.0], 3.0, [4.0, 0.5]),
        sets.PositivePowerBox([1.0, 2.0], 3.0, [4.0, 0.5]),
        sets.EllipsoidBox(np.eye(2), 3.0, [4.0, 0.5]),
    ):
        part = one.clipped(np.full(2, -1.0), np.ones(2))
        assert isinstance(part, type(one))
        np.testing.assert_array_equal(part.bound, [1.0, 0.5])
        assert one.clipped(np.full(2, -1.0), np.full(2, 2.0)) is None
        assert one.clipped(np.full(2, -4.0), np.full(2, np.inf)) is one


def test_a_constant_set_is_cut_once_and_an_empty_part_refused() -> None:
    with pytest.raises(fs.EmptySetError, match=r"no action of the action space, Box\(-1\.0, 1\.0.*satisfies"):
        in_space(lambda obs: sets.Ball([5.0, 5.0], 0.5))
    with pytest.raises(fs.EmptySetError, match="total must not exceed the sum of high"):
        in_space(lambda obs: sets.IntegerAllocation(4, [0.0, 0.0], [3.0, 3.0]))
    env = fs.constrain(Integrator(), lambda obs: sets.Ball([0.0, 0.0], 5.0))
    assert isinstance(env, ConstrainedEnv)
    env.reset(seed=0)
    np.testing.assert_allclose(env.action_set().maximise_linear([1.0, 2.0]), [1.0, 1.0], atol=1e-6)
    with pytest.raises(fs.InfeasibleActionError, match=r"violates 'a - high, entry 0 <= 0' by 3\.96"):
        env.step(np.array([4.96, 0.0], np.float32))


def test_a_set_of_the_observation_is_clipped_where_its_kind_can_be() -> None:
    clipped = in_space(lambda obs: sets.Box(-jnp.abs(obs), jnp.abs(obs) + 2.0))
    assert isinstance(clipped, Clipped)
    np.testing.assert_array_equal(jax.jit(clipped)(OBS).high, [1.0, 1.0])
    np.testing.assert_array_equal(jax.jit(clipped)(4 * OBS).low, [-1.0, -1.0])
    with pytest.raises(fs.EmptySetError, match="low must not exceed high"):
        in_space(lambda obs: sets.Box(obs + 3.0, 4.0))(OBS)
    assert isinstance(in_space(lambda obs: sets.WeightedL1Box(obs, 1.0, 2.0)), Clipped)


def inside(obs: Array) -> ActionSet:
    """Depends on the observation, but its bounds do not."""
    return sets.WeightedL1Box(jnp.where(obs > 0, obs, 2.0), 1.0, jnp.minimum(1.0, 3.0))


def reaching_out(obs: Array) -> ActionSet:
    return sets.Ball(jnp.zeros(2), jnp.abs(obs[0]) + 2.0)


def test_what_lies_inside_stays_the_same_function() -> None:
    for constraint in (inside, lambda obs: sets.Ball([0.0, 0.0], 1.0), fixed(sets.Box([-1.0, 0.0], [1.0, 1.0]))):
        assert in_space(constraint) is constraint
    unbounded = gym.spaces.Box(-np.inf, np.inf, (2,))
    assert in_action_box(reaching_out, unbounded, OBS) is reaching_out


@pytest.mark.parametrize("copies", [0, 2])
def test_a_set_that_cannot_be_clipped_is_left_and_its_actions_tested(copies: int) -> None:
    constraint = in_space(reaching_out)
    assert isinstance(constraint, Watched)
    assert in_space(constraint) is constraint == in_space(reaching_out)
    simulator = gym.vector.SyncVectorEnv([Integrator] * copies) if copies else Integrator()
    env = fs.constrain(simulator, reaching_out)
    assert isinstance(env.constraint(OBS), sets.Ball)
    before, _ = env.reset(seed=0)
    wanted = np.array([0.5, -1.5], np.float32)
    who = "The action of copy 0" if copies else "The action"
    with pytest.raises(
        fs.InfeasibleActionError, match=rf"{who} is -1\.5 in entry 1, below the lower bound -1 of the action space"
    ):
        env.step(np.tile(wanted, (copies, 1)) if copies else wanted)
    after, *_ = env.step(np.zeros_like(before, np.float32))
    np.testing.assert_array_equal(after, before)


def test_the_tolerance_at_the_action_space_is_not_that_of_a_wider_set() -> None:
    env = fs.constrain(Integrator(), lambda obs: sets.Ball(jnp.zeros(2), 1e6 + obs[0]))
    env.reset(seed=0)
    with pytest.raises(fs.InfeasibleActionError, match="above the upper bound 1"):
        env.step(np.array([1.001, 0.0], np.float32))


@pytest.mark.parametrize(
    ("name", "stated"),
    [
        ("halfcheetah", half_cheetah.limits["power"]),
        ("halfcheetah-box", half_cheetah.limits["box"]),
        ("reacher", reacher.limits["torque"]),
    ],
)
def test_the_robots_keep_their_constraints(name: str, stated: Limit) -> None:
    assert registry.make(name).constraint == registry.make(name).constraint == Budgeted(stated.within, stated.budget)


@pytest.mark.parametrize("name", ["bss-3", "bss-5"])
def test_the_fleets_keep_their_sets(name: str) -> None:
    env = registry.make(name)
    stated, kept = allocations(env.env.system), env.constraint(env.observation_space.sample())  # pyright: ignore[reportAttributeAccessIssue]
    assert jax.tree.structure(kept) == jax.tree.structure(stated)
    jax.tree.map(np.testing.assert_array_equal, kept, stated)
