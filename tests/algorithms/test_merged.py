"""Agents merged into one algorithm against the same agents alone: 100 updates on recorded transitions, in float64."""

from collections.abc import Sequence
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from feasible.algorithms.actor_rules import FrankWolfe, PolicyGradient, ProjectedGradient, ThroughProjection
from feasible.algorithms.base import Algorithm
from feasible.algorithms.ddpg import DDPG
from feasible.algorithms.merged import OneOf, alike, merged
from feasible.algorithms.replay import draw
from feasible.algorithms.sac import SAC
from feasible.run.drive.groups import in_groups
from feasible.run.drive.population_programs import PopulationPrograms
from feasible.run.drive.programs import Programs
from feasible.run.drive.step import Step
from tests.algorithms.plain import ball_task, new, random_transition, stored

SPEC = ball_task()
UPDATES = 100
NFWPO = DDPG(rule=FrankWolfe(0.05), noise=0.1, warmup=0, batch_size=8, replay_size=64, hidden_layers=(8,))
SEARCHING = FrankWolfe(0.3, by="search", inner=2, away=True)
# One group of five rules and of other numbers, one of SAC, which updates at every other step, one with two critics,
# one whose rule asks the critic more than once, and one that normalises observations.
AGENTS = (
    NFWPO,
    replace(NFWPO, rule=FrankWolfe(0.2), actor_rate=1e-3, noise=0.3),
    replace(NFWPO, rule=PolicyGradient(), discount=0.9, shaping=3.0),
    replace(NFWPO, rule=ThroughProjection(0.5), critic_rate=3e-3, target_ratio=0.05),
    replace(NFWPO, rule=ProjectedGradient(0.1, inside=2.0, margin=0.2)),
    replace(NFWPO, rule=FrankWolfe(0.3, by="gap")),
    SAC(warmup=0, learning_starts=0, interval=2, updates=2, batch_size=4, replay_size=64, hidden_layers=(8,)),
    replace(NFWPO, twin=True, target_noise=0.2, actor_interval=2),
    replace(NFWPO, rule=SEARCHING),
    replace(NFWPO, normalised=True),
    replace(NFWPO, normalised=True, rule=PolicyGradient(), discount=0.9),
)
SAC_AGENT = 6
SEEDS = (0, 1, 2, 2, 4, 5, 6, 7, 8, 9, 10)
# Two rules with other numbers, two critics and normalised observations, and SAC. One critic is asked by
# tests/run/population/test_training.py, a rule that asks the critic more than once by test_frank_wolfe_steps.py.
FEW: Sequence[Algorithm] = (
    *(replace(agent, twin=True, target_noise=0.2, normalised=True) for agent in AGENTS[1:3]),
    AGENTS[SAC_AGENT],
)


def recorded(agent: int) -> np.ndarray:
    """First an observation, then packets, of an environment that does not care what it is told."""
    rng, packets = np.random.default_rng(agent), []
    for step in range(UPDATES):
        made = random_transition(rng, SPEC, terminated=step % 7 == 0, truncated=step % 5 == 0)
        packets.append(np.hstack([made.next_obs, made.obs, made.reward, made.terminated, made.truncated]))
    return np.stack(packets)


@eqx.filter_jit
def first_of(algorithm: Algorithm, key: jax.Array, obs: np.ndarray) -> tuple[list[jax.Array], jax.Array]:
    carry, report, _ = Step(algorithm, SPEC).first(key, jnp.asarray(obs))
    return jax.tree.leaves(carry), report


def first(algorithm: Algorithm, key: jax.Array, obs: np.ndarray) -> tuple[list[jax.Array], jax.Array]:
    """The first carry of an agent alone: neither its rule nor its rates matter yet, so few programs serve all."""
    if isinstance(algorithm, DDPG):
        noise = jnp.asarray(algorithm.noise)
        few = replace(NFWPO, twin=algorithm.twin, normalised=algorithm.normalised, noise=noise)  # pyright: ignore[reportArgumentType]
        return first_of(few, key, obs)
    return first_of(algorithm, key, obs)


@pytest.mark.parametrize(
    ("agents", "sizes"),
    [
        pytest.param(FEW, [2, 1], id="few"),
        pytest.param(AGENTS, [6, 1, 1, 1, 2], id="all", marks=pytest.mark.slow),
    ],
)
def test_agents_in_a_population_learn_what_they_learn_alone(agents: Sequence[Algorithm], sizes: list[int]) -> None:
    """Equal to 1e-6 after 100 updates, though the neighbours' methods, numbers, batches and intervals are others."""
    seeds = SEEDS[: len(agents)]
    packets = np.stack([recorded(agent) for agent in range(len(agents))], axis=1)
    obs = packets[-1, :, : SPEC.observation_size]
    together = PopulationPrograms(agents, SPEC)
    assert [group.size for group in together.groups] == sizes
    leaves, report = together.first(seeds, obs)
    reports, places = [np.asarray(report)], [leaf.unsafe_buffer_pointer() for leaf in leaves]

    def exchange(_: int, report: np.ndarray) -> np.ndarray:
        if report.any():  # the first report of a loop is none
            reports.append(report)
        return packets[len(reports) - 1]

    together.exchange = exchange
    while len(reports) <= UPDATES:
        leaves, report = together.stretch(len(reports) - 1, UPDATES)[1](leaves)
        reports.append(np.asarray(report))
    assert [leaf.unsafe_buffer_pointer() for leaf in leaves] == places  # all memory is handed on
    # Some update at every second step only, and yet 50 steps are one dispatch.
    assert [(len(cycle), list(loops)) for cycle, loops in together.loops.items()] == [(2, [50])]
    carries = together.carries(leaves)
    for agent, algorithm in enumerate(agents):
        number, group = next((n, g) for n, g in enumerate(together.groups) if g.rows.start <= agent < g.rows.stop)
        alone = Programs(algorithm, SPEC)
        begun, expected = first(algorithm, jax.random.key(seeds[agent]), obs[agent])
        own = alone.leaves(jax.tree.unflatten(alone.structure, begun))
        size = len(expected)
        actions, metrics = [np.asarray(expected)], [np.zeros(0)]
        told = [np.zeros(0)]  # of the same metrics in the population
        for step in range(1, len(packets) + 1):
            program = alone.program(step)
            own, expected = program.function(own, packets[step - 1, agent], step - 1)
            actions.append(np.asarray(expected)[:size])
            metrics.append(np.asarray(expected)[size:])
            names = together.program(step).metered.names[number]
            assert together.program(step).metered.own[agent] == program.metered.own[0]
            told.append(reports[step][agent, [size + names.index(name) for name in program.metered.own[0]]])
        # The first weights are rounded to float32.
        np.testing.assert_allclose([report[agent, :size] for report in reports], actions, atol=1e-6)
        np.testing.assert_allclose(np.concatenate(told), np.concatenate(metrics), rtol=1e-6, atol=1e-9)
        mine = jax.tree.map(lambda leaf, row=agent - group.rows.start: leaf[row], carries[number])
        for found, known in zip(jax.tree.leaves(mine), jax.tree.leaves(alone.carry(own)), strict=True):
            np.testing.assert_allclose(found, known, rtol=1e-6, atol=1e-6)


def test_an_agent_without_target_noise_has_none_beside_one_that_has() -> None:
    """Outputs that leave the box tell them apart: what is noisy is clipped."""
    wide = replace(NFWPO, output="leaky_relu", discount=0.9)
    rng = np.random.default_rng(0)
    made = [random_transition(rng, SPEC, terminated=False, truncated=False) for _ in range(16)]
    state = stored(wide, SPEC, new(wide, SPEC), made)
    state = eqx.tree_at(lambda s: s.target_actor.layers[-1].bias, state, jnp.full(2, 3.0))
    batch = jax.jit(draw, static_argnums=1)(state.replay, wide.batch_size, jax.random.key(1), SPEC)
    pair = merged([wide, replace(wide, target_noise=0.2)], "float64")
    numbers, rest = eqx.partition(pair, lambda leaf: isinstance(leaf, np.ndarray))

    def loss(numbers: DDPG) -> jax.Array:
        return eqx.combine(numbers, rest).critic_loss(state.critic, state, SPEC, batch, jax.random.key(2))[0]

    together = jax.jit(jax.vmap(loss))(numbers)
    alone = [
        jax.jit(a.critic_loss)(state.critic, state, SPEC, batch, jax.random.key(2))[0]
        for a in (wide, replace(wide, target_noise=0.2))
    ]
    np.testing.assert_allclose(together, alone, rtol=1e-9)
    assert abs(float(alone[0] - alone[1])) > 1e-3


def test_what_decides_shapes_keeps_agents_apart_and_numbers_do_not() -> None:
    same = (replace(NFWPO, discount=0.5), replace(NFWPO, rule=PolicyGradient(), shaping=1.0))
    assert all(alike(other) == alike(NFWPO) for other in same)
    asking = replace(NFWPO, rule=FrankWolfe(0.3, inner=2))
    assert alike(asking) == alike(replace(NFWPO, rule=FrankWolfe(0.1, inner=2)))
    assert len({alike(a) for a in (asking, replace(NFWPO, rule=FrankWolfe(0.3, inner=3)), NFWPO)}) == 3
    apart = (
        {"batch_size": 9},
        {"twin": True},
        {"averaged": True},
        {"normalised": True},
        {"warmup": 1},
        {"hidden_layers": (8, 7)},
        {"actor_interval": 2},
        {"actor_hidden": "leaky_relu"},
    )
    assert all(alike(replace(NFWPO, **changes)) != alike(NFWPO) for changes in apart)
    assert len({alike(replace(NFWPO, normalised=how)) for how in (False, True, "shrunk")}) == 3  # pyright: ignore
    soft = AGENTS[SAC_AGENT]
    assert in_groups([soft, AGENTS[0], soft, AGENTS[3]]) == [0, 2, 1, 3]


def test_equal_numbers_stay_numbers_and_one_rule_stays_itself() -> None:
    assert merged([NFWPO, NFWPO], "float32") == NFWPO
    mixed = merged(AGENTS[:4], "float32")
    assert isinstance(mixed.rule, OneOf)  # pyright: ignore[reportAttributeAccessIssue]
    assert mixed.rule.which.tolist() == [0, 0, 1, 2]  # pyright: ignore[reportAttributeAccessIssue]
    np.testing.assert_allclose(mixed.rule.rules[0].step[:2], [0.05, 0.2])  # pyright: ignore[reportAttributeAccessIssue]
    np.testing.assert_allclose(mixed.shaping, [0, 0, 3, 0])  # pyright: ignore[reportAttributeAccessIssue]


def test_products_are_in_full_precision() -> None:
    """Recent GPUs round the factors of a float32 product to 10 bits unless told otherwise."""
    step = Step(NFWPO, SPEC)
    carry = Programs(NFWPO, SPEC).shape
    packet = jax.ShapeDtypeStruct((2 * SPEC.observation_size + 3,), SPEC.low.dtype)

    def advance(carry: object, packet: jax.Array) -> object:
        return step.advance(carry, packet, due=(frozenset({"actor", "critic"}),), warm=False)  # pyright: ignore[reportArgumentType]

    text = jax.jit(advance).lower(carry, packet).as_text()
    products = [line for line in text.splitlines() if "stablehlo.dot_general" in line]
    assert len(products) > 10
    assert all("precision = [HIGHEST, HIGHEST]" in line for line in products)
