"""The tasks of the field beside the paper's: their sets against formulas, their sizes, budgets and presets."""

from collections.abc import Callable

import jax
import numpy as np
import pytest

import feasible
from feasible.algorithms.aram import ARAM
from feasible.algorithms.ddpg import DDPG
from feasible.algorithms.spec import spec_of
from feasible.catalogue.registry import PAPERS, TASKS
from feasible.run.launch import configure

NAMES = [name for name in TASKS if name not in PAPERS]
HEAVY = ["nsfnet-20", "nsfnet-corrected"]  # polytopes, which take seconds to half a minute to build
OMRON = ("halfcheetah-ma", "hopper-power", "hopper-os", "walker-power", "walker-os")


def power(w: np.ndarray, a: np.ndarray) -> np.ndarray:
    return np.abs(w * a).sum(axis=1)


def drawn(w: np.ndarray, a: np.ndarray) -> np.ndarray:
    return np.maximum(w * a, 0.0).sum(axis=1)


def tip(cosine: float, a: np.ndarray) -> np.ndarray:
    """What the tip feels: of the first joint's lever the whole arm, of the second's its outer half."""
    first, both = a[:, 0], a.sum(axis=1)
    return first**2 + 2.0 * first * both * cosine + both**2


def legs(o: np.ndarray, a: np.ndarray) -> np.ndarray:
    return o[11] * a[:, 0] * np.sin(o[2:5].sum()) + o[14] * a[:, 3] * np.sin(o[5:8].sum())


# By task: what must not be positive at an observation, for rows of actions in the box, as FIELD's tables state it.
EXCESS: dict[str, Callable[[np.ndarray, np.ndarray], list[np.ndarray]]] = {
    "reacher-power-03": lambda o, a: [power(0.1 * o[6:8], a) - 0.3],
    "reacher-power-1": lambda o, a: [power(0.1 * o[6:8], a) - 1.0],
    "reacher-power-3": lambda o, a: [power(0.1 * o[6:8], a) - 3.0],
    "reacher-positive": lambda o, a: [drawn(0.1 * o[6:8], a) - 1.0],
    "reacher-tip": lambda o, a: [tip(o[1], a) - 0.05],
    "reacher-rate": lambda o, a: [np.linalg.norm(a - o[11:13], axis=1) - 0.2],
    "halfcheetah-ma": lambda o, a: [legs(o, a) - 5.0],
    "hopper-power": lambda o, a: [drawn(o[8:11], a) - 10.0],
    "hopper-speed": lambda o, a: [drawn(o[8:11], a) - 10.0],
    "hopper-os": lambda o, a: [power(o[8:11], a) - 10.0, (a**2 * np.sin(o[2:5]) ** 2).sum(axis=1) - 0.1],
    "walker-power": lambda o, a: [drawn(o[11:17], a) - 10.0],
    "walker-os": lambda o, a: [power(o[11:17], a) - 10.0, (a**2 * np.sin(o[2:8]) ** 2).sum(axis=1) - 0.1],
    "ant-ball": lambda o, a: [(a**2).sum(axis=1) - 2.0],
    "humanoid-ball": lambda o, a: [(a**2).sum(axis=1) - 0.68],
}


@pytest.mark.parametrize("name", EXCESS)
def test_sets_are_those_of_their_formulas(name: str) -> None:
    """Random actions of the box, shrunk to many lengths, are inside where the formula says so."""
    env = TASKS[name].env()
    generator = np.random.default_rng(0)
    obs = generator.normal(size=TASKS[name].observation_size) * 10.0
    if name.startswith("reacher"):
        obs[1], obs[6:8] = 0.3, [12.0, -25.0]
    if name == "reacher-rate":
        obs[11:13] = [0.5, -0.95]
    space = env.action_space
    actions = generator.uniform(space.low, space.high, (400, TASKS[name].action_size))  # pyright: ignore[reportAttributeAccessIssue]
    actions *= generator.uniform(size=(400, 1))
    if name == "reacher-rate":
        actions += [0.5, -0.5]
    worst = np.max(EXCESS[name](obs, actions), axis=0)
    clear = np.abs(worst) > 1e-3 * (1.0 + np.abs(obs).max())
    feasible_set = env.constraint(obs.astype(np.float32))
    inside = np.asarray(jax.vmap(feasible_set.contains)(actions.astype(np.float32)))
    boxed = (np.abs(actions) <= space.high).all(axis=1)  # pyright: ignore[reportAttributeAccessIssue]
    np.testing.assert_array_equal(inside[clear], ((worst <= 0.0) & boxed)[clear])
    assert 0.0 < inside.mean() < 1.0
    assert clear.mean() > 0.8


def test_every_task_of_the_field_is_there() -> None:
    reachers = ["reacher-power-03", "reacher-power-1", "reacher-power-3", "reacher-positive", "reacher-tip"]
    others = ["bss-20", "bss-100", "nsfnet-corrected", "nsfnet-20", "portfolio", "reacher-rate"]
    more = ["hopper-speed", "ant-ball", "humanoid-ball"]
    assert sorted(NAMES) == sorted([*reachers, *others, *OMRON, *more])


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow if n in HEAVY else ()) for n in NAMES])
def test_sizes_are_the_environments(name: str) -> None:
    task = TASKS[name]
    env = task.env()
    obs, _ = env.reset(seed=0)
    spec = spec_of(env)
    assert obs.shape == (task.observation_size,) == (spec.observation_size,)
    assert env.action_space.shape == (task.action_size,)
    assert spec.episode_length == task.episode_length
    copies = task.copies(2, threads=2)
    np.testing.assert_array_equal(copies.reset(seed=0)[0][0], obs)
    assert spec_of(copies).episode_length == task.episode_length
    copies.close()


def test_budgets_and_evaluations_are_their_suites() -> None:
    for name in NAMES:
        task = TASKS[name]
        if name in OMRON:
            assert (task.steps, task.eval_every, task.episodes) == (1_000_000, 5_000, 5)
        elif name in ("hopper-speed", "ant-ball", "nsfnet-20"):
            assert (task.steps, task.eval_every, task.episodes) == (1_500_000, 10_000, 10)
        elif name.startswith("reacher") and name != "reacher-rate":
            assert (task.steps, task.eval_every, task.episodes) == (300_000, 5_000, 5)


def test_presets_are_their_suites() -> None:
    hopper, walker = TASKS["hopper-power"].preset("field"), TASKS["walker-power"].preset("field")
    for name, batch, rate in (("td3-radial", 256, 3e-4), ("td3-nfwpo", 256, 1e-3)):
        algorithm = hopper[name]
        assert isinstance(algorithm, DDPG)
        assert (algorithm.batch_size, algorithm.actor_rate, algorithm.critic_rate) == (batch, rate, rate)
    usual = walker["td3-radial"]
    assert isinstance(usual, DDPG)
    assert (usual.batch_size, usual.actor_rate, usual.discount) == (100, 1e-3, 0.99)
    arm = TASKS["reacher-tip"].preset("field")["td3-radial"]
    assert isinstance(arm, DDPG)
    assert (arm.discount, arm.replay_size) == (0.98, 200_000)
    for name, scale in (("ant-ball", 1.0), ("nsfnet-20", 10.0), ("hopper-power", 1.0)):
        aram = TASKS[name].preset("field")["aram"]
        assert isinstance(aram, ARAM)
        assert (aram.reward_scale, aram.replay_size) == (scale, TASKS[name].steps)
    assert [name for name in NAMES if not TASKS[name].presets] == [
        *("bss-20", "bss-100", "nsfnet-corrected", "reacher-rate", "humanoid-ball", "portfolio")
    ]
    assert configure("hopper-power", "recommended", 0).preset == "default"


def test_a_portfolio_is_traded_within_its_turnover() -> None:
    envs = feasible.make_vec("portfolio", 4, on_infeasible="project")
    obs, _ = envs.reset(seed=0)
    before = obs[:, :13]
    obs, _, _, _, info = envs.step(np.eye(13, dtype=np.float32)[[0, 3, 5, 12]])
    assert info["traded"] == pytest.approx([0.2] * 4, abs=1e-5)
    np.testing.assert_allclose(info["executed_action"].sum(axis=1), 1.0, atol=1e-5)
    for step in range(11):
        moved = np.asarray(before)
        before = obs[:, :13]
        obs, _, _, _, info = envs.step(np.eye(13, dtype=np.float32)[[0, 3, 5, 12]])
        last = info["final_info"] if step == 10 else info
        assert (last["traded"] <= 0.2 + 1e-5).all()  # pyright: ignore[reportOperatorIssue, reportIndexIssue, reportArgumentType]
        assert (info["executed_action"] <= np.maximum(0.25, before) + 1e-5).all()
        assert not np.array_equal(moved, before)


def test_a_rate_is_that_of_what_was_executed() -> None:
    envs = feasible.make_vec("reacher-rate", 2, on_infeasible="project", episode_length=4)
    obs, _ = envs.reset(seed=0)
    last = np.zeros((2, 2))
    for step in range(1, 7):
        np.testing.assert_allclose(obs[:, 11:], last, atol=1e-6)
        obs, _, _, truncated, info = envs.step(np.ones((2, 2), np.float32))
        assert np.linalg.norm(info["executed_action"] - last, axis=1) == pytest.approx([0.2] * 2, abs=1e-5)
        last = np.zeros((2, 2)) if truncated.all() else info["executed_action"]
        assert truncated.all() == (step == 4)


def test_constrained_copies_that_fall_equal_single_ones() -> None:
    narrow = {"healthy_angle_range": (-0.03, 0.03), "episode_length": 25}
    envs = feasible.make_vec("hopper-os", 3, threads=2, **narrow)
    singles = [feasible.make("hopper-os", **narrow) for _ in range(3)]
    obs, _ = envs.reset(seed=7)
    for copy, single in enumerate(singles):
        np.testing.assert_array_equal(obs[copy], single.reset(seed=7 + copy)[0])
    generator, ends = np.random.default_rng(0), [0, 0]
    for _ in range(60):
        actions = generator.uniform(-0.15, 0.15, (3, 3)).astype(np.float32)
        obs, rewards, terminated, truncated, info = envs.step(actions)
        for copy, single in enumerate(singles):
            shown, reward, fallen, over, _ = single.step(actions[copy])
            assert (rewards[copy], terminated[copy], truncated[copy]) == (reward, fallen, over)
            if fallen or over:
                ends[fallen] += 1
                np.testing.assert_array_equal(info["final_obs"][copy], shown)
                shown, _ = single.reset()
            np.testing.assert_array_equal(obs[copy], shown)
    assert min(ends) > 0  # some fell, some had their time
