"""A portfolio in a stated synthetic market: weights with caps and a limit on what is traded in a step."""

from feasible.envs.portfolio.env import PortfolioEnv as PortfolioEnv
from feasible.envs.portfolio.env import PortfolioVectorEnv as PortfolioVectorEnv
from feasible.envs.portfolio.market import Market as Market
