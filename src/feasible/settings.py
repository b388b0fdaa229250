"""The settings of the paper's experiments as plain data: what a task's methods are trained with."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeVar


def off_policy(other: int, *, optlayer: int, nfwpo: int, sac: int) -> dict[str, int]:
    """By method that learns from a replay."""
    values = {"nfwpo": nfwpo, "ddpg-projection": other, "ddpg-shaping": other, "ddpg-optlayer": optlayer}
    values["projected-gradient"] = other  # not of the paper: as its DDPG
    return {**values, "sac-projection": sac}


Number = TypeVar("Number", int, float)


def on_policy(ppo: Number, trpo: Number, focops: Number) -> dict[str, Number]:
    """By method that learns from rollouts."""
    clipped = {"ppo-capg": ppo, "trpo-capg": trpo}
    return {"ppo-projection": ppo, "trpo-projection": trpo, "focops-projection": focops, **clipped}


ROLLOUTS = dict.fromkeys(("ppo-projection", "trpo-projection", "focops-projection"), 64)
"""Batch sizes of the methods that learn from rollouts under every kind of constraint."""


def tabular(value: int) -> dict[str, int]:
    return {"fwpo": value, "tabular-projection": value, "tabular-shaping": value}


Preset = Literal["paper", "fair"]
"""`paper`: the text and its tables, truncation handled. `fair`: every method of a task alike."""


@dataclass(frozen=True)
class TableShape:
    """The allocations over which a tabular policy has its cells."""

    stations: int
    bikes: int
    low: int
    high: int


@dataclass(frozen=True)
class Settings:
    """How the methods of one task are trained and evaluated: a column of Table 3, or Table 4 for BSS-3.

    What differs by method is a map from the method's name. The methods of a task are those with a batch size.
    """

    training_steps: int
    warmup_steps: int
    """Steps of purely exploratory actions before the first update."""
    evaluation_interval: int
    replay_size: int
    frank_wolfe_step: float
    """alpha of Algorithm 2, which Table 3 calls a learning rate."""
    shaping_weight: float
    """Weight of the distance between proposed and projected action in the shaped reward."""
    noise: float | None
    """Standard deviation of the Gaussian exploration noise; None: epsilon-greedy."""
    epsilon: float | None = None
    discount: float = 0.99
    actor_learning_rate: float = 1e-4
    critic_learning_rate: float = 1e-3
    target_ratio: float = 1e-3
    """tau: share of the online network in a target network at each update."""
    target_table_interval: int | None = None
    """Steps between copies of a tabular policy; None: the policy is a network and follows `target_ratio`."""
    batch_size: Mapping[str, int] = field(
        default_factory=lambda: {**off_policy(64, optlayer=16, nfwpo=16, sac=100), **ROLLOUTS}
    )
    actor_interval: Mapping[str, int] = field(default_factory=lambda: off_policy(1, optlayer=50, nfwpo=1, sac=50))
    """Steps between updates of the actor."""
    critic_interval: int = 1
    """Steps between updates of the critic."""
    hidden_layers: tuple[int, ...] = (400, 300)
    """Of the critic, and of the actor where it is a network."""
    hidden_activation: Literal["relu", "leaky_relu"] = "relu"
    actor_output: Literal["tanh", "relu", "leaky_relu", "table"] = "relu"
    table: TableShape | None = None
    sac_warmup_steps: int = 10_000
    sac_learning_starts: int = 1_000
    sac_updates: int = 50
    """Of SAC alone, whose source draws actions at random for longer than it waits for the first update."""
    horizon: Mapping[str, int] = field(default_factory=lambda: on_policy(2_048, 5_000, 1_024))
    """Steps between updates of the methods that learn from rollouts, which have a discount and a trace of their own."""
    rollout_discount: Mapping[str, float] = field(default_factory=lambda: on_policy(0.995, 0.995, 0.99))
    trace: Mapping[str, float] = field(default_factory=lambda: on_policy(0.97, 0.97, 0.95))
    multiplier_rate: float = 1e-3
    """Of the cost's multiplier in FOCOPS."""
    evaluation_episodes: int = 10
    scored_evaluations: int = 10
    """A run's score is the mean return over so many last evaluations."""
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
