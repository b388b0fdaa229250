"""The presets of the paper's tasks: `paper` is a column of its Table 3, `fair` treats every method alike.

Hyper-parameters of `paper` are those of the text and of its Tables 3 and 4; where these are silent, those of the
authors' code. Where the two differ, the text counts.
"""

from collections.abc import Mapping
from dataclasses import replace

from feasible.algorithms.actor_rules import FrankWolfe, PolicyGradient, ProjectedGradient, ThroughProjection
from feasible.algorithms.base import Algorithm
from feasible.algorithms.ddpg import DDPG
from feasible.algorithms.focops import FOCOPS
from feasible.algorithms.nets import Hidden, Output
from feasible.algorithms.on_policy import OnPolicy
from feasible.algorithms.ppo import PPO
from feasible.algorithms.sac import SAC
from feasible.algorithms.trpo import TRPO

Algorithms = Mapping[str, Algorithm]


def table_3(
    *,
    frank_wolfe_step: float,
    shaping: float,
    noise: float,
    warmup: int = 10_000,
    replay_size: int = 1_000_000,
    output: Output = "relu",
    interval: int = 1,
    sac_batch_size: int = 100,
) -> dict[str, Algorithm]:
    """A column of Table 3, and what its source says of the methods that it does not have.

    `frank_wolfe_step` is alpha of Algorithm 2, which the table calls a learning rate. OptLayer's actor learns at every
    50th step everywhere; SAC draws actions at random for longer than it waits for its first update.
    """
    shared = {"noise": noise, "warmup": warmup, "replay_size": replay_size, "output": output}
    network = DDPG(PolicyGradient(), **shared, actor_interval=interval, critic_interval=interval)  # pyright: ignore[reportArgumentType]
    return {
        "nfwpo": replace(network, rule=FrankWolfe(frank_wolfe_step), batch_size=16),
        "ddpg-projection": network,
        "ddpg-shaping": replace(network, shaping=shaping),
        "ddpg-optlayer": replace(network, rule=ThroughProjection(), batch_size=16, actor_interval=50),
        # Not of the paper: as its DDPG, with steps as long as those that exploration tries.
        "projected-gradient": replace(network, rule=ProjectedGradient(noise)),
        "sac-projection": SAC(replay_size=replay_size, batch_size=sac_batch_size),
        "ppo-projection": PPO(),
        "trpo-projection": TRPO(),
        "focops-projection": FOCOPS(),
    }


def fair(paper: Algorithms, output: Output = "tanh", hidden: Hidden = "relu") -> Algorithms:
    """Every method alike: batch 64, actor and critic updated together, the same sizes and activations.

    SAC keeps its own learning rate, target ratio and critics, which take the action at their first layer. PPO, TRPO and
    FOCOPS keep networks of two layers of 64, and learn from rollouts of the same length with the same traces. Target
    networks start as copies, and the warm-up is the same, in both presets.
    """
    network = paper["ddpg-projection"]
    assert isinstance(network, DDPG)

    def alike(algorithm: Algorithm) -> Algorithm:
        match algorithm:
            case DDPG():
                activations = {"output": output, "actor_hidden": hidden, "critic_hidden": hidden}
                return replace(algorithm, batch_size=64, actor_interval=network.critic_interval, **activations)
            case SAC():
                start = {"warmup": network.warmup, "learning_starts": network.warmup}
                return replace(
                    algorithm, batch_size=64, interval=network.critic_interval, updates=1, hidden=hidden, **start
                )
            case OnPolicy():
                return replace(algorithm, horizon=2_048, discount=network.discount, trace=0.95)
            case _:
                return algorithm

    return {name: alike(algorithm) for name, algorithm in paper.items()}
