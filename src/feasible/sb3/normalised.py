"""VecNormalize: constraints are functions of the raw observation, which it replaces by one whose meaning moves."""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
# The type checker also runs where Stable-Baselines3 is not installed.

import sys
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.running_mean_std import RunningMeanStd
from stable_baselines3.common.vec_env import VecEnv, VecNormalize, unwrap_vec_normalize

from feasible.constraints import Constraint
from feasible.sets.base import ActionSet


@dataclass(frozen=True)
class Unnormalised:
    """A constraint of observations that were normalised by known statistics."""

    constraint: Constraint
    mean: tuple[float, ...]
    deviation: tuple[float, ...]

    def __call__(self, obs: Float[Array, " o"]) -> ActionSet:
        mean, deviation = (jnp.asarray(numbers, obs.dtype) for numbers in (self.mean, self.deviation))
        return self.constraint(mean + deviation * obs)


def unnormalised(constraint: Constraint, env: VecEnv) -> Unnormalised:
    """The constraint on what VecNormalize makes of raw observations, once its statistics are settled.

    Entries that VecNormalize clips (`clip_obs`) are lost: what is executed is still judged by the raw ones.
    """
    normaliser = normaliser_of(env)
    if normaliser is None or not isinstance(normaliser.obs_rms, RunningMeanStd):
        raise ValueError("unnormalised: env must be a VecNormalize of observations that are arrays.")
    if normaliser.training:
        raise ValueError(
            "unnormalised: the statistics of VecNormalize still change; set env.training = False once they are settled."
        )
    deviation = np.sqrt(normaliser.obs_rms.var + normaliser.epsilon)
    return Unnormalised(constraint, tuple(normaliser.obs_rms.mean.tolist()), tuple(deviation.tolist()))


def normaliser_of(env: VecEnv | None) -> VecNormalize | None:
    """The wrapper that normalises observations, where there is one."""
    found = None if env is None else unwrap_vec_normalize(env)
    return found if found is not None and found.norm_obs else None


def check_raw(env: VecEnv | None, constraint: Constraint) -> None:
    """Refuse policies that would ask their constraint about normalised observations."""
    if normaliser_of(env) is not None and not isinstance(constraint, Unnormalised):
        raise ValueError(
            "constrained_policy: VecNormalize normalises the observations, so the constraint would see values whose "
            "meaning changes; use VecNormalize(env, norm_obs=False), or settle its statistics (env.training = False) "
            "and pass unnormalised(constraint, env)."
        )


def environment_of_the_maker() -> VecEnv | None:
    """The environment of the algorithm that is making its policy, found among the calls that led here.

    Stable-Baselines3 tells policies the spaces of their environment and not the environment.
    """
    frame = sys._getframe()
    while frame is not None:
        maker = frame.f_locals.get("self")
        if isinstance(maker, BaseAlgorithm):
            return maker.env  # pyright: ignore[reportOptionalMemberAccess]
        frame = frame.f_back
    return None
