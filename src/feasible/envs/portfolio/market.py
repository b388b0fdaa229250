"""The synthetic market: returns that are partly foreseen, drawn for a whole episode at once.

Asset 0 is cash and keeps its worth. For every other asset i and month t, with standard normal draws e, z:

    signal    m_{0,i} = s e_{0,i},   m_{t+1,i} = p m_{t,i} + sqrt(1 - p^2) s e_{t+1,i}
    return    ln R_{t,i} = m_{t,i} + 0.1 v_i - v_i^2 / 2 + v_i (sqrt(r) z_t + sqrt(1 - r) z_{t,i})

with persistence p, strength s of the signals, correlation r, and volatilities v_i spaced evenly from lowest to highest.
The signals are observed: they are what can be known of the next month.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float64

SHARPE = 0.1
"""Mean excess return per volatility of a month."""


@dataclass(frozen=True)
class Market:
    """The law of all returns."""

    assets: int = 13
    persistence: float = 0.8
    signal: float = 0.015
    correlation: float = 0.3
    lowest_volatility: float = 0.03
    highest_volatility: float = 0.09

    def __post_init__(self) -> None:
        if isinstance(self.assets, bool) or not isinstance(self.assets, int) or self.assets < 2:
            raise ValueError(f"assets must be an integer of at least 2, cash and another, not {self.assets!r}.")
        for name in ("persistence", "correlation"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ValueError(f"Market: {name} must be between 0 and 1, not {getattr(self, name)!r}.")
        for name in ("signal", "lowest_volatility", "highest_volatility"):
            if not (np.isfinite(getattr(self, name)) and getattr(self, name) >= 0.0):
                raise ValueError(f"Market: {name} must be a finite number >= 0, not {getattr(self, name)!r}.")

    @cached_property
    def volatilities(self) -> Float64[np.ndarray, " risky"]:
        return np.linspace(self.lowest_volatility, self.highest_volatility, self.assets - 1)

    def draw(
        self, generator: np.random.Generator, steps: int
    ) -> tuple[Float64[np.ndarray, "steps+1 assets"], Float64[np.ndarray, "steps assets"]]:
        """Signals before each step and after the last, and what one unit of each asset becomes in each step."""
        risky = self.assets - 1
        drawn = generator.standard_normal((steps + 1, 2 * risky + 1))
        fresh, own, common = drawn[:, :risky], drawn[:-1, risky:-1], drawn[:-1, -1:]
        signals, growth = np.zeros((steps + 1, self.assets)), np.ones((steps, self.assets))
        signals[0, 1:] = self.signal * fresh[0]
        renewed = np.sqrt(1.0 - self.persistence**2) * self.signal
        for step in range(steps):
            signals[step + 1, 1:] = self.persistence * signals[step, 1:] + renewed * fresh[step + 1]
        shocks = np.sqrt(self.correlation) * common + np.sqrt(1.0 - self.correlation) * own
        volatility = self.volatilities
        growth[:, 1:] = np.exp(signals[:-1, 1:] + (SHARPE - 0.5 * volatility) * volatility + volatility * shocks)
        return signals, growth
