"""Many copies of one of Gymnasium's MuJoCo environments, stepped in threads, each equal to the single one.

All copies are one `mujoco.batch.Batch`: a copy is its row of MuJoCo's complete state, `mjSTATE_INTEGRATION`, warm
start included, and a step of all of them is one call that needs no lock of Python's, on threads of MuJoCo's own.
Observations and rewards are computed for all copies at once. Where a copy starts is drawn by Gymnasium's own
`reset_model` with the copy's generator. Cost of a step: the simulation, shared out among the threads, and for
all copies together some tens of microseconds around it; of a reset, about twenty microseconds per copy. MuJoCo before
4.0 has no batches: `simulations` stands in for them, slower and with the same results.

Copy i seeded s + i equals `gym.make(env_id)` seeded s + i to the last bit, over all episodes. Gymnasium ends
a step with `mj_rnePostConstraint`, which is left out: it fills in contact forces that nothing here reads.
"""

# MuJoCo's compiled module declares its names to no type checker.
# pyright: reportAttributeAccessIssue=false

from collections.abc import Mapping, Sequence
from importlib.util import find_spec

import mujoco
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from jaxtyping import Bool, Float, Float64

from feasible.envs.generators import pack_generator, seeded_generators, unpack_generator
from feasible.envs.mujoco.families import Frame, Infos
from feasible.envs.mujoco.prototype import build_prototype, draw_start, family_of
from feasible.envs.mujoco.saving import check_simulation
from feasible.envs.threads import fewest_threads

if find_spec("mujoco.batch") is not None:
    from mujoco.batch import Batch
else:
    from feasible.envs.mujoco.simulations import Simulations as Batch

Observations = Float64[np.ndarray, "copies observation"]
VectorInfos = dict[str, "np.ndarray | VectorInfos"]
State = dict[str, np.ndarray]


class MujocoVectorEnv(VectorEnv[np.ndarray, np.ndarray, np.ndarray]):
    """`num_envs` copies of a robot (`prototype.FAMILIES`) on `threads` threads.

    `settings` go to Gymnasium's environment; `target_speed` replaces the reward of a forward velocity v by
    1 - |v - target_speed|. Each copy has its clock: when that runs out it is truncated, when it falls it is terminated,
    and it starts again in the same step (`final_obs`, `final_info`; the rows of other copies mean nothing there).
    """

    metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012 -- declared so by Gymnasium

    def __init__(
        self,
        num_envs: int = 1,
        env_id: str = "HalfCheetah-v5",
        *,
        threads: int = 1,
        max_episode_steps: int | None = None,
        target_speed: float | None = None,
        **settings: object,
    ) -> None:
        if isinstance(num_envs, bool) or not isinstance(num_envs, int) or num_envs < 1:
            raise ValueError(f"num_envs must be an integer of at least 1, not {num_envs!r}.")
        self.num_envs = num_envs
        self._prototype, self.episode_length = build_prototype(env_id, max_episode_steps, **settings)
        self._family = family_of(env_id, self._prototype, target_speed)
        self.model: mujoco.MjModel = self._prototype.model
        self.simulations = Batch(self.model, num_envs, fewest_threads(threads, num_envs))
        # Views of the simulations' rows. Body positions are no part of the state, but results of every step.
        self._controls = self.simulations.bind("ctrl")
        self._positions = self.simulations.bind("qpos")
        self._velocities = self.simulations.bind("qvel")
        self._bodies = list(self._family.bodies)
        self._places = self.simulations.bind(self._family.field) if self._bodies else np.empty((num_envs, 0, 3))
        self.single_observation_space = self._prototype.observation_space
        self.single_action_space = self._prototype.action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._generators: list[np.random.Generator] | None = None
        self._frame: Frame | None = None
        self._elapsed = np.zeros(num_envs, dtype=np.int64)
        self._everyone = np.ones(num_envs, dtype=bool)
        self._everyone.flags.writeable = False

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: Mapping[str, object] | None = None,
    ) -> tuple[Observations, VectorInfos]:
        if options:
            raise ValueError(f"options must be empty, since no option is known, not {sorted(options)}.")
        self._generators = seeded_generators(self._generators, seed, self.num_envs)
        started = self._start(self._generators, self._everyone)
        return self._family.observe(started), self._masked(self._family.reset_info(started), self._everyone)

    def step(
        self, actions: Float[np.ndarray, "copies actuators"]
    ) -> tuple[
        Observations,
        Float64[np.ndarray, " copies"],
        Bool[np.ndarray, " copies"],
        Bool[np.ndarray, " copies"],
        VectorInfos,
    ]:
        if self._frame is None or self._generators is None:
            raise RuntimeError("reset must be called before step.")
        actions = np.asarray(actions)
        if actions.shape != (self.num_envs, self.model.nu):
            raise ValueError(f"actions must have shape {(self.num_envs, self.model.nu)}, not {actions.shape}.")
        self._controls[:] = actions
        self.simulations.step(nstep=self._prototype.frame_skip)
        before, after = self._frame, self._look(self._places[:, self._bodies])
        rewards, infos = self._family.reward(before, actions, after)
        observations = self._family.observe(after)
        self._frame = after
        self._elapsed += 1
        terminated, truncated = self._family.fallen(after), self._elapsed >= self.episode_length
        ended = terminated | truncated
        if not np.count_nonzero(ended):  # a tenth of the cost of `any`
            return observations, rewards, terminated, truncated, self._masked(infos, self._everyone)
        final: VectorInfos = {"final_obs": observations, "_final_obs": ended}
        final |= {"final_info": self._masked(infos, ended), "_final_info": ended}
        started = self._start(self._generators, ended)
        shown = self._family.observe(started)
        return shown, rewards, terminated, truncated, {**final, **self._mixed(infos, started, ended)}

    def get_state(self) -> State:
        """Everything the future depends on, as plain arrays."""
        if self._frame is None or self._generators is None:
            raise RuntimeError("reset must be called before get_state.")
        return {
            "simulation": self.simulations.state.copy(),
            "places": self._frame.places.copy(),
            "elapsed": self._elapsed.copy(),
            "generator": np.stack([pack_generator(generator) for generator in self._generators]),
        }

    def set_state(self, state: State) -> None:
        """Continue bit for bit as the environment whose state this is would have."""
        check_simulation("simulation", state["simulation"], self.simulations.state.shape)
        check_simulation("places", state["places"], (self.num_envs, len(self._bodies), 3))
        check_simulation("generator", state["generator"], (self.num_envs, 6))
        self.simulations.state[:] = state["simulation"]
        self._generators = [unpack_generator(packed) for packed in state["generator"]]
        # States of before copies had clocks of their own hold one number for all.
        self._elapsed = np.broadcast_to(state["elapsed"], self.num_envs).astype(np.int64)
        self._frame = self._look(state["places"].copy())

    def close_extras(self, **kwargs: object) -> None:
        """Let the prototype go; the threads go with the simulations."""
        self._prototype.close()

    def _start(self, generators: list[np.random.Generator], which: Bool[np.ndarray, " copies"]) -> Frame:
        """Begin an episode in some copies; the frame is that of all."""
        ids = np.flatnonzero(which)
        self.simulations.reset(ids, stage=mujoco.mjtStage.mjSTAGE_NONE.value)
        for copy in ids:
            self._positions[copy], self._velocities[copy] = draw_start(self._prototype, generators[copy])
        self.simulations.forward(ids)
        self._elapsed[ids] = 0
        self._frame = self._look(self._places[:, self._bodies])
        return self._frame

    def _look(self, places: Float64[np.ndarray, "copies bodies 3"]) -> Frame:
        return Frame(self._positions.copy(), self._velocities.copy(), places)

    def _masked(self, infos: Infos, which: Bool[np.ndarray, " copies"]) -> VectorInfos:
        masked: VectorInfos = {}
        for name, values in infos.items():
            masked[name], masked["_" + name] = values, which
        return masked

    def _mixed(self, infos: Infos, started: Frame, ended: Bool[np.ndarray, " copies"]) -> VectorInfos:
        """Of the step for copies that go on, of the reset for those that start anew."""
        mixed = self._masked({} if ended.all() else infos, ~ended)
        for name, values in self._family.reset_info(started).items():
            both = name in mixed
            mixed[name] = np.where(ended, values, infos[name]) if both else values
            mixed["_" + name] = self._everyone if both else ended
        return mixed
