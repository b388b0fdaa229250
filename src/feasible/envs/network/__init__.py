"""The packet-level communication network of the paper's utility maximisation task (NSFNET)."""

from feasible.extras import require

require("network", "The network's simulator")

from feasible.envs.network.env import NSFNetEnv as NSFNetEnv
from feasible.envs.network.env import NSFNetVectorEnv as NSFNetVectorEnv
from feasible.envs.network.recording import simulate_recorded as simulate_recorded
from feasible.envs.network.rules import Rules as Rules
from feasible.envs.network.topology import NSFNET as NSFNET
from feasible.envs.network.topology import Link as Link
from feasible.envs.network.topology import RatePolytope as RatePolytope
from feasible.envs.network.topology import Topology as Topology
from feasible.envs.network.topology import link_rows as link_rows
from feasible.envs.network.topology import rate_polytope as rate_polytope
