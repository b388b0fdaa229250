"""Tables of the settings of each method: what they mean, what they are by default, and what they are on each task."""

from collections.abc import Mapping

import gymnasium as gym

import feasible
from feasible.agents import Agent
from feasible.algorithms.base import Algorithm
from feasible.algorithms.description import rule_settings, settings_of
from feasible.catalogue.registry import METHODS, TASKS, algorithm_of
from feasible.constraints import ConstrainedEnv

AGENTS: Mapping[str, str] = {
    "nfwpo": "NFWPO",
    "ddpg-projection": "DDPGProjection",
    "ddpg-shaping": "DDPGShaping",
    "ddpg-optlayer": "DDPGOptLayer",
    "projected-gradient": "ProjectedGradient",
    "sac-projection": "SAC",
    "ppo-projection": "PPO",
    "trpo-projection": "TRPO",
    "focops-projection": "FOCOPS",
}
"""The agents for environments of one's own, by method."""

_SHARED: Mapping[str, str] = {
    "frank_wolfe_step": "α: how far a reference action goes from the projection towards the linear maximiser",
    "frank_wolfe_by": "what the step is: `constant`, by the state's `gap`, or by a line `search` on the critic",
    "frank_wolfe_inner": "Frank-Wolfe steps from the projection to the reference action",
    "frank_wolfe_away": "whether those after the first may also be away steps",
    "frank_wolfe_inside": "weight of the way from the proposal back to its projection",
    "projected_gradient_step": "length of the gradient step at a state of mean gradient, in units of the action",
    "projected_gradient_inside": "weight of the way from the proposal back to its projection",
    "projected_gradient_by": "what a state moves by: its `gradient`, in units of the batch's mean, or its `direction`",
    "projected_gradient_margin": "share by which the set is shrunk towards its centre for reference actions",
    "through_projection_penalty": "weight of the squared distance to the projection, in mean norms of the gradient",
    "through_projection_project_target": "whether the critic's target takes the projection of the target's output",
    "noise": "standard deviation of the Gaussian exploration, in units of the action",
    "shaping": "weight of the distance to the projection, taken off the reward",
    "warmup": "first steps, with actions drawn from the feasible sets",
    "batch_size": "transitions in a batch",
    "replay_size": "transitions kept",
    "discount": "γ",
    "actor_rate": "Adam's rate of the actor",
    "critic_rate": "Adam's rate of the critic",
    "target_ratio": "τ: share of the online network that enters its target at each update",
    "actor_interval": "steps between updates of the actor",
    "critic_interval": "steps between updates of the critic",
    "hidden_layers": "units of the hidden layers",
    "actor_hidden": "activation of the actor's hidden layers",
    "critic_hidden": "activation of the critic's hidden layers",
    "output": "activation of the actor's output; tanh spans the action box",
    "twin": "two critics, of which the target takes the lesser value",
    "averaged": "the policy in use is the target actor, an average of the actor's weights",
    "target_noise": "standard deviation of the noise on the target's action, clipped at 2.5 of it",
    "copies": "copies of the environment that are stepped as one",
}
_SAC: Mapping[str, str] = {
    "entropy_weight": "weight of the entropy, or its start where it is tuned",
    "entropy_target": "entropy that the weight is tuned to; none: the weight is fixed",
    "learning_starts": "steps before the first update",
    "interval": "steps between updates",
    "updates": "batches learned from at each update",
    "rate": "Adam's rate of all networks",
    "hidden": "activation of the hidden layers",
}
_ROLLOUTS: Mapping[str, str] = {
    "horizon": "steps between updates, those of all copies together",
    "minibatch": "steps in a minibatch",
    "epochs": "passes over the rollout at each update",
    "trace": "λ of the generalised advantage estimates",
    "rate": "Adam's rate of policy and critics",
    "hidden": "activation of the hidden layers",
    "log_std": "logarithm of the first policy's spread, in units of half the action box",
    "bounded": "whether the policy's mean goes through tanh",
    "normalised": "whether networks see observations by their running mean and deviation",
    "capg": "clipped-action policy gradient, for boxes",
    "warmup": "must be 0: rollouts are of the policy from the first step on",
}
_BY_KIND: Mapping[str, Mapping[str, str]] = {
    "DDPG": {},
    "SAC": _SAC,
    "PPO": {
        **_ROLLOUTS,
        "clip": "ratios further than this from one are not pushed further away",
        "entropy_weight": "weight of the entropy in the loss",
    },
    "TRPO": {
        **_ROLLOUTS,
        "epochs": "passes of the critic over the rollout at each update",
        "rate": "Adam's rate of the critic; the policy's step has its length from the divergence",
        "divergence": "bound on the mean KL divergence of an update",
        "damping": "added to the diagonal of the Fisher matrix",
        "products": "iterations of conjugate gradient",
        "halvings": "halvings of a step before it is given up",
    },
    "FOCOPS": {
        **_ROLLOUTS,
        "epochs": "passes over the rollout at each update, at most",
        "temperature": "λ of its paper: the larger, the nearer the policy stays to the one that acted",
        "divergence": "δ: passes end once the mean KL divergence is larger",
        "reach": "η: observations at which the policy has come further than this are left alone",
        "multiplier_rate": "rate of the cost's multiplier ν",
        "multiplier_limit": "largest ν",
        "decay": "weight of the critics' squared parameters",
    },
    "BikeTable": {
        "bikes": "bikes in all",
        "low": "least at a station in a cell's allocation",
        "high": "most at a station in a cell's allocation",
        "stations": "stations",
        "table_rate": "Adam's rate on the table; none: cells move by the rule's direction itself",
        "epsilon": "probability of a uniform allocation as proposal",
        "table_interval": "steps between updates of the table",
        "target_interval": "steps between copies of the table to the target table",
        "hidden_layers": "units of the critic's hidden layers",
    },
}


def settings_table(method: str) -> str:
    """The settings of a method: meaning, default of its agent, and the presets of its tasks (fair where it differs)."""
    tasks = [task for task in TASKS.values() if method in task.preset("paper")]
    paper = [values(algorithm_of(task, method, "paper")) for task in tasks]
    fair = [values(algorithm_of(task, method, "fair")) for task in tasks]
    defaults = {f"`fs.{AGENTS[method]}`": values(default_algorithm(method))} if method in AGENTS else {}
    meanings = {**_SHARED, **_BY_KIND[type(algorithm_of(tasks[0], method, "paper")).__name__]}
    names = [*defaults, *(f"`{task.name}`" for task in tasks)]
    lines = [f"| setting | what it is | {' | '.join(names)} |", "|---|---|" + "---|" * len(names)]
    for name in paper[0]:
        cells = [_default(name, known[name]) for known in defaults.values()]
        cells += [_both(one[name], other[name]) for one, other in zip(paper, fair, strict=True)]
        lines.append(f"| `{name}` | {meanings[name]} | {' | '.join(cells)} |")
    return "\n".join(lines)


def values(algorithm: Algorithm) -> dict[str, object]:
    """The settings as `--set` and the agents' keywords name them, those of the actor rule first."""
    named = rule_settings(getattr(algorithm, "rule", None))
    return dict(sorted(settings_of(algorithm).items(), key=lambda item: item[0] not in named))


def default_algorithm(method: str) -> Algorithm:
    """What the agent of a method trains unless it is told otherwise."""
    env = feasible.constrain(gym.make("Pendulum-v1"), lambda obs: feasible.sets.Box([-1.0], [1.0]))
    assert isinstance(env, ConstrainedEnv)
    make: type[Agent] = getattr(feasible, AGENTS[method])
    return make(env).algorithm  # pyright: ignore[reportCallIssue]


def title(method: str) -> str:
    return METHODS[method].title


def _default(name: str, value: object) -> str:
    return "a tenth of half the box" if name in ("noise", "projected_gradient_step") else _text(value)


def _both(paper: object, fair: object) -> str:
    return _text(paper) if paper == fair else f"{_text(paper)}; fair {_text(fair)}"


def _text(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.3g}"
    if isinstance(value, tuple):
        return "-".join(str(item) for item in value)
    return str(value)
