"""The packet network with its constraint: no link is given more than its bandwidth."""

from feasible import sets
from feasible.constraints import OnInfeasible, fixed
from feasible.envs.network.env import NSFNetEnv, NSFNetVectorEnv
from feasible.envs.network.topology import Topology, rate_polytope
from feasible.envs.registered import RegisteredEnv, RegisteredVectorEnv


def feasible_rates(topology: Topology) -> sets.Polytope:
    """The rates that overload no link of a network; constant, so its vertices are found once."""
    return sets.Polytope(*rate_polytope(topology))


def nsfnet(*, on_infeasible: OnInfeasible = "raise", **options: object) -> RegisteredEnv:
    """`feasible/NSFNet-v0`, with the options of `NSFNetEnv`."""
    env = NSFNetEnv(**options)  # pyright: ignore[reportArgumentType]
    return RegisteredEnv(env, fixed(feasible_rates(env.topology)), on_infeasible)


def nsfnet_copies(
    num_envs: int = 1, *, on_infeasible: OnInfeasible = "raise", **options: object
) -> RegisteredVectorEnv:
    """Its batched form, with the options of `NSFNetVectorEnv`."""
    env = NSFNetVectorEnv(num_envs, **options)  # pyright: ignore[reportArgumentType]
    return RegisteredVectorEnv(env, fixed(feasible_rates(env.topology)), on_infeasible)
