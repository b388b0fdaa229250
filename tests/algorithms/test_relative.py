"""Outputs relative to a known feasible action: zeros leave things as they are, and maps into the set stay inside."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import equinox as eqx
import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.typing import ArrayLike

import feasible
from feasible.algorithms.base import Spec
from feasible.algorithms.ddpg import DDPG
from feasible.algorithms.description import build_algorithm, changed, describe
from feasible.algorithms.maps import MAPS
from feasible.algorithms.merged import merged
from feasible.algorithms.nets import Output, activated
from feasible.algorithms.replay import Batch
from feasible.algorithms.spec import spec_of
from feasible.catalogue.registry import METHODS
from feasible.constraints import fixed
from feasible.sets import ActionSet, Allocation, Ball, BallBox, IntegerAllocation, WeightedL1Box
from tests.lazily import Lazily

SETS: Mapping[str, ActionSet] = Lazily(
    {
        "allocation": lambda: Allocation(1.0, [0.0, 0.0, 0.1], [0.8, 0.6, 0.9]),
        "integers": lambda: IntegerAllocation(9, [0, 0, 0], [5, 5, 5]),
        "weighted-l1": lambda: WeightedL1Box([1.0, -2.0, 0.0], 1.5, [1.0, 1.0, 0.5]),
        "ball-and-box": lambda: BallBox([0.0] * 3, 1.0, [-0.5, -1.0, -0.2], [0.5, 0.4, 2.0]),
    }
)
BIKES = (5, 6, 7, 8, 9)


def relative(region: ActionSet, reference: jax.Array) -> Spec:
    low, high = jnp.full(3, -1.0), jnp.full(3, 5.0)
    return Spec(3, low, high, fixed(region), reference=reference)


@pytest.mark.parametrize("kind", SETS)
def test_maps_go_out_from_the_reference_and_stay_inside(kind: str) -> None:
    """From corners, where a set has no room in most directions."""
    region = SETS[kind]
    gradients = jax.random.normal(jax.random.key(0), (20, 3))
    corners = jax.vmap(region.maximise_linear)(gradients)
    outputs = 2.0 * jax.random.normal(jax.random.key(1), (20, region.hull_dim))

    def answers(corner: jax.Array, output: jax.Array) -> tuple[jax.Array, list[jax.Array]]:
        spec, zeros = relative(region, corner), jnp.zeros_like(output)
        maps = [MAPS[name] for name in ("alpha", "radial")]
        noisy = [one.explored(spec, region, output, jnp.ones(3), output) for one in maps]
        rest = jnp.stack([one.action(spec, region, zeros) for one in maps])
        return rest, [*(one.action(spec, region, output) for one in maps), *noisy]

    rest, moved = jax.jit(jax.vmap(answers))(corners, outputs)
    near = 0.98 * np.asarray(corners) + 0.02 * np.asarray(region.centre())
    np.testing.assert_allclose(rest, np.stack([near, near], axis=1), atol=1e-5)
    for actions in moved:
        assert bool(jnp.all(jax.vmap(region.contains)(actions)))
        assert float(jnp.max(jnp.abs(actions - corners))) > 0.1


@pytest.mark.parametrize("activation", ["tanh", "linear", "relu"])
def test_projection_adds_the_output_to_the_reference(activation: Output) -> None:
    """The box reaches from -1 to 5; proposals and the target's action are clipped to it, the actor's own is not."""
    region, reference, x = SETS["weighted-l1"], jnp.array([0.1, -0.2, 3.0]), jnp.array([0.3, -2.0, 4.0])
    spec, projection = relative(region, reference), MAPS["projection"]
    output = activated(activation, x, *projection.bounds(spec, region))
    added = {"tanh": 3.0 * np.tanh(x), "linear": x, "relu": np.maximum(x, 0.0)}[activation]
    moved = np.asarray(reference) + added
    np.testing.assert_allclose(projection.action(spec, region, output), moved, rtol=1e-6)
    np.testing.assert_allclose(projection.proposed(spec, region, output), np.clip(moved, -1.0, 5.0), rtol=1e-6)
    noisy = projection.target(spec, region, output, jnp.full(3, 0.5))
    np.testing.assert_allclose(noisy, np.clip(moved + 0.5, -1.0, 5.0), rtol=1e-6)
    quiet = projection.target(spec, region, output, None)
    np.testing.assert_allclose(quiet, np.clip(moved, -1.0, 5.0), rtol=1e-6)


@pytest.mark.parametrize("algo", ["td3-radial", "td3-projection"])
def test_an_actor_of_zeros_leaves_the_bikes_where_they_are(algo: str) -> None:
    """The return of a day is then that of a plain loop that executes the bikes of the observation."""
    env = feasible.make("bss-5")
    spec = spec_of(env)
    agent = METHODS[algo].make(spec)
    assert isinstance(agent, DDPG)
    agent = eqx.tree_at(lambda a: a.relative_to, agent, BIKES)
    policy = jax.tree.map(jnp.zeros_like, agent.policy(agent.init(jax.random.key(0), spec)))
    act = jax.jit(lambda obs: agent.act(policy, spec, obs, jax.random.key(0), explore=False).executed)

    def day(decide: Callable[[np.ndarray], ArrayLike]) -> float:
        total, (obs, _), ended = 0.0, env.reset(seed=3), False
        while not ended:
            obs, reward, terminated, truncated, _ = env.step(np.asarray(decide(obs)))
            total, ended = total + float(reward), bool(terminated or truncated)
        return total

    assert day(lambda obs: act(jnp.asarray(obs, jnp.float32))) == day(lambda obs: obs[5:10])


def test_agents_of_one_program_act_as_they_do_alone() -> None:
    """Maps of both kinds in one group, with normalised observations: the reference is what the observation says."""
    spec = spec_of(feasible.make("reacher"))  # whose actions are in the plane, as its first two entries are
    settings = {"relative_to": (0, 1), "normalised": True, "hidden_layers": (8,), "replay_size": 10}
    made = [METHODS[algo].make(spec) for algo in ("td3-projection", "td3-alpha", "td3-radial")]
    alone = [changed(agent, settings, "test") for agent in made if isinstance(agent, DDPG)]
    obs, key = jnp.linspace(-0.02, 0.03, spec.observation_size, dtype=jnp.float32), jax.random.key(1)
    numbers, rest = eqx.partition(merged(alone, spec.low.dtype), lambda leaf: isinstance(leaf, np.ndarray))

    def proposed(agent: DDPG) -> jax.Array:
        policy = agent.policy(agent.init(jax.random.key(0), spec))
        return agent.act(policy, spec, obs, key, explore=True).proposed

    together = jax.jit(jax.vmap(lambda own: proposed(eqx.combine(own, rest))))(numbers)
    single = [proposed(agent) for agent in alone]
    np.testing.assert_allclose(together, np.stack(single), rtol=1e-5, atol=1e-7)
    unmoved = [proposed(replace(agent, relative_to=())) for agent in alone]
    assert all(np.abs(own - other).max() > 1e-3 for own, other in zip(single, unmoved, strict=True))


def test_actor_and_critic_learn_at_actions_that_are_relative() -> None:
    """Relative to the centre of a ball in the box's middle nothing changes; relative to another action all does."""
    spec = Spec(3, -jnp.ones(2), jnp.ones(2), fixed(Ball([0.0, 0.0], 0.7)))
    made = METHODS["td3-radial"].make(spec)
    assert isinstance(made, DDPG)
    plain = changed(made, {"hidden_layers": (8,), "replay_size": 4}, "test")
    moved = changed(plain, {"relative_to": (0, 1)}, "test")
    state = plain.init(jax.random.key(0), spec)

    def learned(agent: DDPG, reference: tuple[float, float]) -> tuple[float, np.ndarray]:
        """The critic's loss, and the gradient of the actor's first weights."""
        obs = jnp.array([[*reference, 0.5], [*reference, -0.3]])
        batch = Batch(obs, obs[:, :2], obs[:, :2], obs, jnp.ones(2), jnp.ones(2))
        loss, _ = agent.critic_loss(state.critic, state, spec, batch, jax.random.key(1))
        grads, _ = agent.actor_gradient(state, spec, batch)
        return float(loss), np.asarray(jax.tree.leaves(grads)[0])

    for reference, same in (((0.0, 0.0), True), ((0.3, -0.2), False)):
        (loss, grads), (other, others) = (learned(agent, reference) for agent in (plain, moved))
        assert (abs(loss - other) < 1e-6) == same
        assert (np.abs(grads - others).max() < 1e-7) == same


@pytest.mark.parametrize("places", [(5, 6), (5, 6, 7, 8, 11)])
def test_entries_that_hold_no_action_are_refused(places: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"relative_to must name the 5 entries .* each from 0 to 10, not \(5, 6"):
        feasible.agent("td3-radial", feasible.make("bss-5"), relative_to=places, warmup=0).learn(1)
    with pytest.raises(ValueError, match="relative_to must be at least 0"):
        feasible.agent("td3-radial", feasible.make("bss-5"), relative_to=(-1, -2, -3, -4, -5))


def test_it_learns_relative_to_the_last_action_and_is_described() -> None:
    """With a limit on how fast an action may change, of an environment that remembers the last one."""
    env = feasible.remember_action(gym.make("Pendulum-v1"))
    env = feasible.constrain(env, lambda obs: feasible.sets.Box(obs[-1:] - 0.5, obs[-1:] + 0.5))
    agent = feasible.agent("td3-radial", env, relative_to=(3,), warmup=5, batch_size=4, hidden_layers=(8,)).learn(12)
    described = describe(agent.algorithm)
    assert build_algorithm(described) == agent.algorithm
    assert isinstance(described, dict)
    assert described["relative_to"] == [3]
