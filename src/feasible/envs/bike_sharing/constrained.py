"""Bike sharing with its constraint: integer allocations of the fleet."""

from feasible import sets
from feasible.constraints import OnInfeasible, fixed
from feasible.envs.bike_sharing.env import BikeSharingEnv
from feasible.envs.bike_sharing.system import BikeSystem
from feasible.envs.bike_sharing.vector import BikeSharingVectorEnv
from feasible.envs.registered import RegisteredEnv, RegisteredVectorEnv


def allocations(system: BikeSystem) -> sets.IntegerAllocation:
    """All the ways in which a system's fleet can stand at its stations."""
    return sets.IntegerAllocation(total=system.bikes, low=system.low, high=system.capacities)


def bike_sharing(*, on_infeasible: OnInfeasible = "raise", **options: object) -> RegisteredEnv:
    """`feasible/BikeSharing-v0`, with the options of `BikeSharingEnv`."""
    env = BikeSharingEnv(**options)  # pyright: ignore[reportArgumentType]
    return RegisteredEnv(env, fixed(allocations(env.system)), on_infeasible)


def bike_sharing_copies(
    num_envs: int = 1, *, on_infeasible: OnInfeasible = "raise", **options: object
) -> RegisteredVectorEnv:
    """Its batched form, with the options of `BikeSharingVectorEnv`."""
    env = BikeSharingVectorEnv(num_envs, **options)  # pyright: ignore[reportArgumentType]
    return RegisteredVectorEnv(env, fixed(allocations(env.system)), on_infeasible)
