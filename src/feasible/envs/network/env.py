"""NSFNET, or any other packet network, as Gymnasium environments: one copy, and many stepped together.

Action: the rate of each path in packets a second. Observation: the ten latest steps, oldest first, with
four numbers each (`Rules.observed`). Reward: `measurement`. An episode is truncated after `episode_length`
steps and never terminates. Rates that overload a link are played as they are: the constraint is put around
these environments, from `rate_polytope`.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar, SupportsFloat, TypeAlias

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.spaces import Box
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from jaxtyping import Float64, UInt8
from numpy.typing import ArrayLike, NDArray

from feasible.envs.network.copies import Copies, all_finite
from feasible.envs.network.measurement import PACKET_RATE, RATE_UNIT
from feasible.envs.network.rules import Rules
from feasible.envs.network.state import (
    DROPPED,
    DURATION,
    FEATURES,
    LATENCY,
    PLAYED,
    RECEIVED,
    REWARD,
    SENT,
    THROUGHPUT,
    WINDOW,
    Results,
)
from feasible.envs.network.topology import NSFNET, TOPOLOGIES, Topology
from feasible.errors import unknown

EPISODE_LENGTH = 1000
HIGHEST_RATE = 100.0
RULES: Mapping[str, Rules] = {"recorded": Rules.recorded, "corrected": Rules.corrected}
"""By the name under which an environment takes them."""

Info: TypeAlias = dict[str, object]
SavedState: TypeAlias = dict[str, np.ndarray]


def _known(topology: Topology | str, rules: Rules | str) -> tuple[Topology, Rules]:
    """A network and its rules, each by itself or by its name."""
    if isinstance(topology, str):
        if topology not in TOPOLOGIES:
            raise unknown("topology", topology, TOPOLOGIES, "topology: ")
        topology = TOPOLOGIES[topology]
    if isinstance(rules, str):
        if rules not in RULES:
            raise unknown("set of rules", rules, RULES, "rules: ")
        rules = RULES[rules]
    return topology, rules


def _spaces(topology: Topology, rules: Rules, highest_rate: float) -> tuple[Box, Box]:
    if not (np.isfinite(highest_rate) and highest_rate > 0.0):
        raise ValueError(f"highest_rate must be a positive number of packets a second, not {highest_rate!r}.")
    paths = len(topology.paths)
    # Throughput counts too few packets, so without an acknowledgement it is below zero.
    lowest = -rules.uncounted_packets * PACKET_RATE / min(rules.first_step, 1.0) / RATE_UNIT
    low = np.tile([0.0, lowest, 0.0, 0.0], WINDOW)
    high = np.tile([np.inf, np.inf, np.inf, 1.0], WINDOW)
    return Box(0.0, highest_rate, (paths,), np.float32), Box(low, high, (WINDOW * FEATURES,), np.float64)


def _check_arguments(episode_length: int, render_mode: str | None) -> None:
    if episode_length < 1:
        raise ValueError(f"episode_length must be at least 1 step, not {episode_length}.")
    if render_mode not in (None, "rgb_array"):
        raise ValueError(f"render_mode must be None or 'rgb_array', not {render_mode!r}.")


def _rates(action: ArrayLike, shape: tuple[int, ...]) -> Float64[np.ndarray, "n k"]:
    rates = np.asarray(action, dtype=np.float64, order="C")
    if rates.shape != shape:
        raise ValueError(f"action: must have shape {shape}, one rate for each path, not {rates.shape}.")
    if not all_finite(rates):
        raise ValueError(f"action: must be finite rates, not {rates}.")
    return rates.reshape(-1, shape[-1])


def _report(outcome: Results) -> dict[str, NDArray[np.float64]]:
    """What the steps are reported with: packets by path, throughput and mean round trip by flow, seconds."""
    return {
        "sent": outcome.tally[:, SENT],
        "received": outcome.tally[:, RECEIVED],
        "dropped": outcome.tally[:, DROPPED],
        "throughput": outcome.flows[:, THROUGHPUT],
        "latency": outcome.flows[:, LATENCY],
        "duration": outcome.clock[:, DURATION],
    }


class NSFNetEnv(gymnasium.Env[np.ndarray, np.ndarray]):
    """One packet network. All randomness comes from the seed of `reset`; later resets go on in its stream.

    `topology` and `rules` may be named (`TOPOLOGIES`, `RULES`). `probe_packets`: at least one packet a step on every
    path, as in the recorded runs, whose projections never returned an exact zero; without it an exact zero sends
    nothing. `highest_rate` bounds the action space, in packets a second on each path.
    """

    metadata: ClassVar[dict[str, object]] = {"render_modes": ["rgb_array"], "render_fps": 4}  # pyright: ignore[reportIncompatibleVariableOverride]

    def __init__(
        self,
        topology: Topology | str = NSFNET,
        rules: Rules | str = Rules.recorded,
        *,
        probe_packets: bool = True,
        highest_rate: float = HIGHEST_RATE,
        episode_length: int = EPISODE_LENGTH,
        render_mode: str | None = None,
    ) -> None:
        _check_arguments(episode_length, render_mode)
        self.topology, self.rules = topology, rules = _known(topology, rules)
        self.episode_length = episode_length
        self.render_mode = render_mode
        self.action_space, self.observation_space = _spaces(topology, rules, highest_rate)
        self._copies = Copies(topology, rules, 1, probe_packets=probe_packets)
        self._started = False

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, object] | None = None
    ) -> tuple[NDArray[np.float64], Info]:
        """Start an episode: empty links, clock 0."""
        super().reset(seed=seed)
        if seed is not None or not self._copies.seeded(0):
            self._copies.seed(0, self.np_random)
        self._copies.restart(0)
        self._started = True
        return self._copies.results().history[0], {}

    def step(self, action: ArrayLike) -> tuple[NDArray[np.float64], SupportsFloat, bool, bool, Info]:
        """Send at these rates for a second (the first step of an episode: `Rules.first_step`)."""
        if not self._started or self._copies.states[0].counts[PLAYED] >= self.episode_length:
            raise ResetNeeded("NSFNetEnv: call reset before the first step and after the end of an episode.")
        self._copies.step(_rates(action, self.action_space.shape))  # pyright: ignore[reportArgumentType]
        # Read from the copy's own state: gathering the results of all copies costs as much as a light step.
        state = self._copies.states[0]
        tally, flows = state.tally.copy(), state.flows.copy()
        info: Info = {
            "sent": tally[SENT],
            "received": tally[RECEIVED],
            "dropped": tally[DROPPED],
            "throughput": flows[THROUGHPUT],
            "latency": flows[LATENCY],
            "duration": state.clock[DURATION],
        }
        truncated = bool(state.counts[PLAYED] >= self.episode_length)
        return state.history.flatten(), float(state.clock[REWARD]), False, truncated, info

    def render(self) -> UInt8[np.ndarray, "height width 3"] | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """A map of the network with the load of each link against its bandwidth."""
        if self.render_mode is None:
            return None
        from feasible.envs.network.picture import draw_network  # matplotlib takes a second to load

        return draw_network(self.topology, self._copies.states[0])

    def get_state(self) -> SavedState:
        """The complete state: links, packets, clock, observation history, step count and random stream."""
        return self._copies.save()

    def set_state(self, state: SavedState) -> None:
        """Continue from a state of an environment made with the same topology."""
        self._copies.restore(state)
        self._started = True


def _of_copies(report: Mapping[str, NDArray[np.float64]], which: NDArray[np.bool_]) -> Info:
    """A report in Gymnasium's vector form: the values of these copies, zeros elsewhere, and a mask beside
    each."""
    info: Info = {}
    if which.any():
        for name, values in report.items():
            shaped = which.reshape(-1, *[1] * (values.ndim - 1))
            info[name], info[f"_{name}"] = np.where(shaped, values, 0.0), which.copy()
    return info


def _final(outcome: Results, ended: NDArray[np.bool_]) -> Info:
    final_obs = np.full(len(ended), None, dtype=object)
    for copy in np.flatnonzero(ended):
        final_obs[copy] = outcome.history[copy].copy()
    final_info = _of_copies(_report(outcome), ended)
    return {
        "final_obs": final_obs,
        "_final_obs": ended.copy(),
        "final_info": final_info,
        "_final_info": ended.copy(),
    }


class NSFNetVectorEnv(VectorEnv[np.ndarray, np.ndarray, np.ndarray]):
    """Copies of a packet network, stepped in compiled code; copy i equals `NSFNetEnv` seeded with seed + i.

    Same-step autoreset: where an episode ends, the observation is already the first of the next one, and
    `info["final_obs"]` and `info["final_info"]` hold the last of the old. `threads` shares the copies out
    among threads, which changes nothing but the time.
    """

    metadata: ClassVar[dict[str, object]] = {  # pyright: ignore[reportIncompatibleVariableOverride]
        "render_modes": ["rgb_array"],
        "render_fps": 4,
        "autoreset_mode": AutoresetMode.SAME_STEP,
    }

    def __init__(
        self,
        num_envs: int = 1,
        topology: Topology | str = NSFNET,
        rules: Rules | str = Rules.recorded,
        *,
        probe_packets: bool = True,
        highest_rate: float = HIGHEST_RATE,
        episode_length: int = EPISODE_LENGTH,
        render_mode: str | None = None,
        threads: int = 1,
    ) -> None:
        _check_arguments(episode_length, render_mode)
        self.num_envs = num_envs
        self.topology, self.rules = topology, rules = _known(topology, rules)
        self.episode_length = episode_length
        self.render_mode = render_mode
        self._copies = Copies(topology, rules, num_envs, probe_packets=probe_packets, threads=threads)
        self.single_action_space, self.single_observation_space = _spaces(topology, rules, highest_rate)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self._started = False

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: Mapping[str, object] | None = None,
    ) -> tuple[NDArray[np.float64], Info]:
        """Start an episode in every copy; an integer seeds copy i with seed + i."""
        if seed is None or isinstance(seed, int):
            seeds: list[int | None] = [None if seed is None else seed + i for i in range(self.num_envs)]
        else:
            seeds = list(seed)
        if len(seeds) != self.num_envs:
            raise ValueError(f"seed: must name {self.num_envs} seeds, one for each copy, not {len(seeds)}.")
        for copy, copy_seed in enumerate(seeds):
            if copy_seed is not None or not self._copies.seeded(copy):
                self._copies.seed(copy, seeding.np_random(copy_seed)[0])
            self._copies.restart(copy)
        self._started = True
        return self._copies.results().history, {}

    def step(
        self, actions: ArrayLike
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], Info]:
        """Step every copy; those whose episode ends start the next one at once."""
        if not self._started:
            raise ResetNeeded("NSFNetVectorEnv: call reset before the first step.")
        self._copies.step(_rates(actions, self.action_space.shape))  # pyright: ignore[reportArgumentType]
        outcome = self._copies.results()
        truncated = self._copies.played() >= self.episode_length
        obs, reward = outcome.history, outcome.clock[:, REWARD].copy()
        # A copy that starts anew reports what a reset does, nothing; its last report is in `final_info`.
        info = _of_copies(_report(outcome), ~truncated)
        if truncated.any():
            info |= _final(outcome, truncated)
            for copy in np.flatnonzero(truncated):
                self._copies.restart(int(copy))
            obs = self._copies.results().history
        return obs, reward, np.zeros(self.num_envs, dtype=np.bool_), truncated, info

    def render(self) -> tuple[UInt8[np.ndarray, "height width 3"], ...] | None:
        """A map of each copy."""
        if self.render_mode is None:
            return None
        from feasible.envs.network.picture import draw_network

        return tuple(draw_network(self.topology, state) for state in self._copies.states)

    def get_state(self) -> SavedState:
        """The complete state of every copy, one row each."""
        return self._copies.save()

    def set_state(self, state: SavedState) -> None:
        """Continue from a state of as many copies of the same network."""
        self._copies.restore(state)
        self._started = True

    def close_extras(self, **kwargs: object) -> None:
        """End the threads."""
        self._copies.close()
