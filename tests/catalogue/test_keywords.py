"""Settings are typed, documented keywords: names, types, defaults and meanings are those of the algorithm."""

import inspect
import pydoc
from types import UnionType
from typing import get_args, get_origin, get_overloads, get_type_hints

import gymnasium as gym
import pytest

import feasible as fs
from feasible.agents import Agent
from feasible.algorithms import settings
from feasible.algorithms.base import Algorithm
from feasible.algorithms.description import meanings, setting_types, settings_of
from feasible.catalogue.keywords import ByTheBox
from feasible.catalogue.recommended import ELSEWHERE
from feasible.catalogue.registry import METHODS, RECOMMENDED, TASKS, algorithm_of, preset_for
from feasible.catalogue.task import DEFAULT
from feasible.constraints import ConstrainedEnv

AGENTS: list[type[Agent]] = [
    fs.NFWPO,
    fs.DDPGProjection,
    fs.DDPGShaping,
    fs.DDPGOptLayer,
    fs.ProjectedGradient,
    fs.SAC,
    fs.PPO,
    fs.TRPO,
    fs.FOCOPS,
]
BY_THE_BOX = {"noise", "projected_gradient_step"}


@pytest.fixture(scope="module")
def env() -> ConstrainedEnv:
    """A box that is not the unit one."""
    return fs.constrain(gym.make("Pendulum-v1"), lambda obs: fs.sets.Box([-1.0], [1.0]))


def default(agent: type[Agent], env: ConstrainedEnv) -> Algorithm:
    return fs.agent(agent.method, env).algorithm  # pyright: ignore[reportAttributeAccessIssue]


def with_lists(hint: object) -> object:
    """The type of a field, with lists wherever it has tuples."""
    if isinstance(hint, UnionType):
        first, *others = map(with_lists, get_args(hint))
        for other in others:
            first = first | other  # pyright: ignore[reportOperatorIssue]
        return first
    if get_origin(hint) is tuple:
        (item, _) = get_args(hint)
        return tuple[item, ...] | list[item]
    return hint


@pytest.mark.parametrize("agent", AGENTS)
def test_the_types_are_those_of_the_algorithm_s_fields(agent: type[Agent], env: ConstrainedEnv) -> None:
    (kind,) = get_args(get_type_hints(agent.__init__)["settings"])
    fields = {name: with_lists(hint) for name, hint in setting_types(default(agent, env)).items()}
    assert get_type_hints(kind) == fields
    assert not kind.__required_keys__


def test_every_method_by_name_has_the_types_of_its_algorithm(env: ConstrainedEnv) -> None:
    found = {}
    for overload in get_overloads(fs.agent):
        hints = get_type_hints(overload)
        if hints["method"] is not str:
            (kind,) = get_args(hints["settings"])
            found |= dict.fromkeys(get_args(hints["method"]), kind)
    assert found.pop(RECOMMENDED) is found[ELSEWHERE.algo]
    assert set(found) == {name for name, method in METHODS.items() if method.sets != "allocations of bikes"}
    for name, kind in found.items():
        assert set(get_type_hints(kind)) == set(settings_of(METHODS[name].make(fs.agent("sac-projection", env)._spec)))


def test_no_typed_settings_are_of_nothing() -> None:
    kinds = {name for name, value in vars(settings).items() if name.endswith("Settings") and value}
    typed = [get_type_hints(overload)["settings"] for overload in get_overloads(fs.agent)]
    used = {kind.__name__ for hint in typed for kind in get_args(hint)}
    assert kinds - used == {"SoftSettings", "RolloutSettings", "OnPolicySettings"}  # what several share


@pytest.mark.parametrize("agent", AGENTS)
def test_the_signature_has_every_setting_with_its_default(agent: type[Agent], env: ConstrainedEnv) -> None:
    known, shown = settings_of(default(agent, env)), dict(inspect.signature(agent).parameters)
    assert list(shown)[:2] == ["env", "seed"]
    assert list(shown)[2:] == list(known)
    for name, value in known.items():
        assert shown[name].kind is inspect.Parameter.KEYWORD_ONLY
        if name in BY_THE_BOX:
            assert isinstance(shown[name].default, ByTheBox)
        else:
            assert shown[name].default == value


@pytest.mark.parametrize("agent", AGENTS)
def test_help_says_what_every_setting_is(agent: type[Agent], env: ConstrainedEnv) -> None:
    lines = [line.lstrip(" |").rstrip() for line in pydoc.plain(pydoc.render_doc(agent)).splitlines()]
    signature = inspect.signature(agent)
    for name, meaning in meanings(default(agent, env)).items():
        assert lines[lines.index(str(signature.parameters[name])) + 1] == meaning


@pytest.mark.parametrize("name", METHODS)
def test_every_setting_has_one_sentence(name: str) -> None:
    task = next((task for task in TASKS.values() if preset_for(task, name) != DEFAULT), TASKS["reacher"])
    algorithm = algorithm_of(task, name)
    known = meanings(algorithm)
    assert set(known) == set(settings_of(algorithm))
    assert all(text.endswith(".") for text in known.values())


def test_an_overridden_field_may_mean_something_else(env: ConstrainedEnv) -> None:
    assert meanings(default(fs.PPO, env))["rate"] == "Adam's rate of policy and critics."
    assert meanings(default(fs.TRPO, env))["rate"].startswith("Adam's rate of the critic;")
    assert meanings(default(fs.FOCOPS, env))["log_std"] == meanings(default(fs.PPO, env))["log_std"]


def test_a_class_of_a_user_s_is_documented_as_the_one_it_derives_from(env: ConstrainedEnv) -> None:
    class Mine(fs.NFWPO):
        """My own."""

    assert inspect.signature(Mine) == inspect.signature(fs.NFWPO)
    assert Mine.__doc__ == "My own."
    assert Mine(env, batch_size=8).algorithm == fs.NFWPO(env, batch_size=8).algorithm
