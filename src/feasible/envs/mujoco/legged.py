"""What Gymnasium's Hopper, Walker2d, Ant and Humanoid show and reward, and when they have fallen, for all copies.

As in `families`, every number is equal to Gymnasium's to the last bit. Contact forces are not computed for copies, so
the settings that show or charge them are refused.
"""

from abc import abstractmethod

import numpy as np
from gymnasium.envs.mujoco import MujocoEnv
from jaxtyping import Bool, Float, Float64

from feasible.envs.mujoco.families import Family, Frame, Infos


class Legged(Family):
    """What they share: a reward for being healthy, which version 4 also gives for the step of the fall."""

    def __init__(self, env: MujocoEnv, version: int, target_speed: float | None = None) -> None:
        settings = vars(env)
        self.forward_weight: float = settings.get("_forward_reward_weight", 1.0)  # Ant's version 4 has none
        self.control_weight: float = settings["_ctrl_cost_weight"]
        self.healthy_weight: float = settings["_healthy_reward"]
        self.terminates: bool = settings["_terminate_when_unhealthy"]
        self.healthy_z: tuple[float, float] = settings["_healthy_z_range"]
        self.hides: bool = settings["_exclude_current_positions_from_observation"]
        self.dt = env.dt
        self.version = version
        self.target_speed = target_speed

    def fallen(self, frame: Frame) -> Bool[np.ndarray, " copies"]:
        return ~self.healthy(frame) & self.terminates

    @abstractmethod
    def healthy(self, frame: Frame) -> Bool[np.ndarray, " copies"]:
        """Gymnasium's `is_healthy`, batched."""

    def survival(self, frame: Frame) -> Float64[np.ndarray, " copies"]:
        """Gymnasium's `healthy_reward`, batched."""
        paid = self.healthy(frame) | (self.terminates and self.version == 4)
        return paid * self.healthy_weight

    def total(
        self,
        forward: Float64[np.ndarray, " copies"],
        velocity: Float64[np.ndarray, " copies"],
        survival: Float64[np.ndarray, " copies"],
        control: Float[np.ndarray, " copies"],
    ) -> Float64[np.ndarray, " copies"]:
        """The reward: forward velocity, or how near it is to the target, and survival, less the control cost."""
        if self.target_speed is not None:
            return np.asarray(speed_reward(velocity, self.target_speed)) + survival - control
        return forward + survival - control


def speed_reward(
    velocity: float | Float64[np.ndarray, " copies"], target: float
) -> float | Float64[np.ndarray, " copies"]:
    """1 - |v - target|: what is rewarded instead of the forward velocity where there is a target speed."""
    return 1.0 - abs(velocity - target)


class Planar(Legged):
    """Hopper and Walker2d. Hopper must also keep the rest of its state within bounds; both show velocities in +-10."""

    def __init__(self, env: MujocoEnv, version: int, target_speed: float | None = None) -> None:
        super().__init__(env, version, target_speed)
        self.healthy_angle: tuple[float, float] = vars(env)["_healthy_angle_range"]
        self.healthy_state: tuple[float, float] = vars(env).get("_healthy_state_range", (-np.inf, np.inf))
        self.start_height: float = env.init_qpos[1]

    def observe(self, frame: Frame) -> Float64[np.ndarray, "copies observation"]:
        return np.concatenate([frame.qpos[:, int(self.hides) :], np.clip(frame.qvel, -10, 10)], axis=1)

    def reward(
        self, before: Frame, actions: Float[np.ndarray, "copies actuators"], after: Frame
    ) -> tuple[Float64[np.ndarray, " copies"], Infos]:
        velocity = (after.qpos[:, 0] - before.qpos[:, 0]) / self.dt
        forward, survival = self.forward_weight * velocity, self.survival(after)
        control = self.control_weight * np.add.reduce(np.square(actions), axis=1)
        infos: Infos = {"x_position": after.qpos[:, 0], "x_velocity": velocity}
        if self.version == 5:
            infos |= self.reset_info(after)
            infos |= {"reward_forward": forward, "reward_ctrl": -control, "reward_survive": survival}
        return self.total(forward, velocity, survival, control), infos

    def reset_info(self, frame: Frame) -> Infos:
        if self.version == 4:
            return {}
        return {"x_position": frame.qpos[:, 0], "z_distance_from_origin": frame.qpos[:, 1] - self.start_height}

    def healthy(self, frame: Frame) -> Bool[np.ndarray, " copies"]:
        within = between(frame.qpos[:, 1], self.healthy_z) & between(frame.qpos[:, 2], self.healthy_angle)
        if np.isfinite(self.healthy_state).any():
            state = np.concatenate([frame.qpos[:, 2:], frame.qvel], axis=1)
            within &= between(state, self.healthy_state).all(axis=1)
        return within


class Ant(Legged):
    """Version 4, without contact forces."""

    def __init__(self, env: MujocoEnv, version: int, target_speed: float | None = None) -> None:
        super().__init__(env, version, target_speed)
        _refuse(env, "use_contact_forces")
        self.bodies = (env.model.body("torso").id,)

    def observe(self, frame: Frame) -> Float64[np.ndarray, "copies observation"]:
        return np.concatenate([frame.qpos[:, 2 * int(self.hides) :], frame.qvel], axis=1)

    def reward(
        self, before: Frame, actions: Float[np.ndarray, "copies actuators"], after: Frame
    ) -> tuple[Float64[np.ndarray, " copies"], Infos]:
        place = after.places[:, 0, :2]
        forward, sideways = ((place - before.places[:, 0, :2]) / self.dt).T
        survival = self.survival(after)
        control = self.control_weight * np.add.reduce(np.square(actions), axis=1)
        infos = {
            "reward_forward": forward,
            "reward_ctrl": -control,
            "reward_survive": survival,
            "x_position": place[:, 0],
            "y_position": place[:, 1],
            "distance_from_origin": np.sqrt(np.vecdot(place, place)),
            "x_velocity": forward,
            "y_velocity": sideways,
            "forward_reward": forward,
        }
        return self.total(forward, forward, survival, control), infos

    def healthy(self, frame: Frame) -> Bool[np.ndarray, " copies"]:
        low, high = self.healthy_z
        finite = np.isfinite(frame.qpos).all(axis=1) & np.isfinite(frame.qvel).all(axis=1)
        return finite & (low <= frame.qpos[:, 2]) & (frame.qpos[:, 2] <= high)


class Humanoid(Legged):
    """Version 5, which shows its positions and velocities alone and is not charged for contacts.

    Its `info` leaves out what tendons do.
    """

    field = "xipos"

    def __init__(self, env: MujocoEnv, version: int, target_speed: float | None = None) -> None:
        super().__init__(env, version, target_speed)
        shown = ("cinert", "cvel", "qfrc_actuator", "cfrc_ext")
        _refuse(env, *(f"include_{name}_in_observation" for name in shown), "contact_cost_weight")
        self.bodies = tuple(range(env.model.nbody))
        self.masses: Float64[np.ndarray, " bodies"] = env.model.body_mass
        self.mass: float = self.masses.sum()

    def observe(self, frame: Frame) -> Float64[np.ndarray, "copies observation"]:
        return np.concatenate([frame.qpos[:, 2 * int(self.hides) :], frame.qvel], axis=1)

    def reward(
        self, before: Frame, actions: Float[np.ndarray, "copies actuators"], after: Frame
    ) -> tuple[Float64[np.ndarray, " copies"], Infos]:
        velocity, sideways = ((self._middle(after) - self._middle(before)) / self.dt).T
        forward, survival = self.forward_weight * velocity, self.survival(after)
        # Charged is what the motors got, in double precision.
        control = self.control_weight * np.add.reduce(np.square(actions.astype(np.float64)), axis=1)
        infos = {
            **self.reset_info(after),
            "x_velocity": velocity,
            "y_velocity": sideways,
            "reward_survive": survival,
            "reward_forward": forward,
            "reward_ctrl": -control,
            "reward_contact": np.full(len(velocity), -0.0),
        }
        return self.total(forward, velocity, survival, control), infos

    def reset_info(self, frame: Frame) -> Infos:
        place = np.ascontiguousarray(frame.qpos[:, :2])
        distance = np.sqrt(np.vecdot(place, place))
        return {"x_position": place[:, 0], "y_position": place[:, 1], "distance_from_origin": distance}

    def healthy(self, frame: Frame) -> Bool[np.ndarray, " copies"]:
        return between(frame.qpos[:, 2], self.healthy_z)

    def _middle(self, frame: Frame) -> Float64[np.ndarray, "copies 2"]:
        """The centre of mass: each copy's own sum, since a batched one adds in another order."""
        sums = [np.einsum("b,bj->j", self.masses, places) for places in frame.places]
        return (np.stack(sums) / self.mass)[:, :2]


def between(values: Float[np.ndarray, "..."], ends: tuple[float, float]) -> Bool[np.ndarray, "..."]:
    """Which lie strictly between the two ends."""
    return (ends[0] < values) & (values < ends[1])


def _refuse(env: MujocoEnv, *names: str) -> None:
    for name in names:
        if vars(env)[f"_{name}"]:
            raise ValueError(f"{name} must be off: copies compute no contact forces and show positions and velocities.")
