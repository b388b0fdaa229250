"""Methods by name: the two presets as algorithms, and errors that say which name may be meant."""

from dataclasses import fields

import jax.numpy as jnp
import pytest

import feasible
from feasible.agents import Agent
from feasible.algorithms.actor_rules import FrankWolfe, PolicyGradient, ThroughProjection
from feasible.algorithms.base import Spec
from feasible.algorithms.ddpg import DDPG
from feasible.algorithms.focops import FOCOPS
from feasible.algorithms.fwpo_critic import BikeTable
from feasible.algorithms.on_policy import OnPolicy
from feasible.algorithms.sac import SAC
from feasible.catalogue import registry
from feasible.catalogue.registry import METHODS, PAPERS, TASKS, algorithm_of, find_method, preset_for
from feasible.sets import Box

NETWORKED = ["reacher", "halfcheetah", "nsfnet", "bss-5"]
# Table 3 of the paper, columns as above.
FRANK_WOLFE_STEP = [0.05, 0.01, 0.05, 0.05]
REPLAY_SIZE = [10**4, 10**6, 5 * 10**4, 10**6]
WARMUP = [1000, 10000, 10000, 10000]
NOISE = [0.1, 0.1, 3, 5]
SHAPING = [1 / 7, 3, 1 / 4, 4]
BATCH = {"nfwpo": 16, "ddpg-projection": 64, "ddpg-shaping": 64, "ddpg-optlayer": 16}
RULES = {
    "nfwpo": FrankWolfe,
    "ddpg-projection": PolicyGradient,
    "ddpg-shaping": PolicyGradient,
    "ddpg-optlayer": ThroughProjection,
}


TABLES = {"fwpo", "tabular-projection", "tabular-shaping"}
BLIND = {*TABLES, *(name for name in METHODS if name.startswith(("ppo-", "trpo-", "focops-")))}
"""Methods without critics of actions."""
AGENTS: dict[str, type[Agent]] = {
    "nfwpo": feasible.NFWPO,
    "ddpg-projection": feasible.DDPGProjection,
    "ddpg-shaping": feasible.DDPGShaping,
    "ddpg-optlayer": feasible.DDPGOptLayer,
    "projected-gradient": feasible.ProjectedGradient,
    "sac-projection": feasible.SAC,
    "td3-projection": feasible.TD3,
    "ppo-projection": feasible.PPO,
    "trpo-projection": feasible.TRPO,
    "focops-projection": feasible.FOCOPS,
}


def ddpg(task: str, algo: str, preset: str) -> DDPG:
    algorithm = algorithm_of(TASKS[task], algo, preset)
    assert isinstance(algorithm, DDPG)
    return algorithm


@pytest.mark.parametrize("algo", BATCH)
@pytest.mark.parametrize("column", range(4))
def test_paper_is_table_3(column: int, algo: str) -> None:
    task = NETWORKED[column]
    algorithm = ddpg(task, algo, "paper")
    assert type(algorithm.rule) is RULES[algo]
    if isinstance(algorithm.rule, FrankWolfe):
        assert algorithm.rule.step == FRANK_WOLFE_STEP[column]
    assert algorithm.shaping == (SHAPING[column] if algo == "ddpg-shaping" else 0)
    assert algorithm.actor_rate == 0.0001
    assert algorithm.critic_rate == 0.001
    assert algorithm.discount == 0.99
    assert algorithm.target_ratio == 0.001
    assert algorithm.replay_size == REPLAY_SIZE[column]
    assert algorithm.warmup == WARMUP[column]
    assert algorithm.noise == NOISE[column]
    assert algorithm.batch_size == BATCH[algo]
    # The appendix: 400 and 300 ReLUs; tanh for MuJoCo and ReLU elsewhere; the actor every 50 steps on NSFNET, and
    # that of OptLayer everywhere.
    assert algorithm.hidden_layers == (400, 300)
    assert (algorithm.actor_hidden, algorithm.critic_hidden) == ("relu", "relu")
    assert algorithm.output == ("tanh" if task in ("reacher", "halfcheetah") else "relu")
    assert algorithm.actor_interval == (50 if task == "nsfnet" or algo == "ddpg-optlayer" else 1)


@pytest.mark.parametrize("algo", ["fwpo", "tabular-projection", "tabular-shaping"])
@pytest.mark.parametrize("preset", ["paper", "fair"])
def test_paper_and_fair_are_table_4_for_tables(algo: str, preset: str) -> None:
    algorithm = algorithm_of(TASKS["bss-3"], algo, preset)
    assert isinstance(algorithm, BikeTable)
    if isinstance(algorithm.rule, FrankWolfe):
        assert (algo, algorithm.rule.step, algorithm.table_rate) == ("fwpo", 0.05, None)
    else:
        assert algorithm.table_rate == 0.001
    assert algorithm.shaping == (1 if algo == "tabular-shaping" else 0)
    assert algorithm.hidden_layers == (30,)
    assert algorithm.critic_rate == 0.002
    assert algorithm.discount == 0.9
    assert algorithm.target_ratio == 0.01
    assert algorithm.target_interval == 100
    assert algorithm.replay_size == 10**4
    assert algorithm.warmup == 10000
    assert algorithm.epsilon == 0.1
    assert algorithm.batch_size == 64


@pytest.mark.parametrize("task", [*NETWORKED, "halfcheetah-box"])
def test_fair_treats_every_method_of_a_task_alike(task: str) -> None:
    algorithms = [ddpg(task, algo, "fair") for algo in BATCH]
    # What makes a method what it is may differ, nothing else.
    common = [f.name for f in fields(DDPG) if f.name not in ("rule", "shaping")]
    for algorithm in algorithms[1:]:
        assert {n: getattr(algorithm, n) for n in common} == {n: getattr(algorithms[0], n) for n in common}
    first = algorithms[0]
    assert first.batch_size == 64
    assert first.intervals == dict.fromkeys(("actor", "critic"), 50 if task == "nsfnet" else 1)
    # And the rest is the paper's.
    paper = ddpg(task, "nfwpo", "paper")
    for name in ("rule", "noise", "warmup", "replay_size", "discount", "actor_rate", "critic_rate", "target_ratio"):
        assert getattr(first, name) == getattr(paper, name)


def test_the_other_methods_are_those_of_their_sources() -> None:
    """SAC of Spinning Up, ChainerRL's PPO and TRPO, and FOCOPS, as the authors of the paper set them."""
    for name, task in PAPERS.items():
        paper = task.preset("paper")
        if name == "bss-3":
            assert set(paper) == {"fwpo", "tabular-projection", "tabular-shaping"}
            continue
        soft = paper["sac-projection"]
        assert isinstance(soft, SAC)
        assert (soft.warmup, soft.learning_starts, soft.interval, soft.updates) == (10_000, 1_000, 50, 50)
        assert (soft.batch_size, soft.rate) == (16 if name == "nsfnet" else 100, 5e-4)
        for algo, horizon in (("ppo-projection", 2048), ("trpo-projection", 5000)):
            algorithm = paper[algo]
            assert isinstance(algorithm, OnPolicy)
            assert (algorithm.horizon, algorithm.minibatch) == (horizon, 64)
            assert (algorithm.discount, algorithm.trace) == (0.995, 0.97)
        focops = paper["focops-projection"]
        assert isinstance(focops, FOCOPS)
        assert (focops.discount, focops.trace) == (0.99, 0.95)
        assert (focops.horizon, focops.multiplier_rate) == ((64, 0.01) if name == "reacher" else (1024, 0.001))


def test_defaults_are_the_same_for_agents_and_for_the_command_line() -> None:
    env = registry.make("reacher")
    for name, agent in AGENTS.items():
        assert algorithm_of(TASKS["reacher"], name, "default") == agent(env).algorithm  # pyright: ignore[reportCallIssue]


@pytest.mark.parametrize("task", ["nsfnet", "reacher"])
def test_critics_see_the_box_by_default_and_actions_in_the_presets_of_others(task: str) -> None:
    """The paper and the field's suites have critics that see actions as they are; all learners that have a critic of
    actions see the same units by default."""
    known = registry.find_task(task)
    methods = [name for name, method in METHODS.items() if name not in BLIND]
    found = {name: algorithm_of(known, name, "default") for name in methods}
    assert {getattr(algorithm, "critic_units", None) for algorithm in found.values()} == {"box"}
    presets = [algorithm for preset in known.presets for algorithm in known.preset(preset).values()]
    assert {getattr(algorithm, "critic_units", "action") for algorithm in presets} == {"action"}


def test_tables_have_no_defaults() -> None:
    with pytest.raises(ValueError, match="algo: tabular methods have no defaults"):
        algorithm_of(TASKS["bss-3"], "fwpo", "default")


def test_fair_rollouts_are_alike_too() -> None:
    for name, task in PAPERS.items():
        methods = [algo for algo in task.preset("paper") if algo.split("-")[0] in ("ppo", "trpo", "focops")]
        built = [algorithm_of(task, algo, "fair") for algo in methods]
        common = ("horizon", "minibatch", "discount", "trace", "hidden_layers", "hidden", "normalised")
        alike = {tuple(getattr(algorithm, field) for field in common) for algorithm in built}
        assert alike == (set() if name == "bss-3" else {(2048, 64, 0.99, 0.95, (64, 64), "tanh", True)})


def test_clipped_actions_are_of_the_task_with_a_box() -> None:
    assert getattr(algorithm_of(TASKS["halfcheetah-box"], "trpo-capg", "paper"), "capg")  # noqa: B009
    with pytest.raises(
        ValueError, match="'ppo-capg' is not in the preset 'paper' of the task 'halfcheetah', which has"
    ):
        algorithm_of(TASKS["halfcheetah"], "ppo-capg", "paper")


def test_changes_are_fields_of_the_algorithm() -> None:
    algorithm = algorithm_of(TASKS["reacher"], "nfwpo", "fair", {"batch_size": 8, "hidden_layers": (32, 32)})
    assert isinstance(algorithm, DDPG)
    assert (algorithm.batch_size, algorithm.hidden_layers, algorithm.discount) == (8, (32, 32), 0.99)


@pytest.mark.parametrize(("wrong", "right"), [("nfpwo", "nfwpo"), ("DDPG-Shape", "ddpg-shaping"), ("fwop", "fwpo")])
def test_an_unknown_method_names_the_nearest(wrong: str, right: str) -> None:
    with pytest.raises(ValueError, match=f"no algorithm '{wrong}'; did you mean '{right}'"):
        find_method(wrong)


@pytest.mark.parametrize(("wrong", "right"), [("batchsize", "batch_size"), ("Discounts", "discount")])
def test_an_unknown_setting_names_the_nearest(wrong: str, right: str) -> None:
    with pytest.raises(ValueError, match=f"nfwpo: There is no hyper-parameter '{wrong}'; did you mean '{right}'"):
        algorithm_of(TASKS["reacher"], "nfwpo", "paper", {wrong: 8})


def test_a_method_of_other_tasks_and_an_unknown_preset_are_refused() -> None:
    with pytest.raises(ValueError, match="'fwpo' is not in the preset 'paper' of the task 'reacher', which has nfwpo"):
        algorithm_of(TASKS["reacher"], "fwpo", "paper")
    with pytest.raises(ValueError, match="the task 'reacher' has no preset 'best'; it has paper, fair, field, default"):
        algorithm_of(TASKS["reacher"], "nfwpo", "best")


def test_methods_know_their_names() -> None:
    assert all(name == method.name and method.title and method.summary for name, method in METHODS.items())
    known = {algo for task in TASKS.values() for preset in task.presets for algo in task.preset(preset)}
    assert known == set(METHODS) - {"td3-projected-gradient"}  # which no suite has


def test_a_method_that_the_first_preset_does_not_have_is_of_the_next_that_does() -> None:
    assert preset_for(TASKS["halfcheetah"], "nfwpo") == "paper"
    assert preset_for(TASKS["halfcheetah"], "td3-radial") == "field"
    assert preset_for(TASKS["bss-5"], "td3-radial") == "default"
    assert algorithm_of(TASKS["halfcheetah"], "td3-radial") == algorithm_of(TASKS["halfcheetah"], "td3-radial", "field")


FIELD = {"reacher": (0.98, 200_000, 0.05), "halfcheetah": (0.99, 1_000_000, 0.01)}  # discount, replay, Frank-Wolfe step


def test_noise_of_td3_s_target_is_a_fifth_of_half_the_box_in_every_entry() -> None:
    spec = Spec(1, jnp.array([-1.0, 0.0]), jnp.array([1.0, 10.0]), lambda obs: Box([-1.0, 0.0], [1.0, 10.0]))
    made = find_method("td3-radial").make(spec)
    assert isinstance(made, DDPG)
    assert made.target_noise == pytest.approx((0.2, 1.0))
    assert made.noise == pytest.approx((0.1, 0.5))


@pytest.mark.parametrize("task", FIELD)
def test_the_fields_td3_has_the_published_settings(task: str) -> None:
    discount, replay, step = FIELD[task]
    for name in ("projection", "proposed", "optlayer", "nfwpo", "alpha", "radial"):
        algorithm = ddpg(task, f"td3-{name}", "field")
        assert (algorithm.twin, algorithm.actor_interval, algorithm.delayed_targets) == (True, 2, True)
        assert (algorithm.actor_rate, algorithm.critic_rate, algorithm.batch_size) == (1e-3, 1e-3, 100)
        assert (algorithm.target_noise, algorithm.noise, algorithm.target_ratio) == (0.2, 0.1, 0.005)
        assert (algorithm.discount, algorithm.replay_size, algorithm.warmup) == (discount, replay, 10_000)
        assert algorithm.hidden_layers == (400, 300)
        assert algorithm.map == (name if name in ("alpha", "radial") else "projection")
        assert algorithm.critic_at == ("proposed" if name == "proposed" else "executed")
        assert isinstance(algorithm.rule, RULES.get(f"ddpg-{name}", RULES.get(name, PolicyGradient)))
        if isinstance(algorithm.rule, FrankWolfe):
            assert algorithm.rule.step == step


@pytest.mark.parametrize("name", ["sac-projection", "sac-proposed", "sac-alpha", "sac-radial", "sac-truncated"])
def test_the_fields_sac_has_the_published_settings(name: str) -> None:
    cheetah, reacher = (algorithm_of(TASKS[task], name, "field") for task in ("halfcheetah", "reacher"))
    assert isinstance(cheetah, SAC)
    assert isinstance(reacher, SAC)
    assert (cheetah.rate, cheetah.batch_size, cheetah.target_ratio, cheetah.hidden_layers) == (
        3e-4,
        256,
        5e-3,
        (256,) * 2,
    )
    assert (reacher.rate, reacher.discount, reacher.target_ratio, reacher.replay_size) == (7.3e-4, 0.98, 0.02, 300_000)
    assert cheetah.entropy_target == reacher.entropy_target == "auto"


def test_settings_that_do_not_fit_the_task_are_refused_before_a_run_begins() -> None:
    with pytest.raises(ValueError, match="DDPG: noise must be one number or 2, one for each action, not 3"):
        algorithm_of(TASKS["reacher"], "nfwpo", "default", {"noise": [0.1, 0.2, 0.3]})
