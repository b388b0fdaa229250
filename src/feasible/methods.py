"""The methods by name: which algorithm each is, and how a task's settings become its hyper-parameters."""

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from feasible.tasks import Preset, Settings, Task

if TYPE_CHECKING:
    from feasible.algorithms.actor_rules import ActorRule
    from feasible.algorithms.base import Algorithm


@dataclass(frozen=True)
class Method:
    """A method under the name by which people and runs know it."""

    name: str
    title: str
    summary: str
    build: Callable[[str, Settings], "Algorithm"]


def _neural(rule: Callable[[Settings], "ActorRule"], *, shaped: bool = False) -> Callable[[str, Settings], "Algorithm"]:
    def build(name: str, settings: Settings) -> "Algorithm":
        from feasible.algorithms.ddpg import DDPG

        if settings.noise is None or settings.actor_output == "table":
            raise ValueError(f"{name} trains networks, but these settings are of a tabular policy.")
        return DDPG(
            rule=rule(settings),
            noise=settings.noise,
            shaping=settings.shaping_weight if shaped else 0.0,
            warmup=settings.warmup_steps,
            batch_size=settings.batch_size[name],
            replay_size=settings.replay_size,
            discount=settings.discount,
            actor_rate=settings.actor_learning_rate,
            critic_rate=settings.critic_learning_rate,
            target_ratio=settings.target_ratio,
            actor_interval=settings.actor_interval[name],
            critic_interval=settings.critic_interval,
            hidden_layers=settings.hidden_layers,
            actor_hidden=settings.hidden_activation,
            critic_hidden=settings.hidden_activation,
            output=settings.actor_output,
        )

    return build


def _sac(name: str, settings: Settings) -> "Algorithm":
    from feasible.algorithms.sac import SAC

    return SAC(
        warmup=settings.sac_warmup_steps,
        learning_starts=settings.sac_learning_starts,
        interval=settings.actor_interval[name],
        updates=settings.sac_updates,
        batch_size=settings.batch_size[name],
        replay_size=settings.replay_size,
        discount=settings.discount,
        hidden_layers=settings.hidden_layers,
        hidden=settings.hidden_activation,
    )


def _rollouts(name: str, settings: Settings) -> dict[str, object]:
    """What the methods that learn from rollouts have in common."""
    return {
        "horizon": settings.horizon[name],
        "minibatch": settings.batch_size[name],
        "discount": settings.rollout_discount[name],
        "trace": settings.trace[name],
    }


def _ppo(*, capg: bool = False) -> Callable[[str, Settings], "Algorithm"]:
    def build(name: str, settings: Settings) -> "Algorithm":
        from feasible.algorithms.ppo import PPO

        return PPO(**_rollouts(name, settings), capg=capg)  # pyright: ignore[reportArgumentType]

    return build


def _trpo(*, capg: bool = False) -> Callable[[str, Settings], "Algorithm"]:
    def build(name: str, settings: Settings) -> "Algorithm":
        from feasible.algorithms.trpo import TRPO

        return TRPO(**_rollouts(name, settings), capg=capg)  # pyright: ignore[reportArgumentType]

    return build


def _focops(name: str, settings: Settings) -> "Algorithm":
    from feasible.algorithms.focops import FOCOPS

    shared = _rollouts(name, settings)
    return FOCOPS(**shared, multiplier_rate=settings.multiplier_rate)  # pyright: ignore[reportArgumentType]


def _tabular(
    rule: Callable[[Settings], "ActorRule"], *, shaped: bool = False, direct: bool = False
) -> Callable[[str, Settings], "Algorithm"]:
    def build(name: str, settings: Settings) -> "Algorithm":
        from feasible.algorithms.table import BikeTable

        if settings.table is None or settings.epsilon is None or settings.target_table_interval is None:
            raise ValueError(f"{name} trains a table, but these settings are of networks.")
        return BikeTable(
            rule=rule(settings),
            bikes=settings.table.bikes,
            low=settings.table.low,
            high=settings.table.high,
            stations=settings.table.stations,
            table_rate=None if direct else settings.actor_learning_rate,
            shaping=settings.shaping_weight if shaped else 0.0,
            epsilon=settings.epsilon,
            warmup=settings.warmup_steps,
            batch_size=settings.batch_size[name],
            replay_size=settings.replay_size,
            discount=settings.discount,
            critic_rate=settings.critic_learning_rate,
            target_ratio=settings.target_ratio,
            critic_interval=settings.critic_interval,
            table_interval=settings.actor_interval[name],
            target_interval=settings.target_table_interval,
            hidden_layers=settings.hidden_layers,
        )

    return build


def _frank_wolfe(settings: Settings) -> "ActorRule":
    from feasible.algorithms.actor_rules import FrankWolfe

    return FrankWolfe(settings.frank_wolfe_step)


def _policy_gradient(settings: Settings) -> "ActorRule":
    from feasible.algorithms.actor_rules import PolicyGradient

    del settings
    return PolicyGradient()


def _through_projection(settings: Settings) -> "ActorRule":
    from feasible.algorithms.actor_rules import ThroughProjection

    del settings
    return ThroughProjection()


def _projected_gradient(settings: Settings) -> "ActorRule":
    from feasible.algorithms.actor_rules import ProjectedGradient

    assert settings.noise is not None
    return ProjectedGradient(settings.noise)  # the length of a step that exploration would try, too


_METHODS = (
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
        "the same, with the distance to the projection taken off the reward",
        _neural(_policy_gradient, shaped=True),
    ),
    Method(
        "ddpg-optlayer",
        "DDPG+OptLayer",
        "DDPG with the projection as the actor's last layer, differentiated exactly",
        _neural(_through_projection),
    ),
    Method(
        "projected-gradient",
        "ProjectedGradient",
        "regression of the policy to feasible reference actions found by a projected gradient step on the critic",
        _neural(_projected_gradient),
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
        _trpo(),
    ),
    Method(
        "focops-projection",
        "FOCOPS+Projection",
        "first-order constrained policy optimisation: the constraint also as a discounted cost of the proposals",
        _focops,
    ),
    Method(
        "ppo-capg",
        "PPO-CAPG",
        "PPO with the clipped-action policy gradient, for boxes",
        _ppo(capg=True),
    ),
    Method(
        "trpo-capg",
        "TRPO-CAPG",
        "TRPO with the clipped-action policy gradient, for boxes",
        _trpo(capg=True),
    ),
    Method(
        "fwpo",
        "FWPO",
        "state-wise Frank-Wolfe steps on a table of actions, with a learned critic",
        _tabular(_frank_wolfe, direct=True),
    ),
    Method(
        "tabular-projection",
        "Tabular projection",
        "gradient steps of the critic on a table of actions, projected before they are executed",
        _tabular(_policy_gradient),
    ),
    Method(
        "tabular-shaping",
        "Tabular shaping",
        "the same, with the distance to the projection taken off the reward",
        _tabular(_policy_gradient, shaped=True),
    ),
)

METHODS: Mapping[str, Method] = {method.name: method for method in _METHODS}
RECOMMENDED = "recommended"
"""The name of what `feasible.recommendation` chooses among them."""


def find_method(name: str) -> Method:
    """The method of that name; for another name an error that says which one may be meant."""
    if name in METHODS:
        return METHODS[name]
    known = [*METHODS, RECOMMENDED]
    near = difflib.get_close_matches(str(name).lower(), known, n=1, cutoff=0.0)[0]
    raise ValueError(f"There is no algorithm {name!r}; did you mean {near!r}? Known ones: {', '.join(known)}.")


def build_algorithm(task: Task, name: str, preset: Preset, changes: Mapping[str, object] | None = None) -> "Algorithm":
    """The algorithm of a method with a task's settings; `changes` are fields of the algorithm."""
    method, settings = find_method(name), task.settings(preset)
    if name not in settings.batch_size:
        known = ", ".join(settings.batch_size)
        raise ValueError(f"There are no settings of {name!r} for the task {task.name!r}; its methods are {known}.")
    algorithm = method.build(name, settings)
    if not changes:
        return algorithm
    from feasible.algorithms.description import changed

    return changed(algorithm, changes, name)
