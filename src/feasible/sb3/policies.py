"""Policies of Stable-Baselines3 whose actions lie in the feasible set of their observation.

| map          | SAC                                | TD3, DDPG             | PPO                                     |
|--------------|------------------------------------|-----------------------|-----------------------------------------|
| `radial`     | exact log-density in the set       | of the tanh output    | exact log-density in the set            |
| `alpha`      | inside, and of the surface outside | of the tanh output    | inside, and of the surface outside      |
| `projection` | of the proposal; action projected  | of it, with gradient  | of the proposal, which the buffer keeps |

Networks, losses and buffers are Stable-Baselines3's. Actors of SAC and TD3 answer in its scaled actions, from -1 to 1,
and log-densities of SAC are in these units; PPO's are in the environment's. For sets with equalities networks have as
many outputs as the set's hull has dimensions. PPO's entropy bonus is Stable-Baselines3's estimate from samples.

What they do not cover: random actions before `learning_starts`, which Stable-Baselines3 draws from the box, its
`action_noise`, which it adds to the answer (TD3: use `noise` here), and its smoothing noise in TD3's target, which is
never executed. A `safe` environment repairs the first two.
"""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
# The type checker also runs where Stable-Baselines3 is not installed.

from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import jax
import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3.common.distributions import DiagGaussianDistribution, Distribution
from stable_baselines3.common.policies import ActorCriticPolicy, BasePolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor, CombinedExtractor, create_mlp
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.sac.policies import Actor as SACActor
from stable_baselines3.sac.policies import SACPolicy
from stable_baselines3.td3.policies import Actor as TD3Actor
from stable_baselines3.td3.policies import TD3Policy

from feasible.constraints import Constraint
from feasible.constraints.action_box import in_action_box, one_dimensional
from feasible.errors import unknown
from feasible.sb3.normalised import check_raw, environment_of_the_maker
from feasible.torch import MappedGaussian, project
from feasible.torch.crossing import Tensor
from feasible.torch.layer import MAPS


@dataclass(frozen=True)
class Rule:
    """What a policy class is asked to keep to."""

    constraint: Constraint
    map: str
    noise: float


def constrained_policy(
    algorithm: str, constraint: "Constraint | gym.Env | VecEnv", map: str = "radial", *, noise: float = 0.0
) -> type[BasePolicy]:
    """The policy class of "SAC", "TD3" (and DDPG) or "PPO" (and A2C) whose actions are feasible by construction.

    >>> SAC(constrained_policy("SAC", constraint, map="radial"), safe(env, constraint))

    `constraint` is a pure JAX function of the raw observation, or an environment that has one. `noise` is TD3's
    exploration, a standard deviation in scaled actions that is added before the map, so it cannot lead outside; it
    acts where `predict` is not deterministic. Models are saved and loaded by Stable-Baselines3's own `save` and
    `load`, the constraint with them (by cloudpickle, as all that is theirs).
    """
    if algorithm not in POLICIES:
        raise unknown("algorithm", algorithm, POLICIES, "constrained_policy: ")
    if map not in MAPS:
        raise unknown("map", map, MAPS, "constrained_policy: ")
    if noise and algorithm != "TD3":
        raise ValueError(f"constrained_policy: noise is for TD3; {algorithm} explores by its own distribution.")
    base = POLICIES[algorithm]
    return type(f"{base.__name__}Of{map.capitalize()}", (base,), {"rule": Rule(_constraint(constraint), map, noise)})


def _constraint(given: Any) -> Constraint:
    """The constraint itself, or that of an environment."""
    if not isinstance(given, gym.Env | VecEnv):
        return given
    try:
        if isinstance(given, VecEnv):
            constraint, layout = given.get_attr("constraint")[0], given.get_attr("layout")[0]
            check_raw(given, constraint)
        else:
            constraint, layout = given.get_wrapper_attr("constraint"), given.get_wrapper_attr("layout")
    except AttributeError as cause:
        raise ValueError("constrained_policy: the environment has no constraint; pass the function itself.") from cause
    if layout is not None:
        raise ValueError("constrained_policy: observations have a structure; pass the constraint, a function of it.")
    return constraint


class Inside:
    """A rule in the spaces of an agent: where outputs of its network lead."""

    def __init__(self, rule: Rule, observations: gym.Space, actions: gym.Space, *, scaled: bool):
        box = one_dimensional(actions, "constrained_policy: the action space")
        sample = observations.sample()
        constraint = in_action_box(rule.constraint, box, sample)
        region = jax.eval_shape(constraint, jax.tree.map(np.asarray, sample))
        self.constraint, self.map, self.noise = constraint, rule.map, rule.noise
        self.outputs = region.dim if rule.map == "projection" else region.hull_dim
        self._low, self._high = (torch.as_tensor(bound, dtype=torch.float32) for bound in (box.low, box.high))
        if rule.map != "projection":
            self.gaussian = MappedGaussian(constraint, box.low, box.high, rule.map, scaled=scaled)

    def projected(self, scaled: Tensor, obs: Any) -> Tensor:
        """The projection of scaled actions, in scaled actions."""
        low, high = self._low.to(scaled.device), self._high.to(scaled.device)
        middle, half = 0.5 * (high + low), 0.5 * (high - low)
        return (project(self.constraint, middle + half * scaled, obs) - middle) / half

    def action(self, output: Tensor, obs: Any) -> Tensor:
        """The scaled action of a deterministic output, in units of the box."""
        return self.projected(output, obs) if self.map == "projection" else self.gaussian.mode(output, obs)


class FeasibleSACActor(SACActor):
    """SAC's actor with a map into the set after the Gaussian."""

    def __init__(self, *arguments: Any, rule: Rule, **settings: Any):
        super().__init__(*arguments, **settings)
        _refuse_sde(self.use_sde)
        self.inside = Inside(rule, self.observation_space, self.action_space, scaled=True)
        if self.inside.outputs != self.mu.out_features:
            self.mu, self.log_std = (torch.nn.Linear(self.mu.in_features, self.inside.outputs) for _ in range(2))

    def forward(self, obs: Any, deterministic: bool = False) -> Tensor:
        mean, log_std, _ = self.get_action_dist_params(obs)
        if self.inside.map == "projection":
            proposed = self.action_dist.actions_from_params(mean, log_std, deterministic=deterministic)
            return self.inside.projected(proposed, obs)
        return self.inside.gaussian.mode(mean, obs) if deterministic else self._drawn(mean, log_std, obs)[0]

    def action_log_prob(self, obs: Any) -> tuple[Tensor, Tensor]:
        mean, log_std, _ = self.get_action_dist_params(obs)
        if self.inside.map == "projection":
            proposed, log_prob = self.action_dist.log_prob_from_params(mean, log_std)
            return self.inside.projected(proposed, obs), log_prob
        return self._drawn(mean, log_std, obs)

    def _drawn(self, mean: Tensor, log_std: Tensor, obs: Any) -> tuple[Tensor, Tensor]:
        return self.inside.gaussian.sample(mean, log_std, obs)


class FeasibleTD3Actor(TD3Actor):
    """TD3's actor with a map into the set after tanh; exploration goes through the map, too."""

    def __init__(self, *arguments: Any, rule: Rule, **settings: Any):
        super().__init__(*arguments, **settings)
        self.inside = Inside(rule, self.observation_space, self.action_space, scaled=True)
        if self.inside.outputs != self.action_space.shape[0]:
            layers = create_mlp(
                self.features_dim, self.inside.outputs, self.net_arch, self.activation_fn, squash_output=True
            )
            self.mu = torch.nn.Sequential(*layers)

    def forward(self, obs: Any) -> Tensor:
        return self.inside.action(self.mu(self.extract_features(obs, self.features_extractor)), obs)

    def explored(self, obs: Any) -> Tensor:
        output = self.mu(self.extract_features(obs, self.features_extractor))
        noisy = output + self.inside.noise * torch.randn_like(output)
        return self.inside.action(noisy.clamp(-1, 1) if self.inside.map == "projection" else noisy, obs)


class _OfTheSpace:
    """Observations that are normalised are refused; dicts get the extractor that Stable-Baselines3 has for them."""

    rule: Rule

    def __init__(self, observation_space: gym.Space, action_space: gym.Space, *arguments: Any, **settings: Any):
        check_raw(environment_of_the_maker(), self.rule.constraint)
        if isinstance(observation_space, gym.spaces.Dict):
            settings.setdefault("features_extractor_class", CombinedExtractor)
        super().__init__(observation_space, action_space, *arguments, **settings)  # pyright: ignore[reportCallIssue]


class FeasibleSACPolicy(_OfTheSpace, SACPolicy):
    """SAC's networks with actions in the feasible set."""

    def make_actor(self, features_extractor: BaseFeaturesExtractor | None = None) -> SACActor:
        settings = self._update_features_extractor(self.actor_kwargs, features_extractor)
        return FeasibleSACActor(rule=self.rule, **settings).to(self.device)


class FeasibleTD3Policy(_OfTheSpace, TD3Policy):
    """TD3's networks with actions in the feasible set."""

    def make_actor(self, features_extractor: BaseFeaturesExtractor | None = None) -> TD3Actor:
        settings = self._update_features_extractor(self.actor_kwargs, features_extractor)
        return FeasibleTD3Actor(rule=self.rule, **settings).to(self.device)

    def _predict(self, observation: Any, deterministic: bool = False) -> Tensor:
        return self.actor(observation) if deterministic or not self.rule.noise else self.actor.explored(observation)


class MappedDistribution(DiagGaussianDistribution):
    """The distribution of a map of a Gaussian, at the observations that it was last told of."""

    def __init__(self, gaussian: MappedGaussian, outputs: int):
        super().__init__(outputs)
        self.gaussian, self.obs = gaussian, None

    def proba_distribution(self, mean_actions: Tensor, log_std: Tensor) -> "MappedDistribution":
        self.mean, self.log_std = mean_actions, log_std
        return self

    def sample(self) -> Tensor:
        return self.gaussian.sample(self.mean, self.log_std, self.obs)[0]

    def mode(self) -> Tensor:
        return self.gaussian.mode(self.mean, self.obs)

    def log_prob(self, actions: Tensor) -> Tensor:
        """Of given actions, as the buffer has them: ratios of an unchanged policy are 1 to the last bit."""
        return self.gaussian.log_prob(actions, self.mean, self.log_std, self.obs)

    def entropy(self) -> None:
        """Unknown in closed form: PPO then estimates it from the log-densities of its samples."""


class FeasiblePPOPolicy(_OfTheSpace, ActorCriticPolicy):
    """PPO's networks with actions in the feasible set.

    With `map="projection"` the buffer keeps samples in units of the box, of which densities are, and what they become
    is looked up in `unscale_action`, which Stable-Baselines3 calls with them before it executes anything.
    """

    def _build(self, lr_schedule: Any) -> None:
        _refuse_sde(self.use_sde)
        self.inside = Inside(self.rule, self.observation_space, self.action_space, scaled=False)
        self._latest: tuple[NDArray, NDArray] | None = None
        if self.rule.map == "projection":
            self._squash_output = True
        else:
            self.action_dist = MappedDistribution(self.inside.gaussian, self.inside.outputs)
        super()._build(lr_schedule)

    def forward(self, obs: Any, deterministic: bool = False) -> tuple[Tensor, Tensor, Tensor]:
        self._see(obs)
        actions, values, log_prob = super().forward(obs, deterministic)
        self._keep(actions, obs)
        return actions, values, log_prob

    def evaluate_actions(self, obs: Any, actions: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        self._see(obs)
        return super().evaluate_actions(obs, actions)

    def get_distribution(self, obs: Any) -> Distribution:
        self._see(obs)
        return super().get_distribution(obs)

    def _predict(self, observation: Any, deterministic: bool = False) -> Tensor:
        actions = super()._predict(observation, deterministic)
        self._keep(actions, observation)
        return actions

    def unscale_action(self, scaled_action: NDArray) -> NDArray:
        """What the latest samples become in the environment's units; of others nothing is known."""
        if self._latest is None or not np.array_equal(self._latest[0], scaled_action):
            raise ValueError("unscale_action: with map='projection' only the latest samples of the policy are known.")
        return super().unscale_action(self._latest[1])

    def _see(self, obs: Any) -> None:
        if isinstance(self.action_dist, MappedDistribution):
            self.action_dist.obs = obs

    def _keep(self, samples: Tensor, obs: Any) -> None:
        if self.rule.map == "projection":
            with torch.no_grad():
                inside = self.inside.projected(samples.clamp(-1, 1), obs)
            self._latest = samples.detach().cpu().numpy(), inside.cpu().numpy()


def _refuse_sde(use_sde: bool) -> None:
    if use_sde:
        raise ValueError("constrained_policy: use_sde has no density after a map; leave it out.")


POLICIES: dict[str, type[BasePolicy]] = {
    "SAC": FeasibleSACPolicy,
    "TD3": FeasibleTD3Policy,
    "PPO": FeasiblePPOPolicy,
}
