"""Gymnasium's own MuJoCo environments, batched over copies and with complete save and restore."""

from feasible.extras import require

require("mujoco", "A robot's simulator")

from feasible.envs.mujoco.single import RestorableMujoco as RestorableMujoco
from feasible.envs.mujoco.single import make_mujoco as make_mujoco
from feasible.envs.mujoco.vector import MujocoVectorEnv as MujocoVectorEnv
