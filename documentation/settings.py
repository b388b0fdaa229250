"""Tables of the settings of each method: what they mean, what they are by default, and what they are on each task."""

from collections.abc import Mapping
from functools import cache

import gymnasium as gym

import feasible
from feasible.algorithms.base import Algorithm, Spec
from feasible.algorithms.description import meanings, rule_settings, settings_of
from feasible.algorithms.spec import spec_of
from feasible.catalogue.registry import METHODS, PAPERS, algorithm_of
from feasible.catalogue.task import Task

TABLE = METHODS["fwpo"].sets
AGENTS: Mapping[str, str] = {
    "nfwpo": "NFWPO",
    "ddpg-projection": "DDPGProjection",
    "ddpg-shaping": "DDPGShaping",
    "ddpg-optlayer": "DDPGOptLayer",
    "projected-gradient": "ProjectedGradient",
    "td3-projection": "TD3",
    "sac-projection": "SAC",
    "ppo-projection": "PPO",
    "trpo-projection": "TRPO",
    "focops-projection": "FOCOPS",
}
"""The agents for environments of one's own, by method; `fs.agent` has the others."""


def settings_table(method: str) -> str:
    """The settings of a method: meaning, default, and those of its tasks.

    A task's cell is the value of the first preset that has the method, then those of the others where they differ.
    """
    default = default_algorithm(method)
    tasks = {f"`{task.name}`": presets_of(task, method) for task in PAPERS.values()}
    presets = {name: found for name, found in tasks.items() if found}
    defaults = {f"`fs.{AGENTS.get(method, 'agent')}`": values(default)} if default else {}
    what = meanings(example(method))
    names = [*defaults, *presets]
    lines = [f"| setting | what it is | {' | '.join(names)} |", "|---|---|" + "---|" * len(names)]
    for name in values(example(method)):
        cells = [_default(name, known[name]) for known in defaults.values()]
        cells += [_of_presets({preset: known[name] for preset, known in found.items()}) for found in presets.values()]
        lines.append(f"| `{name}` | {what[name].rstrip('.')} | {' | '.join(cells)} |")
    return "\n".join(lines)


def differences_table(methods: str) -> str:
    """Rows are methods: what they have otherwise than the first of them, by default and in the preset `field`."""
    first, *others = methods.split()
    base = values(_known(first))
    lines = [f"| method | otherwise than `{first}` |", "|---|---|"]
    for method in others:
        algorithm = _known(method)
        own, rule = values(algorithm), getattr(algorithm, "rule", None)
        words = [f"`{name}` {_text(own[name])}{_elsewhere(method, name, own[name])}" for name in own]
        words = [word for word, name in zip(words, own, strict=True) if own[name] != base.get(name)]
        if type(rule) is not type(getattr(_known(first), "rule", None)):
            words = [f"rule `{type(rule).__name__}`", *words]
        lines.append(f"| `{method}` | {', '.join(words)} |")
    return "\n".join(lines)


@cache
def presets_of(task: Task, method: str) -> dict[str, dict[str, object]]:
    """The settings of a method in each preset of a task that has it."""
    return {name: values(algorithm_of(task, method, name)) for name in task.presets if method in task.preset(name)}


@cache
def example(method: str) -> Algorithm:
    """The method in the first preset that has it, else by default."""
    found = ((task, name) for task in PAPERS.values() for name in task.presets if method in task.preset(name))
    task, name = next(found, (None, None))
    return _known(method) if task is None else algorithm_of(task, method, name)


def values(algorithm: Algorithm) -> dict[str, object]:
    """The settings as `--set` and the agents' keywords name them, those of the actor rule first."""
    named = rule_settings(getattr(algorithm, "rule", None))
    return dict(sorted(settings_of(algorithm).items(), key=lambda item: item[0] not in named))


@cache
def default_algorithm(method: str) -> Algorithm | None:
    """What the agent of a method trains unless it is told otherwise; None for tables, which have no defaults."""
    return None if METHODS[method].sets == TABLE else METHODS[method].make(_pendulum())


@cache
def _pendulum() -> Spec:
    return spec_of(feasible.constrain(gym.make("Pendulum-v1"), lambda obs: feasible.sets.Box([-1.0], [1.0])))


def title(method: str) -> str:
    return METHODS[method].title


def _known(method: str) -> Algorithm:
    algorithm = default_algorithm(method)
    assert algorithm is not None, method
    return algorithm


def _default(name: str, value: object) -> str:
    if name == "target_noise" and value:
        return "a fifth of half the box"
    return "a tenth of half the box" if name in ("noise", "projected_gradient_step") else _text(value)


def _of_presets(found: Mapping[str, object]) -> str:
    first, *others = found.items()
    return "; ".join([_text(first[1]), *(f"{name} {_text(value)}" for name, value in others if value != first[1])])


def _elsewhere(method: str, name: str, default: object) -> str:
    """On which tasks the preset `field` has another value."""
    tasks = {task.name: presets_of(task, method).get("field", {}) for task in PAPERS.values()}
    other = [f"`{task}` {_text(known[name])}" for task, known in tasks.items() if known.get(name, default) != default]
    return f" ({', '.join(other)})" if other else ""


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
