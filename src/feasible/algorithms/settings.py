"""The settings of each base learner and actor rule as typed keywords, for editors and type checkers.

Only names and types are here: defaults are in `feasible.catalogue.methods` and in the fields of algorithms, meanings
in the docstrings under these fields. A test holds every class here to the fields of its algorithm.
"""

from typing import Literal, TypedDict

from feasible.algorithms.base import CriticUnits
from feasible.algorithms.nets import Hidden, Output
from feasible.algorithms.statistics import Normalised

Numbers = tuple[float, ...] | list[float]
Units = tuple[int, ...] | list[int]


class DDPGSettings(TypedDict, total=False):
    """Of the DDPG family, whatever its actor rule."""

    noise: float | Numbers
    shaping: float
    warmup: int
    batch_size: int
    replay_size: int
    discount: float
    actor_rate: float
    critic_rate: float
    target_ratio: float
    actor_interval: int
    critic_interval: int
    hidden_layers: Units
    actor_hidden: Hidden
    critic_hidden: Hidden
    output: Output
    twin: bool
    target_noise: float | Numbers
    delayed_targets: bool
    averaged: bool
    normalised: Normalised
    copies: int
    map: Literal["projection", "alpha", "radial"]
    critic_at: Literal["executed", "proposed"]
    penalty: float
    critic_joined: int
    critic_units: CriticUnits
    relative_to: Units


class FrankWolfeSettings(DDPGSettings, total=False):
    """Of the DDPG family with the rule `FrankWolfe`."""

    frank_wolfe_step: float
    frank_wolfe_by: Literal["constant", "gap", "search"]
    frank_wolfe_inner: int
    frank_wolfe_away: bool
    frank_wolfe_inside: float
    frank_wolfe_project_target: bool


class ThroughProjectionSettings(DDPGSettings, total=False):
    """Of the DDPG family with the rule `ThroughProjection`."""

    through_projection_penalty: float
    through_projection_project_target: bool


class ProjectedGradientSettings(DDPGSettings, total=False):
    """Of the DDPG family with the rule `ProjectedGradient`."""

    projected_gradient_step: float
    projected_gradient_inside: float
    projected_gradient_margin: float
    projected_gradient_by: Literal["gradient", "direction"]


class SoftSettings(TypedDict, total=False):
    """Of all soft actor-critics."""

    entropy_weight: float
    entropy_target: float | Literal["auto"] | None
    warmup: int
    learning_starts: int
    interval: int
    updates: int
    batch_size: int
    replay_size: int
    discount: float
    rate: float
    target_ratio: float
    hidden_layers: Units
    hidden: Hidden
    normalised: Normalised
    copies: int
    critic_units: CriticUnits


class SACSettings(SoftSettings, total=False):
    """Of `SAC`."""

    map: Literal["squash", "alpha", "radial", "truncated"]
    directions: int
    critic_at: Literal["executed", "proposed"]
    penalty: float


class ARAMSettings(SoftSettings, total=False):
    """Of `ARAM`."""

    draws: int
    rejection_penalty: float
    augmented_share: float
    augmented_decay: float
    augmented_size: int
    preference: float
    samples: int
    snapshots: int
    snapshot_interval: int
    preferences: int
    reward_scale: float
    reward_shift: float


class RolloutSettings(TypedDict, total=False):
    """Of all that learn from rollouts."""

    horizon: int
    copies: int
    minibatch: int
    epochs: int
    discount: float
    trace: float
    rate: float
    hidden_layers: Units
    hidden: Hidden
    reward_scale: float
    normalised: bool
    warmup: int


class OnPolicySettings(RolloutSettings, total=False):
    """Of those with a Gaussian policy."""

    log_std: float
    bounded: bool
    capg: bool
    map: Literal["projection", "radial", "truncated"]
    directions: int


class PPOSettings(OnPolicySettings, total=False):
    """Of `PPO`."""

    clip: float
    entropy_weight: float


class SequentialPPOSettings(RolloutSettings, total=False):
    """Of `SequentialPPO`."""

    clip: float
    entropy_weight: float
    head_units: int


class TRPOSettings(OnPolicySettings, total=False):
    """Of `TRPO`."""

    divergence: float
    damping: float
    products: int
    halvings: int


class FOCOPSSettings(OnPolicySettings, total=False):
    """Of `FOCOPS`."""

    temperature: float
    divergence: float
    reach: float
    multiplier_rate: float
    multiplier_limit: float
    decay: float
