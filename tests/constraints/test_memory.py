"""The last executed action in the observation: after steps, repairs, resets and restarts, saved, and in constraints."""

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from jaxtyping import Array
from numpy.typing import NDArray

import feasible as fs
from feasible.constraints.memory import RememberAction

RATE = 0.25


class Counter(gym.Env[Any, NDArray]):
    """Observes how many steps were made; three are an episode."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (1,), np.float32)
    action_space = gym.spaces.Box(-1.0, 1.0, (2,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, object] | None = None):
        super().reset(seed=seed)
        self.made = 0
        return self.observed(), {}

    def step(self, action: NDArray):
        self.made += 1
        action[:] = 9.0  # an environment may write to what it is given
        return self.observed(), 0.0, self.made == 3, False, {}

    def observed(self) -> NDArray:
        return np.array([self.made], np.float32)


class Saved(Counter):
    """A state that can be saved."""

    def get_state(self) -> dict[str, NDArray]:
        return {"made": np.array(self.made)}

    def set_state(self, state: dict[str, NDArray]) -> None:
        assert set(state) == {"made"}
        self.made = int(state["made"])


def within_rate(obs: Array) -> fs.sets.ActionSet:
    """|a - last| <= RATE in every entry, and ||a|| <= 1."""
    last = obs[-2:]
    return fs.sets.Box(last - RATE, last + RATE) & fs.sets.Ball(jnp.zeros(2, obs.dtype), 1.0)


def test_the_last_action_is_at_the_end() -> None:
    env = fs.remember_action(Counter())
    assert env.observation_space.shape == (3,)
    np.testing.assert_array_equal(env.observation_space.low, [-np.inf, -1, -1])  # pyright: ignore[reportAttributeAccessIssue]
    np.testing.assert_array_equal(env.reset()[0], [0, 0, 0])
    obs, *_ = env.step(np.array([0.5, -0.5], np.float32))
    np.testing.assert_array_equal(obs, np.array([1, 0.5, -0.5], np.float32))
    assert obs.dtype == np.float32
    np.testing.assert_array_equal(env.reset()[0], [0, 0, 0])


def test_the_first_action_is_given_or_the_one_nearest_to_zeros() -> None:
    env = fs.remember_action(Counter(), first=[0.5, 0.25])
    np.testing.assert_array_equal(env.reset()[0], np.array([0, 0.5, 0.25], np.float32))
    above = Counter()
    above.action_space = gym.spaces.Box(0.5, 1.0, (2,), np.float32)
    np.testing.assert_array_equal(fs.remember_action(above).reset()[0], np.array([0, 0.5, 0.5], np.float32))


@pytest.mark.parametrize("first", [[2.0, 0.0], [0.0], [[0.0, 0.0]], [np.nan, 0.0]])
def test_a_first_action_outside_the_action_space_is_refused(first: list[float]) -> None:
    with pytest.raises(ValueError, match="remember_action: first must be an action of Box"):
        fs.remember_action(Counter(), first=first)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(
        ValueError, match="remember_action: the action space must be a one-dimensional Box, got Discrete"
    ):
        fs.remember_action(gym.make("CartPole-v1"))
    pictures = Counter()
    pictures.observation_space = gym.spaces.Box(0, 1, (3, 3), np.float32)
    with pytest.raises(ValueError, match="observations must be a one-dimensional Box, a Dict or a Tuple, got Box"):
        fs.remember_action(pictures)
    pictures.observation_space = gym.spaces.Dict(last_action=pictures.observation_space)
    with pytest.raises(ValueError, match="observations have an entry 'last_action' already"):
        fs.remember_action(pictures)
    constrained = fs.constrain(Counter(), lambda obs: fs.sets.Ball(jnp.zeros(2), 1.0))
    for env in (constrained, gym.wrappers.TimeLimit(constrained, 5)):
        with pytest.raises(
            ValueError, match=r"constrained already; .* constrain\(remember_action\(env\), constraint\)"
        ):
            fs.remember_action(env)


def test_a_rate_limit_and_a_ball_together() -> None:
    """The limit follows what was executed, not what was proposed."""
    env = fs.constrain(fs.remember_action(Counter()), within_rate, on_infeasible="project")
    obs, _ = env.reset()
    last = np.zeros(2)
    for expected in ([0.25, 0.0], [0.5, 0.0], [0.75, 0.0]):
        obs, *_, info = env.step(np.array([1.0, 0.0], np.float32))
        np.testing.assert_allclose(info["executed_action"], expected, atol=1e-5)
        np.testing.assert_array_equal(obs[1:], info["executed_action"])
        assert np.max(np.abs(obs[1:] - last)) <= RATE + 1e-5
        last = obs[1:]
    strict = fs.constrain(env.env, within_rate)
    strict.reset()
    with pytest.raises(fs.InfeasibleActionError):
        strict.step(np.array([0.5, 0.0], np.float32))


@pytest.mark.slow
def test_an_agent_stays_within_the_rate() -> None:
    class Watching(gym.Wrapper):
        """Takes down what is executed, by episode."""

        def reset(self, **options):
            self.episodes = [*getattr(self, "episodes", []), [np.zeros(2)]]
            return self.env.reset(**options)

        def step(self, action: NDArray):
            self.episodes[-1].append(np.array(action))
            return self.env.step(action)

    watching = Watching(fs.remember_action(Counter()))
    agent = fs.NFWPO(fs.constrain(watching, within_rate), seed=0, hidden_layers=(4,), warmup=10, replay_size=50)
    agent.learn(40)
    changes = np.concatenate([np.abs(np.diff(np.stack(actions), axis=0)) for actions in watching.episodes])
    assert len(changes) == 40
    assert 0.1 < changes.max() <= RATE + 1e-5
    assert np.abs(agent.predict([0, 0.5, 0.5]) - 0.5).max() <= RATE + 1e-5


def test_the_state_is_saved_with_the_last_action() -> None:
    env = fs.constrain(fs.remember_action(Saved()), within_rate)
    env.reset()
    env.step(np.array([0.2, 0.1], np.float32))
    state = env.get_state()
    env.step(np.array([0.3, 0.1], np.float32))
    env.set_state(state)
    inner = env.env
    assert isinstance(inner, RememberAction)
    np.testing.assert_array_equal(inner.get_state()["last_action"], np.array([0.2, 0.1], np.float32))
    obs, *_ = env.step(np.array([0.0, 0.0], np.float32))
    np.testing.assert_array_equal(obs, [2, 0, 0])


def test_an_environment_that_cannot_be_saved_does_not_say_it_can() -> None:
    assert fs.remember_action(Saved()).has_wrapper_attr("get_state")
    assert not fs.remember_action(Counter()).has_wrapper_attr("get_state")
    copies = SyncVectorEnv([Counter] * 2)
    assert not hasattr(fs.remember_action(copies), "get_state")


@pytest.mark.filterwarnings("ignore")
def test_gymnasiums_checker_passes() -> None:
    class Unwritten(Counter):
        def step(self, action: NDArray):
            return super().step(action.copy())

    check_env(fs.remember_action(Unwritten()), skip_render_check=True)


def test_a_registered_environment_can_be_copied_with_it() -> None:
    if "test/Counter-v0" not in gym.registry:
        gym.register("test/Counter-v0", entry_point=lambda **options: Counter(**options))
    env = fs.constrain(fs.remember_action(gym.make("test/Counter-v0"), first=[0.5, 0.0]), within_rate)
    assert env.spec is not None
    again = gym.make(env.spec)
    np.testing.assert_array_equal(again.reset()[0], np.array([0, 0.5, 0], np.float32))


ACTIONS = np.linspace(-0.9, 0.9, 7 * 2 * 2).reshape(7, 2, 2).astype(np.float32)


def test_copies_that_are_restarted_by_hand() -> None:
    ours = fs.remember_action(SyncVectorEnv([Counter] * 2, autoreset_mode=AutoresetMode.DISABLED), first=[0.5, 0.5])
    ours.reset()
    ours.step(ACTIONS[0].copy())
    obs, _ = ours.reset(options={"reset_mask": np.array([False, True])})
    _same(obs, np.array([[1, *ACTIONS[0, 0]], [0, 0.5, 0.5]], np.float32))


def test_copies_of_ours_are_saved_with_their_last_actions() -> None:
    inner = fs.make_vec("reacher", 2).env
    env = fs.remember_action(inner)
    env.reset(seed=[1, 2])
    obs, *_ = env.step(np.full((2, 2), 0.1, np.float32))
    state = env.get_state()
    env.step(np.full((2, 2), 0.2, np.float32))
    env.set_state(state)
    assert env.get_state().keys() == state.keys()
    _same(env.get_state()["last_action"], obs[:, -2:].astype(np.float32))


class Named(Saved):
    """Observes a Dict, whose keys are not in alphabetical order."""

    observation_space = gym.spaces.Dict([("made", gym.spaces.Discrete(9)), ("far", gym.spaces.Box(0, 9, (2,)))])

    def observed(self) -> Any:
        return {"made": self.made, "far": np.full(2, self.made, np.float32)}


class Numbered(Saved):
    """Observes a Tuple."""

    observation_space = gym.spaces.Tuple((gym.spaces.Box(0, 9, (1,)), gym.spaces.Discrete(9)))

    def observed(self) -> Any:
        return np.array([self.made], np.float32), self.made


STRUCTURED: dict[type[Counter], Callable[[Any], Any]] = {
    Counter: lambda obs: obs[..., 1:],
    Named: lambda obs: obs["last_action"],
    Numbered: lambda obs: obs[-1],
}
"""By environment: where its last action is."""


@pytest.mark.parametrize("kind", [Named, Numbered])
def test_structures_have_it_as_a_further_entry(kind: type[Counter]) -> None:
    """At the end of the vector that networks see, and by its own name for the constraint."""
    last = STRUCTURED[kind]

    def slowly(obs: Any) -> fs.sets.ActionSet:
        return fs.sets.Box(last(obs) - RATE, last(obs) + RATE)

    env = fs.constrain(fs.remember_action(kind(), first=[0.5, 0.0]), slowly, on_infeasible="project")
    obs, _ = env.reset()
    known, _ = kind().reset()
    assert env.layout is not None
    own = gym.spaces.flatten(kind.observation_space, known)
    np.testing.assert_array_equal(env.layout.flat(obs), [*own, 0.5, 0.0])  # pyright: ignore[reportGeneralTypeIssues]
    proposed = np.array([1.0, -1.0], np.float32)
    for executed in ([0.75, -0.25], [1.0, -0.5], [1.0, -0.75]):
        obs, *_, info = env.step(proposed.copy())
        np.testing.assert_allclose(info["executed_action"], executed, atol=1e-5)
        np.testing.assert_array_equal(last(obs), info["executed_action"])
        assert env.observation_space.contains(obs)


@pytest.mark.parametrize("kind", STRUCTURED)
@pytest.mark.parametrize("mode", [AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP], ids=lambda mode: mode.name)
def test_copies_of_structures_are_as_copies_that_each_remember(kind: type[Counter], mode: AutoresetMode) -> None:
    ours = fs.remember_action(SyncVectorEnv([kind] * 2, autoreset_mode=mode))
    each = SyncVectorEnv([lambda: fs.remember_action(kind())] * 2, autoreset_mode=mode)
    assert ours.single_observation_space == each.single_observation_space
    assert ours.observation_space == each.observation_space
    jax.tree.map(_same, ours.reset(seed=0)[0], each.reset(seed=0)[0])
    for actions in ACTIONS:
        (obs, *_, info), (expected, *_, known) = ours.step(actions.copy()), each.step(actions.copy())
        jax.tree.map(_same, obs, expected)
        for one, other in zip(info.get("final_obs", ()), known.get("final_obs", ()), strict=True):
            jax.tree.map(_same, one, other)


@pytest.mark.parametrize("kind", [Saved, Named])
@pytest.mark.parametrize("mode", [AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP], ids=lambda mode: mode.name)
def test_copies_go_on_from_a_saved_state_as_if_nothing_had_happened(kind: type[Counter], mode: AutoresetMode) -> None:
    """Wherever it is taken: between two steps, at the end of an episode, and in another vector that was only reset."""

    def made() -> Any:
        copies = SyncVectorEnv([lambda: gym.wrappers.TimeLimit(kind(), 2), kind], autoreset_mode=mode)
        return fs.constrain(fs.remember_action(copies), lambda obs: fs.sets.Ball(jnp.zeros(2), 2.0))

    env, other = made(), made()
    env.reset(seed=0)
    for at, actions in enumerate(ACTIONS[:5]):
        state = env.get_state()
        other.reset(seed=9)
        other.set_state(state)
        ours = [env.step(actions.copy()) for actions in ACTIONS[at:]]
        for outcome, actions in zip(ours, ACTIONS[at:], strict=True):
            again = other.step(actions.copy())
            jax.tree.map(_same, again[:4], outcome[:4])
        env.set_state(state)
        env.step(actions.copy())


def _same(one: Any, other: Any) -> None:
    np.testing.assert_array_equal(one, other)
    assert np.asarray(one).dtype == np.asarray(other).dtype
