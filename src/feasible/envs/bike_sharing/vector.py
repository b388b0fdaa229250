"""Many copies of bike sharing that step as one: the same episodes as single environments, vectorised.

Copy i seeded s + i equals `BikeSharingEnv` seeded s + i exactly. All copies share one clock, since episodes
have a fixed length; when it runs out all are truncated and start again in the same step (`final_obs`,
`final_info`).
"""

from collections.abc import Mapping, Sequence

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from jaxtyping import Bool, Float64, Shaped
from numpy.typing import ArrayLike

from feasible.envs.bike_sharing.action import whole_allocation
from feasible.envs.bike_sharing.demand import (
    Days,
    DemandLaw,
    demand_law,
    draw_days,
    given_allocation,
    given_demand,
    reset_options,
)
from feasible.envs.bike_sharing.dynamics import advance
from feasible.envs.bike_sharing.env import (
    EPISODE_LENGTH,
    NATIVE_DEMAND,
    State,
    check_state,
    checked_length,
    spaces,
)
from feasible.envs.bike_sharing.rules import Rules
from feasible.envs.bike_sharing.system import Costs, bike_system, check_memory
from feasible.envs.generators import pack_generator, seeded_generators, unpack_generator
from feasible.envs.threads import Threads

Observations = Float64[np.ndarray, "copies 2*stations+1"]
Infos = dict[str, np.ndarray | dict[str, np.ndarray]]
REPORTED = ("lost", "overflow", "moving", "revenue", "vanished")


class BikeSharingVectorEnv(VectorEnv[np.ndarray, np.ndarray, np.ndarray]):
    """`num_envs` copies of `BikeSharingEnv`, whose arguments it takes, on `threads` threads.

    `reset(options=...)` takes one demand or allocation for all copies, or one each on a leading axis. One
    infeasible action refuses the whole step: no copy moves.
    """

    metadata = {  # noqa: RUF012 -- declared so by Gymnasium
        "autoreset_mode": AutoresetMode.SAME_STEP
    }

    def __init__(
        self,
        num_envs: int = 1,
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
        threads: int = 1,
    ) -> None:
        if isinstance(num_envs, bool) or not isinstance(num_envs, int) or num_envs < 1:
            raise ValueError(f"num_envs must be an integer of at least 1, not {num_envs!r}.")
        self.num_envs = num_envs
        self._threads = Threads(threads, num_envs)
        self.episode_length = checked_length(episode_length)
        check_memory(stations, num_envs * episode_length)
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
        self.single_observation_space, self.single_action_space = spaces(self.system)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._generators: list[np.random.Generator] | None = None
        self._days: Days | None = None

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: Mapping[str, ArrayLike] | None = None,
    ) -> tuple[Observations, Infos]:
        demand, allocation = reset_options(options)
        n = self.system.stations
        bikes = self.system.initial if allocation is None else given_allocation(allocation, self.system)
        if bikes.shape not in ((n,), (self.num_envs, n)):
            raise ValueError(f"allocation must be ({n},) or ({self.num_envs}, {n}), not {bikes.shape}.")
        days = None
        if demand is not None:
            days = given_demand(demand, n, self.episode_length)
            if days.shape[:-3] not in ((), (self.num_envs,)):
                raise ValueError(
                    f"demand must be (steps, {n}, {n}), once or for {self.num_envs} copies, not {days.shape}."
                )
        self._generators = seeded_generators(self._generators, seed, self.num_envs)
        self._start(days, bikes)
        return self._observations(), {}

    def step(
        self, actions: ArrayLike
    ) -> tuple[
        Observations,
        Float64[np.ndarray, " copies"],
        Bool[np.ndarray, " copies"],
        Bool[np.ndarray, " copies"],
        Infos,
    ]:
        days = self._running_days()
        copies = self.num_envs
        target = whole_allocation(self.system, actions, (copies,))
        outcome = advance(self.system, self._bikes, days[self._t].astype(np.float64), target, self._threads)
        self._bikes, self._outgoing = outcome.allocation, outcome.outgoing
        self._t += 1
        observations = self._observations()
        everyone = np.ones(copies, dtype=bool)
        infos: dict[str, np.ndarray] = {}
        for name in REPORTED:
            infos[name], infos[f"_{name}"] = getattr(outcome, name), everyone
        over = self._t == len(days)
        truncated = np.full(copies, over)
        if not over:
            return observations, outcome.reward, np.zeros(copies, dtype=bool), truncated, {**infos}
        self._start(None, self.system.initial)
        final: Infos = {"final_obs": observations, "_final_obs": everyone}
        final |= {"final_info": infos, "_final_info": everyone}
        return self._observations(), outcome.reward, np.zeros(copies, dtype=bool), truncated, final

    def get_state(self) -> State:
        """Everything the future depends on, as plain arrays with the copies in front."""
        days = self._running_days()
        return {
            "demand": days.swapaxes(0, 1).copy(),
            "allocation": self._bikes.copy(),
            "outgoing": self._outgoing.copy(),
            "t": np.array(self._t),
            "generator": np.stack([pack_generator(generator) for generator in self._generators or ()]),
        }

    def set_state(self, state: State) -> None:
        """Continue exactly as the environment whose state this is would have."""
        rows = (self.num_envs, self.system.stations)
        check_state(state, {"allocation": rows, "outgoing": rows, "t": (), "generator": (self.num_envs, 6)})
        self._generators = [unpack_generator(packed) for packed in state["generator"]]
        self._days, self._t = state["demand"].swapaxes(0, 1).copy(), int(state["t"])
        self._bikes, self._outgoing = state["allocation"].copy(), state["outgoing"].copy()

    def close_extras(self, **kwargs: object) -> None:
        """Let the threads go."""
        self._threads.close()

    def _start(
        self,
        days: Shaped[np.ndarray, "*copies steps i j"] | None,
        bikes: Float64[np.ndarray, "*copies stations"],
    ) -> None:
        n = self.system.stations
        if days is None:
            self._days = draw_days(self.demand_law, self._generators or (), self.episode_length)
        else:
            # Steps first: what a step reads then lies together.
            self._days = np.broadcast_to(days, (self.num_envs, *days.shape[-3:])).swapaxes(0, 1).copy()
        self._bikes = np.broadcast_to(bikes, (self.num_envs, n)).copy()
        self._outgoing = np.zeros((self.num_envs, n))
        self._t = 0

    def _running_days(self) -> Days:
        if self._days is None:
            raise RuntimeError("reset must be called first.")
        return self._days

    def _observations(self) -> Observations:
        n = self.system.stations
        observations = np.empty((self.num_envs, 2 * n + 1))
        observations[:, :n] = self._outgoing
        observations[:, n : 2 * n] = self._bikes
        observations[:, 2 * n] = self._t
        return observations
