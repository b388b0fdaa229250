"""Bike sharing as a Gymnasium environment: every step the operator chooses where all bikes stand.

Observation: [demand of the step just played out of each station | bikes at each station now | steps played].
Action: the number of bikes at each station, an integer allocation of the whole fleet. An episode has a fixed
length and is truncated, never terminated. Every episode starts at the initial allocation; its demand is drawn
at its reset from the environment's own generator.
"""

from collections.abc import Mapping

import gymnasium as gym
import numpy as np
from jaxtyping import Float64, UInt8
from numpy.typing import ArrayLike

from feasible.envs.bike_sharing.action import whole_allocation
from feasible.envs.bike_sharing.demand import (
    Day,
    DemandLaw,
    demand_law,
    given_allocation,
    given_demand,
    reset_options,
)
from feasible.envs.bike_sharing.dynamics import play
from feasible.envs.bike_sharing.rules import Rules
from feasible.envs.bike_sharing.system import BikeSystem, Costs, bike_system, check_memory
from feasible.envs.generators import pack_generator, unpack_generator

Observation = Float64[np.ndarray, " 2*stations+1"]
State = dict[str, np.ndarray]
EPISODE_LENGTH = 100
NATIVE_DEMAND = (5, 24)


class BikeSharingEnv(gym.Env[np.ndarray, np.ndarray]):
    """Bike sharing with any number of stations; the defaults for 3 and 5 are the paper's two systems.

    `demand` is (low, high) of uniform integers from each station to its nearest `destinations` (at most four
    unless said otherwise), or a function (generator, steps) -> (steps, stations, stations). `rules` is
    `Rules.recorded` or `Rules.corrected`. `reset(options={"demand": (steps, n, n), "allocation": (n,)})`
    plays a given day from a given start, both possibly fractional; fewer steps make a shorter episode.

    An action that is not an integer allocation of all bikes raises `InfeasibleActionError`; nothing steps.
    """

    metadata = {  # noqa: RUF012 -- declared so by Gymnasium
        "render_modes": ["rgb_array"],
        "render_fps": 4,
    }

    def __init__(
        self,
        stations: int = 5,
        *,
        capacities: int | ArrayLike = 35,
        bikes: int | None = None,
        distances: ArrayLike | None = None,
        demand: tuple[int, int] | DemandLaw = NATIVE_DEMAND,
        destinations: int | None = None,
        costs: Costs | None = None,
        initial_allocation: ArrayLike | None = None,
        episode_length: int = EPISODE_LENGTH,
        rules: Rules = Rules.recorded,
        render_mode: str | None = None,
    ) -> None:
        self.episode_length = checked_length(episode_length)
        check_memory(stations, episode_length)
        self.system = bike_system(
            stations,
            capacities=capacities,
            bikes=bikes,
            distances=distances,
            initial_allocation=initial_allocation,
            costs=costs,
            rules=rules,
        )
        self.demand_law = demand_law(self.system, demand, destinations)
        if render_mode not in (None, "rgb_array"):
            raise ValueError(f"render_mode must be None or 'rgb_array', not {render_mode!r}.")
        self.render_mode = render_mode
        self.observation_space, self.action_space = spaces(self.system)
        self._day: Day | None = None

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, ArrayLike] | None = None
    ) -> tuple[Observation, dict[str, float]]:
        super().reset(seed=seed)
        demand, allocation = reset_options(options)
        n = self.system.stations
        bikes = self.system.initial if allocation is None else given_allocation(allocation, self.system)
        if bikes.shape != (n,):
            raise ValueError(f"allocation must have shape ({n},), not {bikes.shape}.")
        if demand is None:
            day = self.demand_law(self.np_random, self.episode_length)
        else:
            day = given_demand(demand, n, self.episode_length)
            if day.ndim != 3:
                raise ValueError(f"demand must have shape (steps, {n}, {n}), not {day.shape}.")
        self._day, self._bikes, self._t = day, bikes.copy(), 0
        self._outgoing, self._flows = np.zeros(n), np.zeros((n, n))
        return self._observation(), {}

    def step(self, action: ArrayLike) -> tuple[Observation, float, bool, bool, dict[str, float]]:
        day = self._running_day()
        target = whole_allocation(self.system, action)
        outcome = play(self.system, self._bikes, day[self._t], target)
        self._bikes, self._outgoing, self._flows = outcome.allocation, outcome.outgoing, outcome.flows
        self._t += 1
        info = {
            "lost": float(outcome.lost),
            "overflow": float(outcome.overflow),
            "moving": float(outcome.moving),
            "revenue": float(outcome.revenue),
            "vanished": float(outcome.vanished),
        }
        return self._observation(), float(outcome.reward), False, self._t == len(day), info

    def render(self) -> UInt8[np.ndarray, "height width 3"] | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        if self.render_mode is None:
            return None
        if self._day is None:
            raise RuntimeError("reset must be called before render.")
        # Imported here: drawing is the only part that needs matplotlib, which takes a second to load.
        from feasible.envs.bike_sharing.picture import picture

        return picture(self.system, self._bikes, self._flows, float(self._outgoing.sum()), self._t)

    def get_state(self) -> State:
        """Everything the future depends on, as plain arrays."""
        if self._day is None:
            raise RuntimeError("reset must be called before get_state.")
        return {
            "demand": self._day.copy(),
            "allocation": self._bikes.copy(),
            "outgoing": self._outgoing.copy(),
            "flows": self._flows.copy(),
            "t": np.array(self._t),
            "generator": pack_generator(self.np_random),
        }

    def set_state(self, state: State) -> None:
        """Continue exactly as the environment whose state this is would have."""
        n = self.system.stations
        shapes = {"allocation": (n,), "outgoing": (n,), "flows": (n, n), "t": (), "generator": (6,)}
        check_state(state, shapes)
        self._day, self._bikes = state["demand"].copy(), state["allocation"].copy()
        self._outgoing, self._flows = state["outgoing"].copy(), state["flows"].copy()
        self._t = int(state["t"])
        self.np_random = unpack_generator(state["generator"])

    def _running_day(self) -> Day:
        if self._day is None or self._t >= len(self._day):
            raise RuntimeError("reset must be called before step, and again when an episode is over.")
        return self._day

    def _observation(self) -> Observation:
        return np.concatenate([self._outgoing, self._bikes, [float(self._t)]])


def spaces(system: BikeSystem) -> tuple[gym.spaces.Box, gym.spaces.Box]:
    """The spaces of one copy: observations have no bounds, as demand has none; actions end at capacities."""
    observations = gym.spaces.Box(-np.inf, np.inf, (2 * system.stations + 1,), np.float64)
    high = system.capacities.astype(np.float32)
    return observations, gym.spaces.Box(np.zeros_like(high), high, dtype=np.float32)


def checked_length(episode_length: int) -> int:
    if isinstance(episode_length, bool) or not isinstance(episode_length, int) or episode_length < 1:
        raise ValueError(f"episode_length must be an integer of at least 1, not {episode_length!r}.")
    return episode_length


def check_state(state: State, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Refuse a state that belongs to another environment before any of it is taken over."""
    for name in ("demand", *shapes):
        if name not in state:
            raise ValueError(f"state must hold {name!r}, which is missing.")
    for name, shape in shapes.items():
        if state[name].shape != shape:
            raise ValueError(f"state: {name} must have shape {shape}, not {state[name].shape}.")
