"""Many copies of one of Gymnasium's MuJoCo environments, stepped in threads, each equal to the single one.

All copies are one `mujoco.batch.Batch`: a copy is its row of MuJoCo's complete state, `mjSTATE_INTEGRATION`, warm
start included, and a step of all of them is one call that needs no lock of Python's, on threads of MuJoCo's own.
Observations and rewards are computed for all copies at once. Where a copy starts is drawn by Gymnasium's own
`reset_model` with the copy's generator. Cost of a step: the simulation, shared out among the threads, and for
all copies together some tens of microseconds around it; of a reset, about twenty microseconds a copy.

Copy i seeded s + i equals `gym.make(env_id)` seeded s + i to the last bit, over all episodes. Gymnasium ends
a step with `mj_rnePostConstraint`, which is left out: it fills in contact forces that nothing here reads.
"""

# MuJoCo's compiled module declares its names to no type checker.
# pyright: reportAttributeAccessIssue=false

from collections.abc import Mapping, Sequence

import mujoco
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from jaxtyping import Bool, Float, Float64
from mujoco.batch import Batch

from feasible.envs.generators import pack_generator, seeded_generators, unpack_generator
from feasible.envs.mujoco.families import Frame, Infos, family_of
from feasible.envs.mujoco.prototype import build_prototype, draw_start
from feasible.envs.mujoco.saving import check_simulation
from feasible.envs.threads import fewest_threads

Observations = Float64[np.ndarray, "copies observation"]
VectorInfos = dict[str, "np.ndarray | VectorInfos"]
State = dict[str, np.ndarray]


class MujocoVectorEnv(VectorEnv[np.ndarray, np.ndarray, np.ndarray]):
    """`num_envs` copies of HalfCheetah or Reacher (versions 4 and 5) on `threads` threads.

    `settings` go to Gymnasium's environment. These environments end by their time limit alone, so all copies
    share one clock; when it runs out all are truncated and start again in the same step (`final_obs`,
    `final_info`).
    """

    metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012 -- declared so by Gymnasium

    def __init__(
        self,
        num_envs: int = 1,
        env_id: str = "HalfCheetah-v5",
        *,
        threads: int = 1,
        max_episode_steps: int | None = None,
        **settings: object,
    ) -> None:
        if isinstance(num_envs, bool) or not isinstance(num_envs, int) or num_envs < 1:
            raise ValueError(f"num_envs must be an integer of at least 1, not {num_envs!r}.")
        self.num_envs = num_envs
        self._prototype, self.episode_length = build_prototype(env_id, max_episode_steps, **settings)
        self._family = family_of(env_id, self._prototype)
        self.model: mujoco.MjModel = self._prototype.model
        self.simulations = Batch(self.model, num_envs, fewest_threads(threads, num_envs))
        # Views of the simulations' rows. Body positions are no part of the state, but results of every step.
        self._controls = self.simulations.bind("ctrl")
        self._positions = self.simulations.bind("qpos")
        self._velocities = self.simulations.bind("qvel")
        self._bodies = list(self._family.bodies)
        self._places = self.simulations.bind("xpos") if self._bodies else np.empty((num_envs, 0, 3))
        self.single_observation_space = self._prototype.observation_space
        self.single_action_space = self._prototype.action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._generators: list[np.random.Generator] | None = None
        self._frame: Frame | None = None
        self._elapsed = 0
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
        return self._start(self._generators)

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
        terminated = np.zeros(self.num_envs, dtype=bool)
        if self._elapsed < self.episode_length:
            return observations, rewards, terminated, terminated.copy(), self._masked(infos)
        final: VectorInfos = {"final_obs": observations, "_final_obs": self._everyone}
        final |= {"final_info": self._masked(infos), "_final_info": self._everyone}
        started, reset_infos = self._start(self._generators)
        return started, rewards, terminated, self._everyone.copy(), {**final, **reset_infos}

    def get_state(self) -> State:
        """Everything the future depends on, as plain arrays."""
        if self._frame is None or self._generators is None:
            raise RuntimeError("reset must be called before get_state.")
        return {
            "simulation": self.simulations.state.copy(),
            "places": self._frame.xpos.copy(),
            "elapsed": np.array(self._elapsed),
            "generator": np.stack([pack_generator(generator) for generator in self._generators]),
        }

    def set_state(self, state: State) -> None:
        """Continue bit for bit as the environment whose state this is would have."""
        check_simulation("simulation", state["simulation"], self.simulations.state.shape)
        check_simulation("places", state["places"], (self.num_envs, len(self._bodies), 3))
        check_simulation("generator", state["generator"], (self.num_envs, 6))
        self.simulations.state[:] = state["simulation"]
        self._generators = [unpack_generator(packed) for packed in state["generator"]]
        self._elapsed = int(state["elapsed"])
        self._frame = self._look(state["places"].copy())

    def close_extras(self, **kwargs: object) -> None:
        """Let the prototype go; the threads go with the simulations."""
        self._prototype.close()

    def _start(self, generators: list[np.random.Generator]) -> tuple[Observations, VectorInfos]:
        self.simulations.reset(stage=mujoco.mjtStage.mjSTAGE_NONE.value)
        for copy, generator in enumerate(generators):
            self._positions[copy], self._velocities[copy] = draw_start(self._prototype, generator)
        self.simulations.forward()
        self._elapsed = 0
        self._frame = self._look(self._places[:, self._bodies])
        return self._family.observe(self._frame), self._masked(self._family.reset_info(self._frame))

    def _look(self, places: Float64[np.ndarray, "copies bodies 3"]) -> Frame:
        return Frame(self._positions.copy(), self._velocities.copy(), places)

    def _masked(self, infos: Infos) -> VectorInfos:
        masked: VectorInfos = {}
        for name, values in infos.items():
            masked[name], masked["_" + name] = values, self._everyone
        return masked
