"""Agents of other maps, outputs and critics merged into one algorithm, against the same agents alone, in float64."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from feasible.algorithms.actor_rules import FrankWolfe, PolicyGradient
from feasible.algorithms.base import Spec
from feasible.algorithms.ddpg import DDPG, DDPGState
from feasible.algorithms.maps import MAPS
from feasible.algorithms.merged import OneOfMaps, alike, merged
from feasible.algorithms.replay import draw
from feasible.run.drive.groups import grouped, in_groups
from feasible.sets import Allocation, Box
from tests.algorithms.plain import ball_task, new, random_transition, stored

SPEC = ball_task()
PROJECTION = DDPG(
    rule=PolicyGradient(), noise=0.5, warmup=1, batch_size=8, replay_size=16, hidden_layers=(8,), target_noise=0.3
)
AGENTS = (
    PROJECTION,
    replace(PROJECTION, rule=FrankWolfe(0.2)),
    replace(PROJECTION, critic_at="proposed"),
    replace(PROJECTION, map="alpha", output="linear", noise=0.8),
    replace(PROJECTION, map="radial", output="linear", penalty=0.5),
)


def answers(algorithm: DDPG, state: DDPGState, spec: Spec) -> dict[str, object]:
    """All that depends on the map, the output or the critic's place."""
    obs, key = jnp.array([1.0, -0.5, 2.0]), jax.random.key(3)
    batch = draw(state.replay, algorithm.batch_size, key, spec)
    return {
        "act": algorithm.act(state.actor, spec, obs, key, explore=False),
        "explore": algorithm.act(state.actor, spec, obs, key, explore=True),
        "warmup": algorithm.warmup_proposal(spec, obs, key),
        "actor": algorithm.actor_gradient(state, spec, batch)[0].layers,
        "critic": algorithm.critic_loss(state.critic, state, spec, batch, key)[0],
    }


def learners() -> dict[str, DDPGState]:
    """The same weights and transitions under an actor of each output."""
    rng = np.random.default_rng(0)
    made = [random_transition(rng, SPEC, terminated=False, truncated=False) for _ in range(12)]
    agents = {output: replace(PROJECTION, output=output) for output in ("tanh", "linear")}
    return {output: stored(agent, SPEC, new(agent, SPEC), made) for output, agent in agents.items()}


def test_merged_agents_answer_as_they_do_alone() -> None:
    states = learners()
    numbers, rest = eqx.partition(merged(AGENTS, "float64"), lambda leaf: isinstance(leaf, np.ndarray))
    assert (rest.output, numbers.critic_at.tolist()) == ("linear", [False, False, True, False, False])
    found = jax.jit(jax.vmap(lambda own: answers(eqx.combine(own, rest), states["linear"], SPEC)))(numbers)
    for number, agent in enumerate(AGENTS):
        known = jax.jit(lambda state, agent=agent: answers(agent, state, SPEC))(states[agent.output])
        for (path, one), other in zip(jax.tree.leaves_with_path(found), jax.tree.leaves(known), strict=True):
            np.testing.assert_allclose(one[number], other, rtol=1e-9, atol=1e-12, err_msg=f"{number} {path}")


def test_a_map_without_an_answer_does_not_reach_agents_of_another() -> None:
    """The centre of this set lies on its boundary: from there no ray has a length."""
    point = Box(jnp.zeros(2), jnp.array([0.0, 1.0]))
    pair = OneOfMaps((MAPS["projection"], MAPS["radial"]), ("tanh", "linear"), jnp.array(0))
    radial = OneOfMaps(pair.maps, pair.activations, jnp.array(1))
    output = jnp.array([0.3, -2.0])

    def slope(action_map: OneOfMaps) -> jax.Array:
        return jax.jit(jax.jacobian(lambda y: action_map.action(SPEC, point, y)))(output)

    np.testing.assert_allclose(slope(pair), np.diag(1 / np.cosh(output) ** 2), rtol=1e-12)
    assert np.isnan(slope(radial)).any()


def test_maps_with_fewer_outputs_make_groups_of_their_own() -> None:
    order = in_groups([AGENTS[3], AGENTS[0], AGENTS[4], AGENTS[2], AGENTS[1]])
    assert order == [0, 2, 1, 3, 4]
    agents = [AGENTS[number] for number in (3, 4, 0, 2, 1)]
    flat = Spec(3, jnp.zeros(2), jnp.ones(2), lambda obs: Allocation(1.0, jnp.zeros(2), jnp.ones(2)), episode_length=5)
    assert [group.size for group in grouped(agents, flat)] == [2, 3]
    assert [group.size for group in grouped(agents, SPEC)] == [5]
    assert alike(AGENTS[0], flat=True) != alike(AGENTS[3], flat=True)
