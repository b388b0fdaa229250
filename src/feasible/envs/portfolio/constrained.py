"""The portfolio with its constraint: capped weights that add up to 1, and no more traded than the turnover."""

from dataclasses import dataclass

import jax.numpy as jnp

from feasible import sets
from feasible.constraints import Observation, OnInfeasible
from feasible.envs.portfolio.env import PortfolioEnv, Portfolios, PortfolioVectorEnv
from feasible.envs.registered import RegisteredEnv, RegisteredVectorEnv


@dataclass(frozen=True)
class WithinTurnover:
    """{ a : sum a = 1, 0 <= a_i <= max(bound, w_i), sum |a_i - w_i| <= turnover }, w the weights now, which the
    observation begins with. A weight that the market drove above its cap may stay or fall, never rise."""

    assets: int
    bound: float
    turnover: float

    def __call__(self, obs: Observation) -> sets.TurnoverAllocation:
        weights = obs[: self.assets]
        nothing = jnp.zeros_like(weights)
        return sets.TurnoverAllocation(1.0, nothing, nothing + self.bound, weights, self.turnover)


def constraint_of(portfolios: Portfolios) -> WithinTurnover:
    return WithinTurnover(portfolios.market.assets, float(portfolios.bound), float(portfolios.turnover))


def portfolio(*, on_infeasible: OnInfeasible = "raise", **options: object) -> RegisteredEnv:
    """`feasible/Portfolio-v0`, with the options of `PortfolioEnv`."""
    env = PortfolioEnv(**options)  # pyright: ignore[reportArgumentType]
    return RegisteredEnv(env, constraint_of(env.portfolios), on_infeasible)


def portfolio_copies(
    num_envs: int = 1, *, on_infeasible: OnInfeasible = "raise", **options: object
) -> RegisteredVectorEnv:
    """Its batched form, with the options of `PortfolioVectorEnv`."""
    env = PortfolioVectorEnv(num_envs, **options)  # pyright: ignore[reportArgumentType]
    return RegisteredVectorEnv(env, constraint_of(env.portfolios), on_infeasible)
