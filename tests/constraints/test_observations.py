"""Observations with a structure: their vectors, the structure again, who judges by it, and what is refused."""

import re
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import feasible as fs
from feasible.algorithms.spec import spec_of
from feasible.constraints import ConstrainedEnv, Observation
from feasible.constraints.observations import Layout, MisfitError, layout_of
from feasible.errors import InfeasibleActionError, InvalidStepError
from feasible.run.drive.plant import plant_of
from feasible.run.drive.wire import certificate
from feasible.sets import Ball
from tests.constraints.structures import REACH, Gears, Goal, in_gear, near

SPACE = gym.spaces.Dict(
    near=gym.spaces.Box(-np.inf, np.inf, (3,), np.float64),
    far=gym.spaces.Tuple((gym.spaces.Box(-np.inf, np.inf, (2, 2), np.float32), gym.spaces.MultiBinary(3))),
    gear=gym.spaces.Discrete(4, start=-1),
    dials=gym.spaces.MultiDiscrete(np.array([[2, 3], [4, 2]]), start=np.array([[0, 5], [-3, 0]])),
    level=gym.spaces.Box(-np.inf, np.inf, (), np.float32),
)
NUMBERS = st.floats(-3e38, 3e38, allow_subnormal=False) | st.floats(-10, 10, allow_subnormal=False)


@cache
def layout() -> Layout:
    found = layout_of(SPACE)
    assert found is not None
    return found


@cache
def rebuild() -> Callable[[np.ndarray], Any]:
    return jax.jit(layout().rebuild)


@st.composite
def observations(draw: st.DrawFn) -> Any:
    return {
        "near": draw(arrays(np.float64, 3, elements=NUMBERS)),
        "far": (
            draw(arrays(np.float64, (2, 2), elements=NUMBERS)),
            draw(arrays(np.int8, 3, elements=st.integers(0, 1))),
        ),
        "gear": draw(st.integers(-1, 2)),
        "dials": np.array([[0, 5], [-3, 0]]) + draw(arrays(np.int64, (2, 2), elements=st.integers(0, 1))),
        "level": draw(NUMBERS),
    }


@given(observations())
@settings(max_examples=100, deadline=None)
def test_the_vector_is_gymnasium_s_in_float32_and_comes_back_as_it_was(obs: Any) -> None:
    flat = layout().flat(obs)
    assert flat.dtype == np.float32
    np.testing.assert_array_equal(flat, gym.spaces.flatten(SPACE, obs).astype(np.float32))  # pyright: ignore[reportAttributeAccessIssue]
    again = rebuild()(flat)
    for known, found in zip(jax.tree.leaves(obs), jax.tree.leaves(again), strict=True):
        whole = np.asarray(known).dtype.kind == "i"
        assert found.dtype == (np.int32 if whole else np.float32)
        np.testing.assert_array_equal(found, np.asarray(known).astype(found.dtype))
    assert set(again) == set(obs)
    assert isinstance(again["far"], tuple)
    np.testing.assert_array_equal(layout().read(obs), flat)
    np.testing.assert_array_equal(layout().read(flat), flat)


def test_a_batch_is_its_observations_row_by_row() -> None:
    SPACE.seed(0)
    each = [SPACE.sample() for _ in range(4)]
    together = gym.vector.utils.concatenate(SPACE, each, gym.vector.utils.create_empty_array(SPACE, 4))
    rows = np.stack([layout().flat(obs) for obs in each])
    np.testing.assert_array_equal(layout().flats(together, 4), rows)
    np.testing.assert_array_equal(layout().read(together), rows)
    np.testing.assert_array_equal(layout().read(rows), rows)


def test_every_part_has_its_place() -> None:
    assert layout().entries() == [
        ("obs['near']", 0, 2, "numbers"),
        ("obs['far'][0]", 3, 6, "numbers"),
        ("obs['far'][1]", 7, 9, "numbers"),
        ("obs['gear']", 10, 13, "one-hot"),
        ("obs['dials']", 14, 24, "one-hot"),
        ("obs['level']", 25, 25, "numbers"),
    ]
    assert layout().size == 26 == gym.spaces.flatdim(SPACE)
    again = layout_of(SPACE)
    assert again == layout()
    assert hash(again) == hash(layout())
    assert layout_of(gym.spaces.Box(0, 1, (3,))) is None


class Rounds(gym.Env):
    """Observes how many steps were made, in integers of some dtype, alone or in a structure."""

    action_space = gym.spaces.Box(-1.0, 1.0, (2,), np.float32)

    def __init__(self, dtype: type[np.generic], within: str):
        own = gym.spaces.Box(0, 1 if dtype is np.bool_ else 100, (2,), dtype)  # pyright: ignore
        self.within, self.dtype = within, dtype
        self.observation_space = {"": own, "dict": gym.spaces.Dict(made=own), "tuple": gym.spaces.Tuple((own,))}[within]

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        self.made = 0
        return self.observed(), {}

    def step(self, action: np.ndarray):
        self.made += 1
        return self.observed(), 0.0, False, self.made == 5, {}

    def observed(self) -> Any:
        made = np.array([self.made, 7], self.dtype)
        return {"": made, "dict": {"made": made}, "tuple": (made,)}[self.within]


REACHES = (0.9, 0.1, 0.5, 0.3, 0.7, 0.2)  # by step


@pytest.mark.parametrize(
    ("dtype", "within"),
    [(np.int64, ""), (np.bool_, ""), (np.int64, "dict"), (np.uint8, "dict"), (np.int32, "tuple")],
)
def test_integers_of_a_box_are_integers_for_the_constraint(dtype: type[np.generic], within: str) -> None:
    """Good for looking something up, in the space's own dtype, alike where environment and driver judge."""
    seen = set()

    def by_step(obs: Any) -> Ball:
        made = obs if within == "" else jax.tree.leaves(obs)[0]
        seen.add(made.dtype)
        return Ball(jnp.zeros(2, jnp.float32), jnp.asarray(REACHES, jnp.float32)[made[0].astype(int)])

    env = fs.constrain(Rounds(dtype, within), by_step)
    plant = plant_of(fs.constrain(Rounds(dtype, within), by_step))
    env.reset()
    rows = plant.reset([0])
    for made in range(5):
        reach = REACHES[made if dtype is not np.bool_ else bool(made)]
        for feasible_set in (env.action_set(), plant.spec.feasible_set(jnp.asarray(rows[0]))):
            assert float(feasible_set.diameter()) == pytest.approx(2 * reach)
        with pytest.raises(InfeasibleActionError):
            env.step(np.array([reach + 0.01, 0.0], np.float32))
        env.step(np.array([reach - 0.01, 0.0], np.float32))
        rows = plant.step(np.zeros((1, 2), np.float32), made + 1).seen
    assert seen == {np.dtype(dtype)}


def test_integers_have_no_more_bits_than_jax_has() -> None:
    found = layout_of(gym.spaces.Box(0, 2**24, (2,), np.int64))
    assert found is not None
    with jax.enable_x64(False):
        again = found.rebuild(jnp.asarray(found.flat([3, 2**24])))
    assert again.dtype == np.int32  # pyright: ignore
    assert again.tolist() == [3, 2**24]  # pyright: ignore


class Told(gym.Env):
    """Observes what it is told."""

    observation_space = SPACE
    action_space = gym.spaces.Box(-1.0, 1.0, (2,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        assert options is not None
        return options["obs"], {}

    def step(self, action: np.ndarray):
        return self.observation_space.sample(), 0.0, False, False, {}


def everything(obs: Observation) -> Ball:
    """A ball that depends on every entry, with a radius in [0.5, 0.7) and a centre within 0.1 of zero."""
    moved = jnp.sin(obs["near"][:2]) * 0.1 * jnp.cos(obs["level"])  # pyright: ignore
    reach = 5 * (obs["gear"] + obs["dials"][0, 1] - 5) + jnp.sum(obs["far"][1], dtype=jnp.int32)  # pyright: ignore
    return Ball(moved, 0.55 + 0.01 * reach.astype(moved.dtype) + 0.01 * jnp.tanh(jnp.min(obs["far"][0])))  # pyright: ignore


@cache
def told() -> tuple[ConstrainedEnv, Any]:
    env = fs.constrain(Told(), everything)
    assert isinstance(env, ConstrainedEnv)
    spec = spec_of(env)
    return env, jax.jit(lambda obs, action: certificate(spec, spec.feasible_set(obs), action))


@given(observations(), arrays(np.float32, 2, elements=st.floats(-1, 1, width=32)), st.floats(0.9, 1.1))
@settings(max_examples=100, deadline=None)
def test_environment_and_driver_judge_alike(obs: Any, towards: np.ndarray, reach: float) -> None:
    """By the same sets, to the last bit, and by the same verdict on actions on both sides of their boundary."""
    env, driver = told()
    env.reset(options={"obs": obs})
    mine, theirs = env.action_set(), spec_of(env).feasible_set(jnp.asarray(layout().flat(obs)))
    for one, other in zip(jax.tree.leaves(mine), jax.tree.leaves(theirs), strict=True):
        assert one.dtype == other.dtype == np.float32
        np.testing.assert_array_equal(one, other)
    length = np.linalg.norm(towards)
    direction = towards / length if length > 0.1 else np.array([1.0, 0.0])
    centre, radius = np.asarray(mine.centre(), float), float(mine.diameter()) / 2
    action = (centre + reach * radius * direction).clip(-1, 1).astype(np.float32)
    violation, tolerance = np.asarray(driver(layout().flat(obs), action))[2:]
    refused = not violation <= tolerance
    try:
        env.step(action)
    except InfeasibleActionError:
        assert refused
    else:
        assert not refused


def test_what_the_environment_gives_stays_as_it_is() -> None:
    """Users get the structure; saved states hold the vector that the next action is judged by."""
    env = fs.constrain(Gears(), in_gear)
    assert isinstance(env, ConstrainedEnv)
    obs, _ = env.reset(seed=0)
    known, _ = Gears().reset(seed=0)
    for one, other in zip(jax.tree.leaves(obs), jax.tree.leaves(known), strict=True):
        np.testing.assert_array_equal(one, other)
    for step in range(6):
        assert env.layout is not None
        assert float(env.action_set().diameter()) == pytest.approx(2 * REACH[step % 3])
        assert float(env.constraint(env.layout.flat(obs)).diameter()) == pytest.approx(2 * REACH[step % 3])
        with pytest.raises(InfeasibleActionError):
            env.step(np.array([REACH[step % 3] + 0.01, 0.0], np.float32))
        obs, *_ = env.step(np.array([REACH[step % 3] - 0.01, 0.0], np.float32))
        assert obs["ways"].dtype == np.float64


@pytest.mark.parametrize("kind", [SyncVectorEnv, partial(AsyncVectorEnv, context="forkserver")], ids=["sync", "async"])
def test_copies_are_judged_each_by_its_own(kind: Callable[..., VectorEnv]) -> None:
    copies = kind([Gears] * 2, autoreset_mode=AutoresetMode.SAME_STEP)
    env = fs.constrain(copies, in_gear)
    env.reset(seed=0)
    for step in range(17):  # over the end of an episode
        reach = REACH[step % 15 % 3]
        bad = np.array([[0.0, 0.0], [0.0, reach + 0.01]], np.float32)
        with pytest.raises(InfeasibleActionError, match="The action of copy 1 violates"):
            env.step(bad)
        env.step(bad - np.array([0.0, 0.02], np.float32))
    env.close()


def test_a_table_and_a_choice_alone_are_observations_too() -> None:
    class Table(Goal):
        def __init__(self) -> None:
            super().__init__()
            self.observation_space = gym.spaces.Box(-np.inf, np.inf, (2, 2), np.float64)

        def _obs(self) -> Any:
            return np.stack([self.point, self.goal])

    class Choice(Goal):
        def __init__(self) -> None:
            super().__init__()
            self.observation_space = gym.spaces.Discrete(16)

        def _obs(self) -> Any:
            return self.time

    reaches = np.linspace(0.1, 0.9, 16, dtype=np.float32)
    for env, constraint, size, warmup in (  # a table is acted on, but not learned from: that compiles for seconds
        (Table(), lambda obs: Ball(jnp.zeros(2, jnp.float32), jnp.clip(jnp.abs(obs[1, 0]), 0.1, 1.0)), 4, 20),
        (Choice(), lambda obs: Ball(jnp.zeros(2, jnp.float32), jnp.asarray(reaches)[obs]), 16, 0),
    ):
        constrained = fs.constrain(env, constraint)
        agent = fs.NFWPO(constrained, warmup=warmup, hidden_layers=(4,), batch_size=4).learn(20)  # pyright: ignore[reportArgumentType]
        obs, _ = constrained.reset(seed=0)
        action = agent.predict(obs)
        assert action.shape == (2,)
        constrained.step(action)
        assert spec_of(constrained).observation_size == size


class TestRefusals:
    def test_images(self) -> None:
        """An agent of another library may see them; ours says what to do."""
        env = Goal()
        image = gym.spaces.Box(0, 255, (8, 8, 3), np.uint8)
        env.observation_space = gym.spaces.Dict(camera=image, speed=gym.spaces.Box(0, 1, (1,)))
        env._obs = lambda: env.observation_space.sample()
        constrained = fs.constrain(env, lambda obs: Ball(jnp.zeros(2, jnp.float32), 0.1 + obs["speed"][0]))
        constrained.reset(seed=0)
        constrained.step(np.zeros(2, np.float32))
        with pytest.raises(
            ValueError, match=r"^env: obs\['camera'\] is an image, Box\(.*observe in numbers what it shows"
        ):
            fs.NFWPO(constrained)  # pyright: ignore[reportArgumentType]

    def test_spaces_without_a_size(self) -> None:
        with pytest.raises(
            ValueError, match=r"env: obs\[0\] is of the space Text\(.*not one of numbers of a fixed size"
        ):
            layout_of(gym.spaces.Tuple((gym.spaces.Text(3),)))

    def test_a_constraint_on_what_is_not_there(self) -> None:
        with pytest.raises(ValueError, match="the constraint reads 'goal' of the observation, which has observation, "):
            fs.constrain(Goal(), lambda obs: Ball(jnp.zeros(2), obs["goal"][0]))

    @pytest.mark.parametrize(
        ("change", "said"),
        [
            (lambda obs: {**obs, "gear": 4}, "obs['gear'] is 4, but must be a whole number from 1 to 3"),
            (lambda obs: {**obs, "gear": 1.5}, "obs['gear'] is 1.5, but must be a whole number from 1 to 3"),
            (lambda obs: {**obs, "gear": "fast"}, "obs['gear'] is 'fast', but must be numbers of shape ()"),
            (
                lambda obs: {**obs, "ways": np.zeros(4)},
                "obs['ways'] has shape (4,), but the observation space has shape",
            ),
            (lambda obs: {"ways": obs["ways"], "gear": 1}, "obs has no entry 'rest' (it has 'ways', 'gear')"),
            (lambda obs: {**obs, "rest": (1,)}, "obs['rest'] is (1,), but must be a tuple of 2"),
            (lambda obs: np.zeros(3), "obs is a ndarray, but must be a dict"),
        ],
    )
    def test_observations_that_do_not_fit(self, change: Any, said: str) -> None:
        """Alone, among copies where Gymnasium lets them pass, and asked of an agent: the field is named."""

        class Wrong(Gears):
            def _obs(self) -> Any:
                return change(super()._obs()) if self.time else super()._obs()

        env = fs.constrain(Wrong(), in_gear)
        env.reset(seed=0)
        with pytest.raises(InvalidStepError, match=re.escape(f"at step 1 is none of the observation space: {said}")):
            env.step(np.zeros(2, np.float32))
        with pytest.raises(gym.error.ResetNeeded):
            env.step(np.zeros(2, np.float32))
        found = layout_of(env.observation_space)
        assert found is not None
        with pytest.raises(MisfitError, match=re.escape(said)):
            found.flat(change(Gears()._obs()))

    def test_a_copy_without_an_entry(self) -> None:
        class Short(Goal):
            def _obs(self) -> Any:
                whole = super()._obs()
                return {"observation": whole["observation"]} if self.time else whole

        copies = SyncVectorEnv([Goal, Short], autoreset_mode=AutoresetMode.SAME_STEP)
        env = fs.constrain(copies, near)
        env.reset(seed=0)
        with pytest.raises(
            InvalidStepError, match=r"The observation of copy 1 at step 1 .*: obs has no entry 'achieved_goal'"
        ):
            env.step(np.zeros((2, 2), np.float32))
