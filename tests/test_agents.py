"""Agents on environments of one's own: learn, predict, evaluate, save and load, and what is refused."""

import math
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import feasible as fs
from feasible.agents import Agent
from feasible.algorithms.ddpg import DDPG
from feasible.constraints import ConstrainedVectorEnv
from feasible.run.disk.archive import ArchiveError, read_archive, write_archive
from feasible.run.evaluate import Evaluation, evaluation_seeds
from tests.run.runs import as_a_user, programs_shared
from tests.run.toys import TOY, Drift, force

SMALL = {name: getattr(TOY, name) for name in ("hidden_layers", "warmup", "batch_size", "replay_size", "actor_rate")}


@pytest.fixture(scope="module", autouse=True)
def _as_a_user() -> Iterator[None]:
    with as_a_user(), programs_shared():
        yield


def drift() -> fs.constraints.ConstrainedEnv:
    """The toy, made by Gymnasium, so that it can be copied."""
    if "toy/Free-v0" not in gym.registry:
        gym.register("toy/Free-v0", entry_point=Drift, max_episode_steps=20)  # pyright: ignore[reportArgumentType]
    env = fs.constrain(gym.make("toy/Free-v0"), force)
    assert isinstance(env, fs.constraints.ConstrainedEnv)
    return env


@pytest.fixture(scope="module")
def trained() -> Agent:
    return fs.NFWPO(drift(), seed=0, noise=TOY.noise, **SMALL).learn(100)


def weights(agent: Agent) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in jax.tree.leaves(agent.policy)]


def assert_equal_policies(one: Agent, other: Agent) -> None:
    for left, right in zip(weights(one), weights(other), strict=True):
        np.testing.assert_array_equal(left, right)


def test_learning_pieces_with_and_without_a_bar_is_learning_at_once(trained: Agent) -> None:
    again = fs.NFWPO(drift(), seed=0, noise=TOY.noise, **SMALL)
    start = weights(again)
    assert again.learn(37).learn(63, progress_bar=True) is again
    assert again.step == trained.step == 100
    assert_equal_policies(again, trained)
    assert any(not np.array_equal(left, right) for left, right in zip(start, weights(again), strict=True))


def test_the_environment_is_the_agent_s_until_it_is_reset() -> None:
    """Stepped past its wrapper, it refuses; reset by its owner in between, learning begins a new episode."""
    env = drift()
    agent = fs.NFWPO(env, seed=0, noise=TOY.noise, **SMALL)
    obs, _ = env.reset(seed=5)
    env.step(agent.predict(obs))  # asking a new agent moves nothing
    agent.learn(7)
    with pytest.raises(gym.error.ResetNeeded):
        env.step(agent.predict(obs))
    obs, _ = env.reset(seed=6)
    obs, *_ = env.step(agent.predict(obs))
    agent.learn(8)
    assert agent.step == 15
    replay = agent._driver.carry.algorithm.replay  # pyright: ignore[reportOptionalMemberAccess]
    rows, size = np.asarray(replay.rows), len(obs)
    follows = [bool(np.allclose(rows[k + 1][:size], rows[k][-size - 2 : -2])) for k in range(14)]
    assert follows == [k != 6 for k in range(14)]
    with pytest.raises(gym.error.ResetNeeded):
        env.action_set()


def test_an_agent_says_what_it_is(trained: Agent, tmp_path: Path) -> None:
    assert repr(trained) == "NFWPO on toy/Free-v0, seed 0, step 100"
    other = fs.agent("ddpg-optlayer", fs.constrain(Drift(), force), seed=3, **SMALL)
    assert repr(other) == "DDPG with ThroughProjection on Drift, seed 3, step 0"
    copies = fs.constrain(SyncVectorEnv([Drift] * 2, autoreset_mode=AutoresetMode.SAME_STEP), force)
    assert repr(fs.PPO(copies, horizon=20, minibatch=4)).startswith("PPO on 2 copies of Drift, ")
    trained.save(tmp_path / "policy.feasible")
    loaded = fs.load(tmp_path / "policy.feasible", drift())
    assert repr(loaded) == "DDPG with FrankWolfe on toy/Free-v0, loaded from a file"


def test_an_evaluation_says_what_came_of_it() -> None:
    assert repr(Evaluation((1.0, 4.0, 2.5), 1.25e-7)) == (
        "Evaluation(mean=2.5, episodes=3, lowest=1, highest=4, executed_violation=1.2e-07)"
    )


def test_a_vector_is_the_agent_s_until_it_is_reset() -> None:
    env = fs.constrain(SyncVectorEnv([Drift] * 2), force)
    idle = {**SMALL, "warmup": 0, "actor_interval": 100, "critic_interval": 100}  # no update to compile
    agent = fs.NFWPO(env, seed=0, noise=TOY.noise, **idle).learn(4)  # pyright: ignore[reportArgumentType]
    still = np.zeros((2, 2), np.float32)
    with pytest.raises(gym.error.ResetNeeded):
        env.step(still)
    env.reset(seed=6)
    env.step(still)
    agent.learn(4)
    rows = np.asarray(agent._driver.carry.algorithm.replay.rows)[:8].reshape(4, 2, -1)  # pyright: ignore[reportOptionalMemberAccess]
    follows = [bool(np.allclose(rows[k + 1, :, :3], rows[k, :, -5:-2])) for k in range(3)]
    assert follows == [True, False, True]


def test_another_seed_is_another_agent(trained: Agent) -> None:
    other = fs.NFWPO(drift(), seed=1, **SMALL)
    assert not np.array_equal(weights(other)[0], weights(trained)[0])


observations = arrays(
    np.float32,
    (3,),
    elements=st.floats(-1e6, 1e6, width=32),
).map(lambda obs: np.array([obs[0], obs[1], abs(obs[2])], np.float32))


@settings(max_examples=200, deadline=None)
@given(obs=observations)
def test_predictions_are_feasible_for_any_observation(trained: Agent, obs: np.ndarray) -> None:
    action = trained.predict(obs)
    assert action.shape == (2,)
    assert action.dtype == np.float32
    radius = float(obs[2])
    assert np.linalg.norm(action.astype(np.float64)) <= radius + 1e-5 * radius


def test_batches_are_predicted_row_by_row(trained: Agent) -> None:
    rows = np.random.default_rng(0).uniform(0.1, 1.0, (5, 3)).astype(np.float32)
    batch = trained.predict(rows)
    assert batch.shape == (5, 2)
    for row, action in zip(rows, batch, strict=True):
        np.testing.assert_allclose(trained.predict(row), action, atol=1e-6)
    np.testing.assert_array_equal(trained.predict(rows.tolist()), batch)
    batch[:] = 7.0  # the caller's own


@pytest.mark.parametrize("shape", [(2,), (4,), (2, 2), (1, 1, 3), ()])
def test_observations_of_another_shape(shape: tuple[int, ...], trained: Agent) -> None:
    with pytest.raises(ValueError, match="predict: observations have 3 entries, got shape"):
        trained.predict(np.zeros(shape))


def test_predictions_that_cannot_be_feasible_are_refused(trained: Agent) -> None:
    with pytest.raises(ValueError, match="predict: the observation has a NaN"):
        trained.predict([0.0, np.nan, 1.0])
    for words in ("abc", [[0.0, 0.0], [1.0]]):
        with pytest.raises(ValueError, match="predict: observations must be 3 numbers, or rows of them, not "):
            trained.predict(words)
    with pytest.raises(fs.EmptySetError, match=r"The feasible set of predict of observation \[.*\] is empty"):
        trained.predict([[0.0, 0.0, 1.0], [0.0, 0.0, -1.0]])


def test_save_and_load(trained: Agent, tmp_path: Path) -> None:
    path = tmp_path / "agent.feasible"
    trained.save(path)
    loaded = fs.load(path, drift())
    assert_equal_policies(loaded, trained)
    rows = np.random.default_rng(0).uniform(0.1, 1.0, (5, 3))
    np.testing.assert_array_equal(loaded.predict(rows), trained.predict(rows))
    loaded.save(tmp_path / "again.feasible")
    assert (tmp_path / "again.feasible").read_bytes() == path.read_bytes()
    with pytest.raises(ValueError, match="learn: an agent that was loaded from a file holds its policy only"):
        loaded.learn(1)
    with pytest.raises(ArchiveError, match="from observations of size 3 to actions of size 2"):
        fs.load(path, pendulum())
    with pytest.raises(FileNotFoundError):
        fs.load(tmp_path / "nowhere", drift())


def test_a_file_cannot_name_code_to_run(trained: Agent, tmp_path: Path) -> None:
    trained.save(tmp_path / "file")
    description, contents = read_archive(tmp_path / "file")
    description["algorithm"] = {"kind": "os.system", "command": "true"}
    write_archive(tmp_path / "file", description, contents)
    with pytest.raises(ValueError, match=r"There is no algorithm or rule 'os\.system'"):
        fs.load(tmp_path / "file", drift())


def test_evaluation_is_a_plain_loop(trained: Agent) -> None:
    found = trained.evaluate(3, seed=5)
    assert found == trained.evaluate(3, seed=5)
    assert found == trained.evaluate(3, seed=5, env=drift())
    assert found != trained.evaluate(3, seed=6)
    env, returns = drift(), []
    for seed in evaluation_seeds(5, trained.step, 3):
        obs, _ = env.reset(seed=seed)
        total, running = 0.0, True
        while running:
            obs, reward, terminated, truncated, _ = env.step(trained.predict(obs))
            total += float(reward)
            running = not (terminated or truncated)
        returns.append(total)
    np.testing.assert_allclose(found.returns, returns, rtol=1e-4)


def test_an_environment_of_other_sizes_is_not_evaluated(trained: Agent) -> None:
    def pendulum() -> gym.Env:
        return fs.constrain(gym.make("Pendulum-v1"), lambda obs: fs.sets.Box(-1.0, jnp.ones(1)))

    with pytest.raises(ValueError, match="evaluate: the actions of env have 1 entries, those of the agent 2; pass"):
        trained.evaluate(1, env=pendulum)


def test_an_environment_of_other_observations_is_not_evaluated(trained: Agent) -> None:
    class Wide(Drift):
        def __init__(self):
            super().__init__()
            self.observation_space = gym.spaces.Box(-1.0, 1.0, (5,))

        def close(self) -> None:
            closed.append(self)

    closed: list[Wide] = []
    with pytest.raises(
        ValueError, match="evaluate: the observations of env have 5 entries, those of the agent 3; pass"
    ):
        trained.evaluate(2, env=lambda: fs.constrain(Wide(), force))
    assert len(closed) == 2


def test_numbers_of_numpy_are_those_of_python(trained: Agent, tmp_path: Path) -> None:
    small = {name: np.array(value)[()] for name, value in SMALL.items()}
    assert isinstance(small["warmup"], np.integer)
    assert isinstance(small["actor_rate"], np.floating)
    again = fs.NFWPO(drift(), seed=np.int64(0), noise=np.float64(TOY.noise), **small)  # pyright: ignore
    counts = {"steps": np.int64(100), "eval_every": np.int32(50), "checkpoint_every": np.uint64(1_000)}
    again.learn(**counts, episodes=np.int16(1), run=tmp_path / "run")  # pyright: ignore
    assert again.algorithm == trained.algorithm
    assert_equal_policies(again, trained)
    assert again.evaluate(np.int64(2), seed=np.uint8(3)) == trained.evaluate(2, seed=3)  # pyright: ignore


@pytest.mark.parametrize(
    ("seed", "message"),
    [
        (-1, "seed must be a whole number of at least 0, not -1"),
        (2**32, "seed must be a whole number of at most 4294967295, not 4294967296"),
        ("3", "seed must be a whole number of at least 0, not '3'"),
        (1.0, r"seed must be a whole number of at least 0, not 1\.0"),
    ],
)
def test_a_seed_that_is_none_is_refused_at_once(seed: object, message: str, trained: Agent) -> None:
    with pytest.raises(ValueError, match=message):
        fs.NFWPO(drift(), seed=seed, **SMALL)  # pyright: ignore
    with pytest.raises(ValueError, match=f"evaluate: {message}"):
        trained.evaluate(1, seed=seed)  # pyright: ignore


def test_evaluating_does_not_disturb_learning(trained: Agent) -> None:
    watched = fs.NFWPO(drift(), seed=0, noise=TOY.noise, **SMALL)
    for _ in range(4):
        watched.learn(25).evaluate(2)
    assert_equal_policies(watched, trained)


def test_an_environment_that_cannot_be_copied_is_not_evaluated() -> None:
    env = fs.constrain(Drift(), force)
    assert isinstance(env, gym.Env)
    agent = fs.NFWPO(env, **SMALL).learn(3)
    with pytest.raises(ValueError, match="evaluate: the environment cannot be copied"):
        agent.evaluate(1)
    assert len(agent.evaluate(2, env=drift()).returns) == 2


class Interrupting(gym.Wrapper):
    """Presses Ctrl-C in the middle of its 30th step."""

    made = 0

    def step(self, action: np.ndarray):
        self.made += 1
        if self.made == 30:
            os.kill(os.getpid(), signal.SIGINT)
        return self.env.step(action)


def test_ctrl_c_leaves_an_agent_that_can_go_on(trained: Agent) -> None:
    env = fs.constrain(Interrupting(gym.make("toy/Free-v0")), force)
    assert isinstance(env, gym.Env)
    agent = fs.NFWPO(env, seed=0, noise=TOY.noise, **SMALL)
    handler = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        agent.learn(100)
    assert signal.getsignal(signal.SIGINT) is handler
    assert agent.step == 30
    agent.learn(70)
    assert_equal_policies(agent, trained)


def torque(obs: jax.Array) -> fs.sets.Ball:
    return fs.sets.Ball(jnp.zeros(1), 2.0 - 0.2 * jnp.abs(obs[2]))


def pendulum() -> gym.Env:
    """Pendulum whose torque may be the smaller the faster it turns."""
    env = fs.constrain(gym.make("Pendulum-v1"), torque)
    assert isinstance(env, gym.Env)
    return env


@pytest.mark.parametrize(
    "method",
    [
        fs.DDPGProjection,
        *(
            pytest.param(method, marks=pytest.mark.slow)
            for method in (fs.DDPGShaping, fs.DDPGOptLayer, fs.ProjectedGradient)
        ),
    ],
)
def test_every_method_learns_on_pendulum(method: type[Agent], tmp_path: Path) -> None:
    agent = method(pendulum(), seed=0, **{**SMALL, "warmup": 0}).learn(60)
    agent.save(tmp_path / "pendulum.feasible")
    loaded = fs.load(tmp_path / "pendulum.feasible", pendulum())
    for speed in np.linspace(-8, 8, 9):
        action = loaded.predict([1.0, 0.0, speed])
        assert abs(action[0]) <= 2.0 - 0.2 * abs(speed) + 2e-5
    found = agent.evaluate(1)
    assert found.executed_violation <= 2e-5
    assert -2000 < found.mean < 0  # the range of Pendulum's returns: 200 steps of at most 16.3 off


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"colour": "red"}, "NFWPO: There is no hyper-parameter 'colour'. Known: noise"),
        ({"rule": "x"}, "NFWPO: There is no hyper-parameter 'rule'"),
        ({"batch_size": "many"}, "NFWPO: batch_size must be a whole number, not 'many'"),
        ({"batch_size": 2.5}, "NFWPO: batch_size must be a whole number, not 2.5"),
        ({"batch_size": True}, "NFWPO: batch_size must be a whole number, not True"),
        ({"batch_size": 0}, "NFWPO: batch_size must be at least 1, not 0"),
        ({"warmup": -1}, "NFWPO: warmup must be at least 0, not -1"),
        ({"critic_interval": 0}, "NFWPO: critic_interval must be at least 1, not 0"),
        ({"discount": 1.01}, "NFWPO: discount must be between 0 and 1, not 1.01"),
        ({"actor_rate": -1e-3}, "NFWPO: actor_rate must be at least 0, not -0.001"),
        ({"critic_rate": math.inf}, "NFWPO: critic_rate must be finite, not inf"),
        ({"noise": (0.1, -0.1)}, "NFWPO: noise must be at least 0, not -0.1"),
        ({"frank_wolfe_step": 2.0}, "NFWPO: frank_wolfe_step must be between 0 and 1, not 2.0"),
        ({"frank_wolfe_by": "luck"}, "NFWPO: frank_wolfe_by must be one of 'constant', 'gap', 'search', not 'luck'"),
        ({"frank_wolfe_inner": 0}, "NFWPO: frank_wolfe_inner must be at least 1, not 0"),
        ({"frank_wolfe_inside": -1.0}, "NFWPO: frank_wolfe_inside must be at least 0, not -1.0"),
        ({"projected_gradient_step": 1.0}, "NFWPO: There is no hyper-parameter 'projected_gradient_step'"),
        ({"twin": 1}, "NFWPO: twin must be true or false, not 1"),
        ({"hidden_layers": 32}, "NFWPO: hidden_layers must be a list, each a whole number, not 32"),
        ({"hidden_layers": ("a",)}, "NFWPO: hidden_layers must be a list, each a whole number"),
        ({"discount": "high"}, "NFWPO: discount must be a number, not 'high'"),
        ({"noise": "loud"}, "NFWPO: noise must be a number or a list, each a number, not 'loud'"),
        ({"output": "sigmoid"}, "NFWPO: output must be one of 'tanh', 'relu', 'leaky_relu', 'linear', not 'sigmoid'"),
    ],
)
def test_settings_that_do_not_fit_are_named(changes: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        fs.NFWPO(drift(), **changes)  # pyright: ignore[reportArgumentType]


def test_a_margin_leaves_something_of_the_set() -> None:
    with pytest.raises(ValueError, match=r"ProjectedGradient: projected_gradient_margin must be below 1, not 1\.0"):
        fs.ProjectedGradient(drift(), projected_gradient_margin=1.0)


def test_an_averaged_policy_is_learned_alike_and_used_instead(trained: Agent) -> None:
    averaged = fs.NFWPO(drift(), seed=0, noise=TOY.noise, averaged=True, **SMALL).learn(100)
    explored = [agent._driver.carry.algorithm.actor for agent in (trained, averaged)]  # pyright: ignore
    assert all(map(np.array_equal, *map(jax.tree.leaves, explored)))
    assert not all(map(np.array_equal, jax.tree.leaves(trained.policy), jax.tree.leaves(averaged.policy)))


def test_lists_are_settings_too() -> None:
    algorithm = fs.NFWPO(drift(), hidden_layers=[8, 4], noise=[0.1, 0.2]).algorithm
    assert isinstance(algorithm, DDPG)
    assert (algorithm.hidden_layers, algorithm.noise) == ((8, 4), (0.1, 0.2))


def test_the_noise_is_a_tenth_of_half_the_action_box() -> None:
    algorithm = fs.NFWPO(pendulum()).algorithm
    assert isinstance(algorithm, DDPG)
    assert algorithm.noise == pytest.approx((0.2,))


def test_environments_that_do_not_fit_are_named() -> None:
    with pytest.raises(ValueError, match=r"states no constraint; wrap it with feasible\.constrain"):
        fs.NFWPO(gym.make("Pendulum-v1"))
    with pytest.raises(ValueError, match="the action space must be a one-dimensional Box, got Discrete"):
        fs.constrain(gym.make("CartPole-v1"), force)
    unbounded = Drift()
    unbounded.action_space = gym.spaces.Box(-np.inf, np.inf, (2,), np.float32)
    with pytest.raises(ValueError, match="the action space must have finite bounds"):
        fs.NFWPO(fs.constrain(unbounded, force))
    pictures = Drift()
    pictures.observation_space = gym.spaces.Box(0, 255, (3, 3, 3), np.uint8)
    with pytest.raises(ValueError, match="env: obs is an image"):
        fs.NFWPO(fs.constrain(pictures, lambda obs: fs.sets.Ball(jnp.zeros(2), 1.0)))


def test_a_vector_of_environments_is_learned_from_at_once(tmp_path: Path) -> None:
    copies = SyncVectorEnv([Drift] * 2, autoreset_mode=AutoresetMode.SAME_STEP)
    env = fs.constrain(copies, force)
    assert isinstance(env, ConstrainedVectorEnv)
    agent = fs.PPO(env, seed=0, horizon=20, minibatch=4, epochs=1, hidden_layers=(4,)).learn(40)
    assert agent.step == 40
    with pytest.raises(ValueError, match="steps must be a multiple of the 2 copies of the environment, not 3"):
        agent.learn(3)
    assert len(agent.evaluate(1).returns) == 1  # in a single one, made as those of the vector were
    agent.learn(20, run=tmp_path / "run", eval_every=20, episodes=1)
    assert fs.resume(tmp_path / "run", fs.constrain(copies, force)).step == 0  # finished: the policy alone
    agent.save(tmp_path / "policy.feasible")
    single = fs.constrain(Drift(), force)
    action = agent.predict([0.3, 0.2, 0.1])
    assert np.linalg.norm(action) <= 0.1 + 1e-5
    np.testing.assert_array_equal(fs.load(tmp_path / "policy.feasible", single).predict([0.3, 0.2, 0.1]), action)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["NFWPO", "SAC"])
def test_a_vector_as_gymnasium_makes_it_is_learned_from_with_a_replay(name: str) -> None:
    """Its episodes start again a step late; no such step is learned from."""
    env = fs.constrain(SyncVectorEnv([Drift] * 3), force)
    few = {"warmup": 0, "batch_size": 4, "replay_size": 100, "hidden_layers": (4,)}
    agent = getattr(fs, name)(env, seed=0, **few, **({"learning_starts": 6} if name == "SAC" else {})).learn(90)
    assert (agent.step, agent.algorithm.copies) == (90, 3)
    rows = np.array(agent._driver.carry.algorithm.replay.rows)[:90]
    assert (rows[:, -2] != 0.0).all()  # the reward of a step that is ignored is 0
    np.testing.assert_array_less(np.linalg.norm(rows[:, 5:7], axis=1), rows[:, 2] + 1e-5)


def test_what_a_method_cannot_do_is_said() -> None:
    env = fs.constrain(Drift(), force)
    for wrong in ({"noise": [0.1, 0.2, 0.3]}, {"target_noise": [0.1, 0.2, 0.3]}):
        with pytest.raises(ValueError, match=r"DDPG: \w+ must be one number or 2, one for each action, not 3"):
            fs.NFWPO(env, **SMALL, **wrong).learn(1)  # pyright: ignore
    with pytest.raises(ValueError, match=r"SAC: entropy_weight must be above 0, not 0: entropy_target tunes its log"):
        fs.SAC(env, entropy_weight=0.0, entropy_target="auto").learn(1)
    with pytest.raises(ValueError, match=r"FOCOPS: temperature must be above 0, not 0\.0: it divides"):
        fs.FOCOPS(env, temperature=0)
    with pytest.raises(ValueError, match=r"PPO: capg needs a Box for a feasible set, .* but this task has a Disc"):
        fs.PPO(env, capg=True)
    with pytest.raises(ValueError, match=r"steps 3 copies of its environment .*, but it was given 1; make a vector"):
        fs.TRPO(env, copies=3)


@pytest.mark.slow
def test_tasks_have_agents_too() -> None:
    agent = fs.NFWPO(fs.make("reacher"), seed=0, **SMALL).learn(30)
    found = agent.evaluate(2)
    assert len(found.returns) == 2
    assert found.executed_violation <= 1e-5
