"""The preset `field`: the methods of the field with the hyper-parameters of their suite, on the tasks that it has.

Of omron's benchmark (TD3 and SAC families) and of the learners' own defaults elsewhere. Theirs that ours are not: on
Reacher they update after each episode, as often as it has steps, where we update once a step, and SAC explores there by
a noise that depends on the state (gSDE), where ours draws anew.
"""

from collections.abc import Mapping

from feasible.algorithms.actor_rules import ActorRule, FrankWolfe, PolicyGradient, ThroughProjection
from feasible.algorithms.base import Algorithm
from feasible.algorithms.ddpg import DDPG
from feasible.algorithms.ppo import PPO
from feasible.algorithms.sac import SAC

TD3: Mapping[str, object] = {
    "twin": True,
    "actor_interval": 2,
    "delayed_targets": True,
    "target_ratio": 5e-3,
    "actor_rate": 1e-3,
    "critic_rate": 1e-3,
    "batch_size": 100,
    "critic_joined": 0,
}
"""What makes TD3 of DDPG, with the usual rates."""

TUNED: Mapping[str, object] = {
    "entropy_weight": 1.0,
    "entropy_target": "auto",
    "interval": 1,
    "updates": 1,
    "batch_size": 256,
    "rate": 3e-4,
    "hidden_layers": (256, 256),
}
"""SAC with a tuned weight of the entropy and the usual rate."""


def field(
    *, frank_wolfe_step: float, td3: Mapping[str, object] | None = None, sac: Mapping[str, object] | None = None
) -> Mapping[str, Algorithm]:
    """The methods on a task whose actions are in [-1, 1], with what its suite changes of TD3 and of SAC."""

    def deterministic(rule: ActorRule, **settings: object) -> DDPG:
        given = {**TD3, "warmup": 10_000, **(td3 or {}), **settings}
        return DDPG(rule=rule, noise=0.1, target_noise=0.2, **given)  # pyright: ignore[reportArgumentType]

    def soft(**settings: object) -> SAC:
        given = {**TUNED, "warmup": 10_000, "learning_starts": 10_000, **(sac or {}), **settings}
        return SAC(**given)  # pyright: ignore[reportArgumentType]

    def clipped(**settings: object) -> PPO:
        return PPO(discount=0.99, trace=0.95, **settings)  # pyright: ignore[reportArgumentType]

    gradient = PolicyGradient()
    return {
        "td3-projection": deterministic(gradient),
        "td3-proposed": deterministic(gradient, critic_at="proposed"),
        "td3-optlayer": deterministic(ThroughProjection()),
        "td3-nfwpo": deterministic(FrankWolfe(frank_wolfe_step)),
        "td3-alpha": deterministic(gradient, map="alpha", output="linear"),
        "td3-radial": deterministic(gradient, map="radial", output="linear"),
        "sac-projection": soft(),
        "sac-proposed": soft(critic_at="proposed"),
        "sac-alpha": soft(map="alpha"),
        "sac-radial": soft(map="radial"),
        "sac-truncated": soft(map="truncated"),
        "ppo-projection": clipped(),
        "ppo-radial": clipped(map="radial"),
        "ppo-truncated": clipped(map="truncated"),
    }


def reacher_field() -> Mapping[str, Algorithm]:
    """The methods on Reacher's tasks."""
    td3 = {"discount": 0.98, "replay_size": 200_000}
    sac = {"discount": 0.98, "replay_size": 300_000, "rate": 7.3e-4, "target_ratio": 0.02, "hidden_layers": (400, 300)}
    return field(frank_wolfe_step=0.05, td3=td3, sac=sac)
