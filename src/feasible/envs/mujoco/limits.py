"""The limits on robots' actions: functions from an observation and a budget to the feasible set.

Observations end with the velocities of the joints (but for Reacher), so entries are counted from the end: that holds
whether an observation shows the robot's position or not.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

from feasible import sets
from feasible.constraints import Observation
from feasible.sets.base import ActionSet

SWING = 0.1
"""The most that sum a_i^2 sin^2 th_i may be."""
SPEED_UNIT = 0.1
"""By which Reacher's joint speeds, in radians per second, are weighed: PyBullet shows them in that unit."""


@dataclass(frozen=True)
class Limit:
    """A limit with its usual budget."""

    within: Callable[[Observation, float], ActionSet]
    budget: float = math.inf
    """Infinite where there is none."""
    remembers: bool = False
    """Whether it reads the last action, which then is at the end of the observations."""


@dataclass(frozen=True)
class Budgeted:
    """The constraint that a limit is with a budget. Equal ones are interchangeable."""

    within: Callable[[Observation, float], ActionSet]
    budget: float

    def __call__(self, obs: Observation) -> ActionSet:
        return self.within(obs, self.budget)


def box(obs: Observation, budget: float) -> sets.Box:
    """{ a : |a_i| <= 1 }, the action space of six joints itself."""
    del obs, budget
    return sets.Box(-np.ones(6), np.ones(6))


def torque(obs: Observation, budget: float) -> sets.Ball:
    """{ a : a_1^2 + a_2^2 <= budget }."""
    del obs
    return sets.Ball(np.zeros(2), math.sqrt(budget))


def squares(joints: int, bound: float) -> Callable[[Observation, float], sets.BallBox]:
    """{ a : |a|^2 <= budget, |a_i| <= bound }."""

    def within(obs: Observation, budget: float) -> sets.BallBox:
        del obs
        return sets.BallBox(np.zeros(joints), math.sqrt(budget), np.full(joints, -bound), np.full(joints, bound))

    return within


def power(joints: int) -> Callable[[Observation, float], sets.WeightedL1Box]:
    """{ a : sum |w_i a_i| <= budget, |a_i| <= 1 }, w the angular velocities of the joints, the last entries."""
    return lambda obs, budget: sets.WeightedL1Box(weights=obs[-joints:], budget=budget, bound=1.0)


def positive_power(joints: int) -> Callable[[Observation, float], sets.PositivePowerBox]:
    """{ a : sum max(w_i a_i, 0) <= budget, |a_i| <= 1 }: braking is free."""
    return lambda obs, budget: sets.PositivePowerBox(weights=obs[-joints:], budget=budget, bound=1.0)


def power_and_swing(joints: int) -> Callable[[Observation, float], sets.WeightedL1EllipsoidBox]:
    """{ a : sum |w_i a_i| <= budget, sum a_i^2 sin^2 th_i <= 0.1, |a_i| <= 1 }, th the angles of the joints.

    The angles are the last of the positions, and there are three more velocities than joints.
    """

    def within(obs: Observation, budget: float) -> sets.WeightedL1EllipsoidBox:
        angles = obs[-2 * joints - 3 : -joints - 3]
        return sets.WeightedL1EllipsoidBox(obs[-joints:], budget, jnp.sin(angles) ** 2, SWING, 1.0)

    return within


def mean_angle(obs: Observation, budget: float) -> sets.HalfSpaceBox:
    """{ a : w_1 a_1 sin(th_1 + th_2 + th_3) + w_4 a_4 sin(th_4 + th_5 + th_6) <= budget, |a_i| <= 1 }: the power of
    both thighs, as far as the mean angles of their legs count."""
    speeds, angles = obs[-6:], obs[-15:-9]
    legs = jnp.sin(jnp.sum(jnp.reshape(angles, (2, 3)), axis=1))
    weights = jnp.zeros_like(speeds).at[jnp.array([0, 3])].set(speeds[jnp.array([0, 3])] * legs)
    return sets.HalfSpaceBox(weights, budget, -jnp.ones_like(speeds), jnp.ones_like(speeds))


def arm_power(obs: Observation, budget: float) -> sets.WeightedL1Box:
    """{ a : sum |w_i a_i| <= budget, |a_i| <= 1 }, w Reacher's joint speeds (entries 6 and 7) in tenths."""
    return sets.WeightedL1Box(SPEED_UNIT * obs[6:8], budget, 1.0)


def arm_positive_power(obs: Observation, budget: float) -> sets.PositivePowerBox:
    """{ a : sum max(w_i a_i, 0) <= budget, |a_i| <= 1 }, w as in `arm_power`."""
    return sets.PositivePowerBox(SPEED_UNIT * obs[6:8], budget, 1.0)


def tip(obs: Observation, budget: float) -> sets.EllipsoidBox:
    """{ a : a_1^2 + 2 a_1 (a_1 + a_2) cos t + (a_1 + a_2)^2 <= budget, |a_i| <= 1 }, t the angle of the elbow, whose
    cosine is entry 1. At t = 0, a straight arm, a_2 = -2 a_1 is not limited but by the box."""
    bend = obs[1]
    Q = jnp.stack([jnp.stack([2.0 + 2.0 * bend, 1.0 + bend]), jnp.stack([1.0 + bend, jnp.ones_like(bend)])])
    return sets.EllipsoidBox(Q, budget, 1.0)


def rate(obs: Observation, budget: float) -> sets.BallBox:
    """{ a : |a - last| <= budget, |a_i| <= 1 }, last the action of the step before, the last entries."""
    return sets.BallBox(obs[-2:], budget, -np.ones(2), np.ones(2))
