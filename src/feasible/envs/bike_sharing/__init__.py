"""Bike sharing (BSS-3, BSS-5 and any other size): integer allocations of a fleet over stations."""

from feasible.extras import require

require("network", "Bike sharing's simulator")

from feasible.envs.bike_sharing.demand import DemandLaw as DemandLaw
from feasible.envs.bike_sharing.demand import UniformDemand as UniformDemand
from feasible.envs.bike_sharing.dynamics import Outcome as Outcome
from feasible.envs.bike_sharing.dynamics import advance as advance
from feasible.envs.bike_sharing.dynamics import play as play
from feasible.envs.bike_sharing.env import BikeSharingEnv as BikeSharingEnv
from feasible.envs.bike_sharing.rules import Rules as Rules
from feasible.envs.bike_sharing.system import BikeSystem as BikeSystem
from feasible.envs.bike_sharing.system import Costs as Costs
from feasible.envs.bike_sharing.system import bike_system as bike_system
from feasible.envs.bike_sharing.vector import BikeSharingVectorEnv as BikeSharingVectorEnv
