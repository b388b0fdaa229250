"""The task of a demonstration on the base installation: Gymnasium's pendulum, whose torque limit falls with its speed.

It is a task like one of your own: `feasible train --task feasible.cli.pendulum:pendulum --algo nfwpo`.
"""

from typing import Any

import gymnasium as gym
import jax.numpy as jnp
import numpy as np
from jaxtyping import UInt8

from feasible import sets
from feasible.catalogue.task import Task
from feasible.constraints import Observation

TORQUE, TOP_SPEED = 2.0, 10.0


def within_power(obs: Observation) -> sets.Box:
    """|a| <= 2 (1 - |w| / 10), w the angular velocity (observation 2)"""
    limit = TORQUE * (1.0 - jnp.abs(obs[2:]) / TOP_SPEED)
    return sets.Box(-limit, limit)


class Drawn(gym.Wrapper[np.ndarray, np.ndarray, np.ndarray, np.ndarray]):
    """The pendulum with a picture by matplotlib; Gymnasium's own needs pygame."""

    def __init__(self, env: gym.Env[np.ndarray, np.ndarray]) -> None:
        super().__init__(env)
        self.metadata = {"render_modes": ["rgb_array"], "render_fps": 20}
        self._torque = 0.0

    def reset(self, **options: Any):
        self._torque = 0.0
        return self.env.reset(**options)

    def step(self, action: np.ndarray):
        self._torque = float(action[0])
        return self.env.step(action)

    def render(self) -> UInt8[np.ndarray, "height width 3"]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """240 x 240 pixels: the rod, and below it the torque within its limit."""
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        pendulum: Any = self.env.unwrapped
        angle, speed = pendulum.state
        limit = TORQUE * (1.0 - abs(speed) / TOP_SPEED)
        figure = Figure(figsize=(2.4, 2.4), dpi=100, facecolor="white")
        canvas = FigureCanvasAgg(figure)
        axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
        axes.plot([0.0, np.sin(angle)], [0.0, np.cos(angle)], color="#0b62c4", linewidth=9, solid_capstyle="round")
        axes.plot([0.0], [0.0], "o", color="#26323d", markersize=6)
        axes.plot([-TORQUE / 2, TORQUE / 2], [-1.35, -1.35], color="#dfe3e8", linewidth=8)
        axes.plot([-limit / 2, limit / 2], [-1.35, -1.35], color="#f2b134", linewidth=8)
        axes.plot([self._torque / 2], [-1.35], "o", color="#cf4a0c", markersize=7)
        axes.set(xlim=(-1.5, 1.5), ylim=(-1.6, 1.4))
        axes.set_axis_off()
        canvas.draw()
        return np.asarray(canvas.buffer_rgba())[:, :, :3].copy()


def _make(render_mode: str | None = None) -> gym.Env:
    del render_mode  # `Drawn` draws in any
    return Drawn(gym.make("Pendulum-v1"))


pendulum = Task(
    "pendulum",
    _make,
    within_power,
    title="a pendulum whose torque limit falls with its speed",
    steps=10_000,
    eval_every=1_000,
)
