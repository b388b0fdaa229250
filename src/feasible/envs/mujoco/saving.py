"""The complete state of a MuJoCo simulation as plain arrays.

`mjSTATE_INTEGRATION` is, by MuJoCo's definition, all that the next step is computed from: time, positions,
velocities, activations, controls, applied forces and the solver's warm start, without which a restored
simulation would differ by the solver's tolerance and then chaotically. Beside it stand those results of the
last step that are read before they are computed again: body positions (Reacher-v4 rewards the distance before
the step; MuJoCo's body positions lag behind joint positions by one substep, so they cannot be had from them)
and what a picture is drawn from.
"""

# MuJoCo's compiled module declares its names to no type checker.
# pyright: reportAttributeAccessIssue=false

import mujoco
import numpy as np
from jaxtyping import Float64

RESULTS = (
    "xpos",
    "xquat",
    "xmat",
    "xipos",
    "ximat",
    "geom_xpos",
    "geom_xmat",
    "site_xpos",
    "site_xmat",
    "cam_xpos",
    "cam_xmat",
    "light_xpos",
    "light_xdir",
    "subtree_com",
    "cvel",
    "sensordata",
    "qacc",
    "qfrc_actuator",
    "actuator_force",
)
_INTEGRATION = mujoco.mjtState.mjSTATE_INTEGRATION


def simulation_size(model: mujoco.MjModel) -> int:
    """How many numbers `save_simulation` gives."""
    data = mujoco.MjData(model)
    return mujoco.mj_stateSize(model, _INTEGRATION) + sum(getattr(data, name).size for name in RESULTS)


def save_simulation(model: mujoco.MjModel, data: mujoco.MjData) -> Float64[np.ndarray, " numbers"]:
    """The simulation's state as one vector."""
    integration = np.empty(mujoco.mj_stateSize(model, _INTEGRATION))
    mujoco.mj_getState(model, data, integration, _INTEGRATION)
    return np.concatenate([integration, *(getattr(data, name).ravel() for name in RESULTS)])


def restore_simulation(model: mujoco.MjModel, data: mujoco.MjData, saved: Float64[np.ndarray, " numbers"]) -> None:
    """Put a simulation of the same model into a saved state."""
    size = mujoco.mj_stateSize(model, _INTEGRATION)
    mujoco.mj_setState(model, data, np.ascontiguousarray(saved[:size]), _INTEGRATION)
    start = size
    for name in RESULTS:
        array = getattr(data, name)
        array[...] = saved[start : start + array.size].reshape(array.shape)
        start += array.size


def check_simulation(name: str, values: np.ndarray, shape: tuple[int, ...]) -> None:
    """Refuse an entry of a saved state that does not fit, before anything is restored."""
    if values.shape != shape:
        raise ValueError(f"state: {name} must have shape {shape}, not {values.shape}.")
