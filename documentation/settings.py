"""Tables of the settings of each method: what they mean, what they are by default, and what they are on each task."""

from collections.abc import Mapping

import gymnasium as gym

import feasible
from feasible.agents import Agent
from feasible.algorithms.base import Algorithm
from feasible.algorithms.description import meanings, rule_settings, settings_of
from feasible.catalogue.registry import METHODS, PAPERS, algorithm_of
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


def settings_table(method: str) -> str:
    """The settings of a method: meaning, default of its agent, and the presets of its tasks (fair where it differs)."""
    tasks = [task for task in PAPERS.values() if method in task.preset("paper")]
    paper = [values(algorithm_of(task, method, "paper")) for task in tasks]
    fair = [values(algorithm_of(task, method, "fair")) for task in tasks]
    defaults = {f"`fs.{AGENTS[method]}`": values(default_algorithm(method))} if method in AGENTS else {}
    what = meanings(algorithm_of(tasks[0], method, "paper"))
    names = [*defaults, *(f"`{task.name}`" for task in tasks)]
    lines = [f"| setting | what it is | {' | '.join(names)} |", "|---|---|" + "---|" * len(names)]
    for name in paper[0]:
        cells = [_default(name, known[name]) for known in defaults.values()]
        cells += [_both(one[name], other[name]) for one, other in zip(paper, fair, strict=True)]
        lines.append(f"| `{name}` | {what[name].rstrip('.')} | {' | '.join(cells)} |")
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
