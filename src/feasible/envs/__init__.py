"""Environments: Gymnasium classes over exact, batched simulators, registered with their constraints.

| id                           | constraint on the action a                                     | options           |
|------------------------------|----------------------------------------------------------------|-------------------|
| `feasible/BikeSharing-v0`    | integers, 0 <= a <= capacities, sum a = bikes                  | `BikeSharingEnv`  |
| `feasible/NSFNet-v0`         | a >= 0, the rates through each link <= its bandwidth           | `NSFNetEnv`       |
| `feasible/Portfolio-v0`      | 0 <= a <= bound, sum a = 1, sum abs(a - w) <= turnover         | `PortfolioEnv`    |
| `feasible/Reacher-v0`        | a_1^2 + a_2^2 <= 0.05, or another `limit`                      | `version="v4"`    |
| `feasible/HalfCheetah-v0`    | -1 <= a <= 1, sum abs(a_i w_i) <= 20, w the joints' velocities | `version="v5"`    |
| `feasible/HalfCheetahBox-v0` | -1 <= a <= 1                                                   | `version="v5"`    |
| `feasible/Hopper-v0`         | -1 <= a <= 1, sum max(a_i w_i, 0) <= 10                        | `version="v4"`    |
| `feasible/Walker2d-v0`       | -1 <= a <= 1, sum max(a_i w_i, 0) <= 10                        | `version="v4"`    |
| `feasible/Ant-v0`            | -1 <= a <= 1, sum a_i^2 <= 2                                   | `version="v4"`    |
| `feasible/Humanoid-v0`       | -0.4 <= a <= 0.4, sum a_i^2 <= 0.68                            | `version="v5"`    |

Robots take `limit` and `budget`, those that walk or hop `target_speed` (`mujoco.constrained`).
All take `on_infeasible="raise"` or `"project"` and `episode_length`; batched (`gymnasium.make_vec`) also `threads`.
Importing this module registers the ids and loads no simulator: entry points are names.
"""

from gymnasium.envs.registration import register

_CREATORS = {
    "BikeSharing": "bike_sharing.constrained:bike_sharing",
    "NSFNet": "network.constrained:nsfnet",
    "Portfolio": "portfolio.constrained:portfolio",
    "Reacher": "mujoco.constrained:reacher",
    "HalfCheetah": "mujoco.constrained:half_cheetah",
    "HalfCheetahBox": "mujoco.constrained:half_cheetah_box",
    "Hopper": "mujoco.constrained:hopper",
    "Walker2d": "mujoco.constrained:walker",
    "Ant": "mujoco.constrained:ant",
    "Humanoid": "mujoco.constrained:humanoid",
}

for _name, _creator in _CREATORS.items():
    register(
        f"feasible/{_name}-v0",
        entry_point=f"feasible.envs.{_creator}",
        vector_entry_point=f"feasible.envs.{_creator}_copies",
        # These environments end their episodes, refuse steps before a reset and judge actions by themselves:
        # `gymnasium.make` has nothing to put around them, and `get_state` is at hand.
        order_enforce=False,
        disable_env_checker=True,
    )
