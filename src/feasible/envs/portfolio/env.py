"""Portfolio weights as Gymnasium environments: one copy, and many stepped together.

Action: the share of each asset after trading. Observation: [weights now, after the market moved them | expected log
return of each asset in the next month | share of the episode played]. Reward: 100 ln of the growth of wealth, costs of
trading included. An episode ends with its last month: it terminates, since the month is observed.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from jaxtyping import Bool, Float, Float64, UInt8
from numpy.typing import ArrayLike

from feasible.envs.generators import pack_generator, seeded_generators, unpack_generator
from feasible.envs.portfolio.market import Market
from feasible.envs.threads import check_threads

EPISODE_LENGTH = 12
Observations = Float64[np.ndarray, "copies 2*assets+1"]
Infos = dict[str, "np.ndarray | dict[str, np.ndarray]"]
State = dict[str, np.ndarray]


class Portfolios:
    """The portfolios of some copies and the months ahead of them; all copies share one clock."""

    def __init__(self, copies: int, assets: int, bound: float, turnover: float, cost: float, episode_length: int):
        self.market = Market(assets)
        if not (1.0 / assets <= bound <= 1.0):
            raise ValueError(
                f"bound must be from 1/{assets} to 1, since {assets} weights must add up to 1, not {bound!r}."
            )
        if not 0.0 < turnover <= 2.0:
            raise ValueError(
                f"turnover must be above 0 and at most 2, where all is sold and bought anew, not {turnover!r}."
            )
        if not 0.0 <= cost < 0.5:
            raise ValueError(f"cost must be from 0 to below 0.5 for each unit traded, not {cost!r}.")
        if isinstance(episode_length, bool) or not isinstance(episode_length, int) or episode_length < 1:
            raise ValueError(f"episode_length must be an integer of at least 1, not {episode_length!r}.")
        self.copies, self.bound, self.turnover, self.cost = copies, bound, turnover, cost
        self.episode_length = episode_length
        self.started = False

    def spaces(self) -> tuple[Box, Box]:
        """Of observations and actions."""
        n = self.market.assets
        low = np.concatenate([np.zeros(n), np.full(n, -np.inf), [0.0]])
        high = np.concatenate([np.ones(n), np.full(n, np.inf), [1.0]])
        return Box(low, high, dtype=np.float64), Box(0.0, 1.0, (n,), np.float32)

    def start(self, generators: Sequence[np.random.Generator]) -> None:
        """Equal weights, and a year that nobody has seen."""
        drawn = [self.market.draw(generator, self.episode_length) for generator in generators]
        self.signals = np.stack([signals for signals, _ in drawn])
        self.growth = np.stack([growth for _, growth in drawn])
        self.weights = np.full((self.copies, self.market.assets), 1.0 / self.market.assets)
        self.wealth, self.t, self.started = np.ones(self.copies), 0, True

    def trade(self, actions: ArrayLike) -> tuple[Float64[np.ndarray, " copies"], dict[str, np.ndarray]]:
        """Trade to these weights, and let a month pass."""
        if not self.started:
            raise RuntimeError("reset must be called before step.")
        wanted = np.ascontiguousarray(actions, dtype=np.float64)
        if wanted.shape != self.weights.shape:
            raise ValueError(f"action must have shape {self.weights.shape[1:]} for each copy, not {wanted.shape}.")
        # What rounding left of the bounds and of the sum.
        held = np.maximum(wanted, 0.0)
        total = held.sum(axis=1, keepdims=True)
        if not (np.isfinite(total).all() and (total > 0.0).all()):
            raise ValueError("action must be finite weights, some of them positive.")
        held = held / total
        traded = np.abs(held - self.weights).sum(axis=1)
        grown = held * self.growth[:, self.t]
        gain = grown.sum(axis=1)
        factor = (1.0 - self.cost * traded) * gain
        self.weights, self.wealth = grown / gain[:, None], self.wealth * factor
        self.t += 1
        return 100.0 * np.log(factor), {"traded": traded, "wealth": self.wealth.copy()}

    def observe(self) -> Observations:
        played = np.full((self.copies, 1), self.t / self.episode_length)
        return np.concatenate([self.weights, self.signals[:, self.t], played], axis=1)

    @property
    def over(self) -> bool:
        return self.t >= self.episode_length

    def save(self) -> State:
        """Everything but the generators."""
        if not self.started:
            raise RuntimeError("reset must be called before get_state.")
        arrays = {name: getattr(self, name).copy() for name in ("signals", "growth", "weights", "wealth")}
        return {**arrays, "t": np.array(self.t)}

    def restore(self, state: State) -> None:
        """Continue from what `save` gave."""
        n, steps = self.market.assets, self.episode_length
        shapes = {"signals": (steps + 1, n), "growth": (steps, n), "weights": (n,), "wealth": ()}
        for name, shape in shapes.items():
            if state[name].shape != (self.copies, *shape):
                raise ValueError(f"state: {name} must have shape {(self.copies, *shape)}, not {state[name].shape}.")
        for name in shapes:
            setattr(self, name, np.array(state[name], np.float64))
        self.t, self.started = int(state["t"]), True


class PortfolioEnv(gym.Env[np.ndarray, np.ndarray]):
    """A portfolio of `assets` assets, the first of them cash, in the market of `Market`.

    No weight may exceed `bound` by trading, and sum |a - weights now| <= `turnover` in a step; each unit traded costs
    `cost`. The constraint is put around this environment: weights are played as they are, scaled to add up to 1. Since
    the month is observed, an episode is terminated, not truncated, by its last one: nothing follows it.
    """

    metadata: ClassVar[dict[str, object]] = {"render_modes": ["rgb_array"], "render_fps": 2}  # pyright: ignore[reportIncompatibleVariableOverride]

    def __init__(
        self,
        assets: int = 13,
        *,
        bound: float = 0.25,
        turnover: float = 0.2,
        cost: float = 0.001,
        episode_length: int = EPISODE_LENGTH,
        render_mode: str | None = None,
    ) -> None:
        if render_mode not in (None, "rgb_array"):
            raise ValueError(f"render_mode must be None or 'rgb_array', not {render_mode!r}.")
        self.portfolios = Portfolios(1, assets, bound, turnover, cost, episode_length)
        self.episode_length, self.render_mode = episode_length, render_mode
        self.observation_space, self.action_space = self.portfolios.spaces()
        self._wealth: list[float] = []

    def reset(self, *, seed: int | None = None, options: Mapping[str, object] | None = None):
        super().reset(seed=seed)
        self.portfolios.start([self.np_random])
        self._wealth = [1.0]
        return self.portfolios.observe()[0], {}

    def step(self, action: ArrayLike):
        rewards, info = self.portfolios.trade(np.asarray(action)[None])
        self._wealth.append(float(self.portfolios.wealth[0]))
        told = {name: float(values[0]) for name, values in info.items()}
        return self.portfolios.observe()[0], float(rewards[0]), self.portfolios.over, False, told

    def render(self) -> UInt8[np.ndarray, "height width 3"] | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        if self.render_mode is None:
            return None
        if not self.portfolios.started:
            raise RuntimeError("reset must be called before render.")
        from feasible.envs.portfolio.picture import picture  # matplotlib takes a second to load

        books = self.portfolios
        return picture(books.weights[0], books.signals[0, books.t], books.bound, self._wealth, self.episode_length)

    def get_state(self) -> State:
        """Everything the future depends on, as plain arrays."""
        past = np.array(self._wealth)
        return {**self.portfolios.save(), "past": past, "generator": pack_generator(self.np_random)}

    def set_state(self, state: State) -> None:
        """Continue exactly as the environment whose state this is would have."""
        self.portfolios.restore(state)
        self._wealth = state["past"].tolist()
        self.np_random = unpack_generator(state["generator"])


class PortfolioVectorEnv(VectorEnv[np.ndarray, np.ndarray, np.ndarray]):
    """`num_envs` copies of `PortfolioEnv`, whose arguments it takes: copy i seeded s + i equals it seeded s + i.

    All copies share one clock; when it runs out all have ended and start again in the same step. A step of all is
    a few operations of NumPy, so `threads` changes nothing.
    """

    metadata: ClassVar[dict[str, object]] = {"autoreset_mode": AutoresetMode.SAME_STEP}  # pyright: ignore[reportIncompatibleVariableOverride]

    def __init__(
        self,
        num_envs: int = 1,
        assets: int = 13,
        *,
        bound: float = 0.25,
        turnover: float = 0.2,
        cost: float = 0.001,
        episode_length: int = EPISODE_LENGTH,
        threads: int = 1,
    ) -> None:
        if isinstance(num_envs, bool) or not isinstance(num_envs, int) or num_envs < 1:
            raise ValueError(f"num_envs must be an integer of at least 1, not {num_envs!r}.")
        check_threads(threads)
        self.num_envs = num_envs
        self.portfolios = Portfolios(num_envs, assets, bound, turnover, cost, episode_length)
        self.episode_length = episode_length
        self.single_observation_space, self.single_action_space = self.portfolios.spaces()
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._generators: list[np.random.Generator] | None = None
        self._everyone = np.ones(num_envs, dtype=bool)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: Mapping[str, object] | None = None
    ) -> tuple[Observations, Infos]:
        self._generators = seeded_generators(self._generators, seed, self.num_envs)
        self.portfolios.start(self._generators)
        return self.portfolios.observe(), {}

    def step(
        self, actions: Float[np.ndarray, "copies assets"]
    ) -> tuple[
        Observations,
        Float64[np.ndarray, " copies"],
        Bool[np.ndarray, " copies"],
        Bool[np.ndarray, " copies"],
        Infos,
    ]:
        rewards, told = self.portfolios.trade(actions)
        obs, nobody = self.portfolios.observe(), np.zeros(self.num_envs, dtype=bool)
        infos = {**told, **{f"_{name}": self._everyone for name in told}}
        if not self.portfolios.over:
            return obs, rewards, nobody, nobody.copy(), {**infos}
        final: Infos = {"final_obs": obs, "_final_obs": self._everyone}
        final |= {"final_info": infos, "_final_info": self._everyone}
        self.portfolios.start(self._generators or ())
        return self.portfolios.observe(), rewards, self._everyone.copy(), nobody, final

    def get_state(self) -> State:
        """Everything the future depends on, as plain arrays with the copies in front."""
        saved = self.portfolios.save()
        return {**saved, "generator": np.stack([pack_generator(one) for one in self._generators or ()])}

    def set_state(self, state: State) -> None:
        """Continue exactly as the environment whose state this is would have."""
        self.portfolios.restore(state)
        self._generators = [unpack_generator(packed) for packed in state["generator"]]
