"""Each departure of the authors' code does what it says; an algorithm with none of them is the core's."""

from dataclasses import replace
from functools import partial
from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array
from numpy.typing import NDArray

from feasible.algorithms.actor_rules import FrankWolfe, ThroughProjection
from feasible.algorithms.base import Decision, Spec, Transition
from feasible.algorithms.ddpg import DDPG
from feasible.algorithms.fwpo_critic import BikeTable
from feasible.algorithms.merged import alike, merged
from feasible.algorithms.replay import Replay, draw
from feasible.paper.as_authors import (
    AuthorsDDPG,
    AuthorsProjection,
    AuthorsTable,
    as_authors,
)
from feasible.paper.as_authors.algorithms import integer_allocations
from feasible.sets import Allocation, Ball, Box, IntegerAllocation
from tests.algorithms.plain import actor_output, ball_task, new, random_transition

SPEC = ball_task()
WIDE = Spec(3, -jnp.ones(4), jnp.ones(4), lambda obs: Box(-jnp.ones(4), 0.5 * jnp.ones(4)), episode_length=5)
BOTH = frozenset({"actor", "critic"})
STATIONS = IntegerAllocation(90.0, np.zeros(3, np.float32), np.full(3, 35.0, np.float32))
BIKES = Spec(7, jnp.zeros(3, jnp.float32), jnp.full(3, 35.0, jnp.float32), lambda obs: STATIONS, 100)
SMALL = {"noise": 0.1, "hidden_layers": (8, 6), "replay_size": 16, "batch_size": 8}
Kind = TypeVar("Kind", bound=DDPG)


def small(kind: type[Kind], **settings: object) -> Kind:
    return kind(**{"rule": FrankWolfe(0.05), **SMALL, **settings})  # pyright: ignore


def leaves(tree: object) -> list[NDArray]:
    return [np.asarray(leaf) for leaf in jax.tree.leaves(tree)]


def equal(one: object, other: object) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(leaves(one), leaves(other), strict=True))


def test_with_none_set_it_is_the_core_s_program() -> None:
    programs = []
    for kind, rule in ((DDPG, ThroughProjection()), (AuthorsDDPG, AuthorsProjection())):
        algorithm = small(kind, rule=rule)

        def everything(transition: Transition, key: Array, algorithm: DDPG = algorithm) -> tuple:
            state = algorithm.observe(algorithm.init(key, SPEC), SPEC, transition)
            state, metrics = algorithm.update(state, SPEC, key, BOTH)
            decision = algorithm.act(algorithm.policy(state), SPEC, transition.obs, key, explore=True)
            return state, metrics, decision, algorithm.warmup_proposal(SPEC, transition.obs, key)

        transition = random_transition(np.random.default_rng(0), SPEC, terminated=False, truncated=True)
        programs.append(str(jax.make_jaxpr(everything)(transition, jax.random.key(0))))
    assert programs[0] == programs[1]
    assert len(programs[0]) > 10_000


class TestNetworks:
    """Where target networks start and what actors can say."""

    def test_targets_start_apart(self) -> None:
        state = small(AuthorsDDPG, targets_apart=True).init(jax.random.key(0), SPEC)
        start = small(DDPG).init(jax.random.key(0), SPEC)
        core = start.actor, start.critic
        assert equal((state.actor, state.critic), core)
        pairs = zip(leaves((state.actor, state.critic)), leaves((state.target_actor, state.target_critic)), strict=True)
        assert all(np.abs(online - target).max() > 1e-3 for online, target in pairs)

    @pytest.mark.parametrize(("least", "most"), [(10.0, 35.0), (-100.0, 100.0)])
    def test_outputs_span_a_range_of_their_own(self, least: float, most: float) -> None:
        algorithm = small(AuthorsDDPG, output_range=(least, most))
        actor = new(algorithm, SPEC).actor
        for obs in np.random.default_rng(0).normal(size=(5, 3)):
            expected = actor_output(actor, obs, np.full(2, least), np.full(2, most))
            np.testing.assert_allclose(actor(jnp.asarray(obs), SPEC.low, SPEC.high), expected, rtol=1e-12)

    def test_the_loss_is_a_mean_over_entries(self) -> None:
        ours, theirs = small(DDPG), small(AuthorsDDPG, loss_over_entries=True)
        state = new(ours, WIDE)
        batch = draw(Replay(numbered(16), jnp.int32(3)), ours.batch_size, jax.random.key(1), WIDE)
        core, mine = (leaves(jax.jit(a.actor_gradient)(state, WIDE, batch)[0]) for a in (ours, theirs))
        # mean over b and n of (a - r)^2 has 2/n times the gradient of 1/(2 b) sum (a - r)^2.
        for theirs_leaf, core_leaf in zip(mine, core, strict=True):
            np.testing.assert_allclose(theirs_leaf, core_leaf * 2 / 4, rtol=1e-9)
            assert np.any(core_leaf)


def numbered(width: int) -> Array:
    """Sixteen rows, each full of its number from 1."""
    return jnp.asarray(np.outer(np.arange(1.0, 17.0), np.ones(width)))


class TestMemory:
    """What is stored and what is drawn."""

    def stored(self, algorithm: DDPG, spec: Spec) -> NDArray:
        """The flags of fifteen rows, of which every fifth is a time limit and the seventh a termination."""
        state, rng, observe = (
            algorithm.init(jax.random.key(0), spec),
            np.random.default_rng(0),
            jax.jit(algorithm.observe),
        )
        for i in range(15):
            transition = random_transition(rng, spec, terminated=i == 6, truncated=i % 5 == 4)
            state = observe(state, spec, transition)
        return np.flatnonzero(np.asarray(state.replay.rows)[:15, -1])

    def test_limits_terminate_from_the_second_episode_on(self) -> None:
        assert SPEC.episode_length == 5
        np.testing.assert_array_equal(self.stored(small(AuthorsDDPG, limits_terminate=True), SPEC), [6, 9, 14])
        np.testing.assert_array_equal(self.stored(small(AuthorsDDPG), SPEC), [6])
        unknown = Spec(3, SPEC.low, SPEC.high, SPEC.constraint)
        np.testing.assert_array_equal(self.stored(small(AuthorsDDPG, limits_terminate=True), unknown), [4, 6, 9, 14])

    def test_the_next_row_is_drawn_until_the_ring_is_full(self) -> None:
        algorithm = small(AuthorsDDPG, zero_row=True, batch_size=2_000)
        rows = numbered(12)
        for count, expected in ((3, 4), (15, 16), (16, 16), (40, 16)):
            batch, _ = algorithm.batches(Replay(rows, jnp.int32(count)), SPEC, jax.random.key(0))
            assert set(np.asarray(batch.reward)) == set(range(1, expected + 1))
        table = AuthorsTable(rule=FrankWolfe(0.05), bikes=90, low=20, high=35, zero_row=True, batch_size=2_000)
        wide = numbered(22)
        batch = table.batch(Replay(wide, jnp.int32(3)), BIKES, jax.random.key(0))
        assert set(np.asarray(batch.reward)) == {1, 2, 3, 4}

    def test_actor_and_critic_draw_apart(self) -> None:
        rows = numbered(12)
        for apart in (True, False):
            algorithm = small(AuthorsDDPG, batches_apart=apart)
            first, second = algorithm.batches(Replay(rows, jnp.int32(16)), SPEC, jax.random.key(0))
            assert np.array_equal(first.reward, second.reward) != apart


class TestActing:
    """Proposals of training and of the warm-up."""

    def test_only_the_noise_is_clipped(self) -> None:
        algorithm = small(AuthorsDDPG, noise=2.0, noise_clipped_alone=True)
        state = algorithm.init(jax.random.key(0), SPEC)
        keys = jax.random.split(jax.random.key(1), 500)
        act = jax.jit(jax.vmap(partial(algorithm.act, explore=True), in_axes=(None, None, None, 0)))
        decision = act(algorithm.policy(state), SPEC, jnp.ones(3), keys)
        noise = np.asarray(decision.proposed - decision.intended)
        assert np.abs(noise).max() == pytest.approx(1)
        assert np.abs(decision.proposed).max() > 1  # outside the action box
        assert (np.linalg.norm(decision.executed, axis=1) <= 0.3 + 1e-6).all()  # but executed in the ball
        calm = algorithm.act(algorithm.policy(state), SPEC, jnp.ones(3), keys[0], explore=False)
        np.testing.assert_array_equal(calm.proposed, calm.intended)

    def test_warm_up_over_integer_allocations(self) -> None:
        # Stars and bars: 5 stations of at most 35, 150 bikes; the second by inclusion and exclusion.
        assert integer_allocations(5, 150, 10, 35).shape == (23_751, 5)
        points = integer_allocations(5, 150, 20, 35)
        assert points.shape == (20_176, 5)
        assert len(np.unique(points, axis=0)) == 20_176
        assert (points.sum(1) == 150).all()
        assert (points.min(), points.max()) == (20, 35)
        low = jnp.zeros(5, jnp.float32)
        spec = Spec(11, low, low + 35.0, lambda obs: Box(low, low))
        keys = jax.random.split(jax.random.key(0), 1_000)
        for algorithm, least in ((as_authors("bss-5", "nfwpo"), 10), (as_authors("bss-5", "ddpg-projection"), 20)):
            drawn = np.asarray(jax.jit(jax.vmap(partial(algorithm.warmup_proposal, spec, jnp.zeros(11))))(keys))
            assert (drawn.sum(1) == 150).all()
            assert drawn.min() == pytest.approx(least, abs=3)
            assert len(np.unique(drawn, axis=0)) > 950

    def test_warm_up_of_optlayer(self) -> None:
        low = jnp.zeros(5, jnp.float32)
        spec = Spec(11, low, low + 35.0, lambda obs: Box(low, low))
        propose = partial(as_authors("bss-5", "ddpg-optlayer").warmup_proposal, spec, jnp.zeros(11))
        drawn = np.asarray(jax.vmap(propose)(jax.random.split(jax.random.key(0), 1_000)))
        assert 20 <= drawn.min() < 20.1
        assert 35.9 < drawn.max() <= 36


def test_agents_with_other_departures_are_one_program() -> None:
    """One with no switch set, and three of which no two switches are set alike: merged they do what they do alone."""
    plain = small(AuthorsDDPG, noise=2.0)
    named = dict(enumerate(sorted(AuthorsDDPG.switches), start=1))
    some = [[name for number, name in named.items() if number >> digit & 1] for digit in range(3)]
    agents = [plain, *(replace(plain, **dict.fromkeys(names, True)) for names in some)]
    assert len({alike(agent) for agent in agents}) == 1
    assert alike(plain) != alike(replace(plain, twin=True))
    rng = np.random.default_rng(0)
    limit, ordinary = (random_transition(rng, WIDE, terminated=False, truncated=cut) for cut in (True, False))

    def everything(algorithm: AuthorsDDPG, key: Array) -> tuple:
        """From a replay of six rows a second time limit, an update, and what is done, explored and drawn at first."""
        state = algorithm.observe(algorithm.init(key, WIDE), WIDE, ordinary)
        full = jnp.tile(state.replay.rows[:1], (16, 1)).at[6:].set(0) * jnp.arange(1.0, 17.0)[:, None]
        state = eqx.tree_at(lambda s: s.replay, state, Replay(full, jnp.int32(6)))
        state = algorithm.observe(state, WIDE, limit)
        state, metrics = algorithm.update(state, WIDE, key, BOTH)
        decisions = [algorithm.act(algorithm.policy(state), WIDE, limit.obs, key, explore=e) for e in (True, False)]
        return state, metrics, decisions, algorithm.warmup_proposal(WIDE, limit.obs, key)

    key = jax.random.key(3)
    numbers, rest = eqx.partition(merged(agents, "float64"), lambda leaf: isinstance(leaf, np.ndarray))
    together = jax.jit(jax.vmap(lambda own: everything(eqx.combine(own, rest), key)))(numbers)
    alone = [jax.jit(partial(everything, agent))(key) for agent in agents]
    for number, known in enumerate(alone):
        for (path, one), other in zip(jax.tree.leaves_with_path(together), jax.tree.leaves(known), strict=True):
            np.testing.assert_allclose(one[number], other, rtol=1e-9, atol=1e-12, err_msg=f"{number} {path}")


class TestMirror:
    """OptLayer with the wrong sign: d = -J(-x)' grad Q at P(-x)."""

    gradient = staticmethod(lambda a: jnp.asarray([1.0, -2.0]) * a + 0.5)

    def test_outside_a_ball(self) -> None:
        x, r = np.array([0.6, 0.8]), 0.5
        direction, _ = AuthorsProjection(mirrored=True).direction(Ball(jnp.zeros(2), r), jnp.asarray(x), self.gradient)
        # At y = -x with |y| = 1: P(y) = r y, and the Jacobian is r (I - y y').
        y = -x
        jacobian = r * (np.eye(2) - np.outer(y, y))
        g = np.array([1.0, -2.0]) * r * y + 0.5
        np.testing.assert_allclose(direction, -jacobian.T @ g, rtol=1e-9)

    def test_inside_it_has_the_sign_of_descent(self) -> None:
        x = jnp.asarray([0.1, 0.2])
        for mirrored, point, sign in ((True, -x, -1.0), (False, x, 1.0)):
            rule = AuthorsProjection(mirrored=mirrored)
            direction, _ = rule.direction(Ball(jnp.zeros(2), 0.5), x, self.gradient)
            np.testing.assert_allclose(direction, sign * self.gradient(point), rtol=1e-12)

    def test_on_bikes_it_projects_to_where_the_proposal_does_not_point(self) -> None:
        # P(x) of x = (30, 20, 10) is (40, 30, 20), P(-x) = (-30, -20, -10) is (20, 30, 40).
        seen = []
        feasible_set, x = Allocation(90.0, jnp.zeros(3), jnp.full(3, 50.0)), jnp.asarray([30.0, 20.0, 10.0])
        AuthorsProjection(mirrored=True).direction(feasible_set, x, lambda a: (seen.append(a), a)[1])
        np.testing.assert_allclose(seen[0], [20, 30, 40])

    def test_targets_are_projected_as_when_acting(self) -> None:
        x = jnp.asarray([30.2, 29.9, 30.5], jnp.float32)
        plain, rounded = (AuthorsProjection(executed_target=e).target_action(STATIONS, x) for e in (False, True))
        np.testing.assert_allclose(plain, [30, 29.7, 30.3], atol=1e-5)
        np.testing.assert_array_equal(rounded, [30, 30, 30])
        rule = as_authors("bss-5", "ddpg-optlayer").rule  # pyright: ignore[reportAttributeAccessIssue]
        assert rule == AuthorsProjection(mirrored=True, executed_target=True)


class TestTable:
    """BSS-3: frozen targets and an odd observation."""

    def small(self, **settings: object) -> AuthorsTable:
        return AuthorsTable(FrankWolfe(0.05), 90, 20, 35, replay_size=8, batch_size=4, **settings)  # pyright: ignore[reportArgumentType]

    def test_the_target_critic_is_random_and_never_moves(self) -> None:
        algorithm = replace(as_authors("bss-3", "fwpo"), replay_size=8)
        state = new(algorithm, BIKES)
        assert not equal(state.critic, state.target_critic)
        obs = jnp.asarray([1, 2, 3, 30, 30, 30, 9], jnp.float32)
        no, bikes = jnp.zeros((), bool), obs[3:6]
        state = algorithm.observe(
            state, BIKES, Transition(obs, Decision(bikes, bikes, bikes), jnp.float32(-1), obs, no, no)
        )
        due = frozenset(algorithm.intervals)
        moved, _ = jax.jit(partial(algorithm.update, due=due))(state, BIKES, jax.random.key(1))
        assert not equal(moved.critic, state.critic)
        assert equal(moved.target_critic, state.target_critic)
        assert not equal(moved.table, state.table)
        assert equal(moved.table, moved.target_table)
        assert algorithm.intervals == {"critic": 25, "table": 50, "target_table": 1}

    def test_cells_are_judged_at_an_observation_full_of_an_index(self) -> None:
        algorithm, bikes = self.small(odd_observation=True), jnp.asarray([27, 28, 35], jnp.float32)
        np.testing.assert_array_equal(algorithm.judged_at(BIKES, bikes), [7, 7, 7, 27, 28, 35, 7])
        np.testing.assert_array_equal(self.small().judged_at(BIKES, bikes), [0, 0, 0, 27, 28, 35, 0])
        state = new(algorithm, BIKES)
        assert state.critic.layers[0].weight.shape == (7, 30)
        # The table's move is the core's with the critic's demand and time fixed at the index.
        moved, _ = jax.jit(partial(algorithm.update, due=frozenset({"table"})))(state, BIKES, jax.random.key(1))
        for cell in (0, 60, 135):
            obs = algorithm.judged_at(BIKES, jnp.asarray(algorithm.allocations[cell]))
            g = jax.grad(state.critic, argnums=1)(obs, state.table[cell])
            c = algorithm.allocations[np.argmax(algorithm.allocations @ np.asarray(g))]
            np.testing.assert_allclose(moved.table[cell], state.table[cell] * 0.95 + 0.05 * c, rtol=1e-5)

    def test_with_none_set_it_is_the_core_s(self) -> None:
        core = BikeTable(rule=FrankWolfe(0.05), bikes=90, low=20, high=35, replay_size=8, batch_size=4)
        due, programs = frozenset(core.intervals), []
        for algorithm in (core, self.small()):
            state = jax.eval_shape(algorithm.init, jax.random.key(0), BIKES)
            update = partial(algorithm.update, due=due)
            programs.append(str(jax.make_jaxpr(update)(state, BIKES, jax.random.key(0))))
        assert programs[0] == programs[1]
