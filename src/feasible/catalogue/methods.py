"""The methods of the library, with their defaults.

A new method is one entry here: a combination of what `feasible.algorithms` has. By default critics see actions in units
of the action box, so that what is learned does not depend on the units of the actions; in a box of -1 to 1 it makes no
difference. Functions import when they are called, so that lists and help load no JAX.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn

from feasible.catalogue.method import Method

if TYPE_CHECKING:
    from feasible.algorithms.actor_rules import ActorRule
    from feasible.algorithms.base import Algorithm, Spec


def _neural(rule: "Callable[[Spec], ActorRule]", shaping: float = 0.0) -> "Callable[[Spec], Algorithm]":
    def make(spec: "Spec") -> "Algorithm":
        from feasible.algorithms.ddpg import DDPG

        return DDPG(rule=rule(spec), noise=_tenth(spec), shaping=shaping, warmup=1_000, critic_units="box")

    return make


def _td3(rule: "Callable[[Spec], ActorRule]", **settings: object) -> "Callable[[Spec], Algorithm]":
    """TD3's own defaults, with a tenth of the box for exploration and a fifth for the target's noise."""

    def make(spec: "Spec") -> "Algorithm":
        import numpy as np

        from feasible.algorithms.ddpg import DDPG
        from feasible.catalogue.field import TD3

        noise = _tenth(spec)
        alike = len(set(noise)) == 1
        width = 2 * float(np.mean(noise)) if alike else tuple(2 * deviation for deviation in noise)
        own = {**TD3, "warmup": 1_000, "critic_units": "box", **settings}
        return DDPG(rule=rule(spec), noise=noise, target_noise=width, **own)  # pyright: ignore[reportArgumentType]

    return make


def _soft(**settings: object) -> "Callable[[Spec], Algorithm]":
    """SAC with a tuned weight of the entropy."""

    def make(spec: "Spec") -> "Algorithm":
        from feasible.algorithms.sac import SAC
        from feasible.catalogue.field import TUNED

        del spec
        own = {**TUNED, "warmup": 1_000, "learning_starts": 1_000, "critic_units": "box", **settings}
        return SAC(**own)  # pyright: ignore[reportArgumentType]

    return make


def _frank_wolfe(spec: "Spec") -> "ActorRule":
    from feasible.algorithms.actor_rules import FrankWolfe

    del spec
    return FrankWolfe(0.05)


def _policy_gradient(spec: "Spec") -> "ActorRule":
    from feasible.algorithms.actor_rules import PolicyGradient

    del spec
    return PolicyGradient()


def _through_projection(spec: "Spec") -> "ActorRule":
    from feasible.algorithms.actor_rules import ThroughProjection

    del spec
    return ThroughProjection()


def _projected_gradient(spec: "Spec") -> "ActorRule":
    import numpy as np

    from feasible.algorithms.actor_rules import ProjectedGradient

    return ProjectedGradient(float(np.mean(_tenth(spec))))


def _sac(spec: "Spec") -> "Algorithm":
    from feasible.algorithms.sac import SAC

    del spec
    return SAC(warmup=1_000, interval=1, updates=1, batch_size=64, critic_units="box")


def _aram(spec: "Spec") -> "Algorithm":
    from feasible.algorithms.aram import ARAM

    del spec
    return ARAM(warmup=1_000, learning_starts=1_000, batch_size=256, critic_units="box")


def _ppo(**settings: object) -> "Callable[[Spec], Algorithm]":
    def make(spec: "Spec") -> "Algorithm":
        from feasible.algorithms.ppo import PPO

        del spec
        return PPO(discount=0.99, trace=0.95, **settings)  # pyright: ignore[reportArgumentType]

    return make


def _sequential(spec: "Spec") -> "Algorithm":
    from feasible.algorithms.sequential import SequentialPPO

    del spec
    return SequentialPPO(discount=0.99, trace=0.95)


def _trpo(capg: bool) -> "Callable[[Spec], Algorithm]":
    def make(spec: "Spec") -> "Algorithm":
        from feasible.algorithms.trpo import TRPO

        del spec
        return TRPO(horizon=2_048, discount=0.99, trace=0.95, capg=capg)

    return make


def _focops(spec: "Spec") -> "Algorithm":
    from feasible.algorithms.focops import FOCOPS

    del spec
    return FOCOPS(horizon=2_048)


def _tabular(spec: "Spec") -> NoReturn:
    del spec
    raise ValueError(
        "algo: tabular methods have no defaults, since their table is of one fleet of bikes; "
        "use --preset paper on the task 'bss-3', or a method with networks."
    )


def _tenth(spec: "Spec") -> tuple[float, ...]:
    """A tenth of half the action box, by coordinate."""
    import numpy as np

    half = (np.asarray(spec.high) - np.asarray(spec.low)) / 2
    return tuple(float(width) / 10 for width in half)


_TABLE = "allocations of bikes"
METHODS = (
    Method(
        "nfwpo",
        "NFWPO",
        "regression of the policy to feasible reference actions found by a Frank-Wolfe step on the critic",
        _neural(_frank_wolfe),
    ),
    Method(
        "ddpg-projection",
        "DDPG+Projection",
        "DDPG whose proposals are projected before they are executed",
        _neural(_policy_gradient),
    ),
    Method(
        "ddpg-shaping",
        "DDPG+RewardShaping",
        "the same, with the distance to the projection subtracted from the reward",
        _neural(_policy_gradient, shaping=1.0),
    ),
    Method(
        "ddpg-optlayer",
        "DDPG+OptLayer",
        "DDPG with the projection as the actor's last layer, differentiated exactly",
        _neural(_through_projection),
    ),
    Method(
        "sac-projection",
        "SAC+Projection",
        "soft actor-critic whose samples are projected before they are executed",
        _sac,
    ),
    Method(
        "ppo-projection",
        "PPO+Projection",
        "proximal policy optimisation whose samples are projected before they are executed",
        _ppo(),
    ),
    Method(
        "trpo-projection",
        "TRPO+Projection",
        "trust-region policy optimisation whose samples are projected before they are executed",
        _trpo(capg=False),
    ),
    Method(
        "focops-projection",
        "FOCOPS+Projection",
        "first-order constrained policy optimisation: violations are also a discounted cost of the proposals",
        _focops,
    ),
    Method(
        "projected-gradient",
        "ProjectedGradient",
        "regression of the policy to feasible reference actions found by a projected gradient step on the critic",
        _neural(_projected_gradient),
    ),
    Method(
        "td3-projection",
        "TD3+Projection",
        "TD3 whose proposals are projected before they are executed (DPro)",
        _td3(_policy_gradient),
    ),
    Method(
        "td3-proposed",
        "TD3 at proposals",
        "the same with a critic of the proposals, which the environment repairs (DPre)",
        _td3(_policy_gradient, critic_at="proposed"),
    ),
    Method(
        "td3-optlayer",
        "TD3+OptLayer",
        "TD3 with the projection as the actor's last layer, differentiated exactly (DOpt)",
        _td3(_through_projection),
    ),
    Method(
        "td3-nfwpo",
        "TD3+NFWPO",
        "NFWPO's rule with TD3's critics and targets (NFW)",
        _td3(_frank_wolfe),
    ),
    Method(
        "td3-alpha",
        "TD3+Alpha",
        "TD3 whose output is pulled to the boundary along its ray if it is outside (DAlpha)",
        _td3(_policy_gradient, map="alpha", output="linear"),
    ),
    Method(
        "td3-radial",
        "TD3+Radial",
        "TD3 whose output is squashed into the set along its ray (DRad)",
        _td3(_policy_gradient, map="radial", output="linear"),
    ),
    Method(
        "sac-proposed",
        "SAC at proposals",
        "soft actor-critic with critics of the proposals, which the environment repairs (SPre)",
        _soft(critic_at="proposed"),
    ),
    Method(
        "sac-alpha",
        "SAC+Alpha",
        "soft actor-critic whose sample is pulled to the boundary along its ray, with its density there (SAlpha)",
        _soft(map="alpha"),
    ),
    Method(
        "sac-radial",
        "SAC+Radial",
        "soft actor-critic whose sample is squashed into the set along its ray, with its density (SRad)",
        _soft(map="radial"),
    ),
    Method(
        "sac-truncated",
        "SAC+Truncated",
        "soft actor-critic with a Gaussian that is restricted to the set",
        _soft(map="truncated"),
        sets="all but integers",
    ),
    Method(
        "ppo-radial",
        "PPO+Radial",
        "proximal policy optimisation whose sample is squashed into the set along its ray (the ray mask)",
        _ppo(map="radial"),
    ),
    Method(
        "ppo-truncated",
        "PPO+Truncated",
        "proximal policy optimisation with a Gaussian that is restricted to the set",
        _ppo(map="truncated"),
        sets="all but integers",
    ),
    Method(
        "aram",
        "ARAM",
        "soft actor-critic with acceptance-rejection: rejected proposals are steps of an augmented process",
        _aram,
    ),
    Method(
        "ppo-sequential",
        "PPO, entry by entry",
        "proximal policy optimisation whose entries are drawn one after the other from the intervals that remain",
        _sequential,
        sets="boxes, allocations, budgets, polytopes",
    ),
    Method(
        "ppo-capg",
        "PPO-CAPG",
        "PPO with the clipped-action policy gradient, for boxes",
        _ppo(capg=True),
        sets="boxes",
        like="ppo-projection",
    ),
    Method(
        "trpo-capg",
        "TRPO-CAPG",
        "TRPO with the clipped-action policy gradient, for boxes",
        _trpo(capg=True),
        sets="boxes",
        like="trpo-projection",
    ),
    Method(
        "fwpo",
        "FWPO",
        "state-wise Frank-Wolfe steps on a table of actions, with a learned critic",
        _tabular,
        sets=_TABLE,
        like="nfwpo",
    ),
    Method(
        "tabular-projection",
        "Tabular projection",
        "gradient steps of the critic on a table of actions, projected before they are executed",
        _tabular,
        sets=_TABLE,
        like="ddpg-projection",
    ),
    Method(
        "tabular-shaping",
        "Tabular shaping",
        "the same, with the distance to the projection subtracted from the reward",
        _tabular,
        sets=_TABLE,
        like="ddpg-shaping",
    ),
    Method(
        "td3-projected-gradient",
        "TD3+ProjectedGradient",
        "ProjectedGradient's rule with TD3's critics and targets",
        _td3(_projected_gradient),
    ),
)
