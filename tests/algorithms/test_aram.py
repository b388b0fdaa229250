"""ARAM: draws, buffers, batches and targets by plain loops, preferences by episode, old critics, and a probe."""

from collections.abc import Sequence
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array
from numpy.typing import NDArray

from feasible.algorithms.aram import ARAM, ARAMState
from feasible.algorithms.augmented import Mixed, mixed
from feasible.algorithms.base import Decision, Spec, Transition
from feasible.algorithms.preferences import VectorCritic, kept
from feasible.sets import Allocation, Ball
from tests.algorithms.plain import new
from tests.algorithms.test_probes import IN_BALL, SLOPE, trained

LOW, HIGH = np.array([-1.0, -1.0]), np.array([1.0, 1.0])
RADIUS = 0.6
SPEC = Spec(3, jnp.asarray(LOW), jnp.asarray(HIGH), lambda obs: Ball(jnp.zeros(2), RADIUS))
SMALL = ARAM(
    draws=6,
    augmented_size=16,
    reward_scale=4.0,
    reward_shift=0.5,
    samples=3,
    snapshots=2,
    snapshot_interval=3,
    preferences=2,
    warmup=0,
    learning_starts=0,
    batch_size=8,
    replay_size=12,
    hidden_layers=(8,),
    rate=3e-3,
    copies=2,
)


@eqx.filter_jit
def acted(state: ARAMState, spec: Spec, obs: Array, key: Array, copy: Array) -> Decision:
    return SMALL.act(SMALL.acting(state, copy), spec, obs, key, explore=True)


@eqx.filter_jit
def observed(state: ARAMState, made: Transition) -> tuple[ARAMState, Array]:
    """The state after each transition, and the preferences then."""

    def one(state: ARAMState, transition: Transition) -> tuple[ARAMState, Array]:
        state = SMALL.observe(state, SPEC, transition)
        return state, state.preferences

    return jax.lax.scan(one, state, made)


def transitions(state: ARAMState, count: int = 20, seed: int = 0) -> list[Transition]:
    """Steps whose draws are accepted or not as they fall; in some none is."""
    rng, made = np.random.default_rng(seed), []
    for k in range(count):
        draws = rng.uniform(LOW, HIGH, (SMALL.draws, 2))
        if k % 4 == 1:
            draws = np.sign(draws) * (0.9 + 0.1 * np.abs(draws))
        inside = np.linalg.norm(draws, axis=1) <= RADIUS
        rejected = int(np.argmax(inside)) if inside.any() else SMALL.draws
        extras = {"draws": jnp.asarray(draws), "rejected": jnp.asarray(rejected, jnp.int32)}
        first = jnp.asarray(draws[0])
        obs, next_obs = jnp.asarray(rng.normal(size=(2, 3)))
        ends = jnp.asarray(k % 7 == 5), jnp.asarray(k % 5 == 4)
        made.append(Transition(obs, Decision(first, first, first, extras), jnp.asarray(rng.normal()), next_obs, *ends))
    return made


def stack(made: Sequence[Transition]) -> Transition:
    return jax.tree.map(lambda *leaves: np.stack(leaves), *made)


@pytest.fixture(scope="module")
def fresh() -> ARAMState:
    return new(SMALL, SPEC)


@pytest.fixture(scope="module")
def filled(fresh: ARAMState) -> ARAMState:
    return observed(fresh, stack(transitions(fresh)))[0]


def test_the_first_accepted_draw_is_executed(fresh: ARAMState) -> None:
    """On a ball and, by half a unit, on an allocation; where none is accepted, the projection of the last."""
    narrow = replace(SPEC, constraint=lambda obs: Ball(jnp.zeros(2), obs[0]))
    counts = set()
    for k in range(24):
        radius = [0.05, 0.3, 0.6][k % 3]
        decision = acted(fresh, narrow, jnp.asarray([radius, 0.0, 0.0]), jax.random.key(k), jnp.asarray(0))
        draws, rejected = np.asarray(decision.extras["draws"]), int(decision.extras["rejected"])
        inside = np.linalg.norm(draws, axis=1) <= radius
        np.testing.assert_array_equal(decision.proposed, draws[0])
        assert rejected == (list(inside).index(True) if inside.any() else SMALL.draws)
        if inside.any():
            np.testing.assert_allclose(decision.executed, draws[rejected], rtol=1e-12)
        else:
            last = draws[-1]
            np.testing.assert_allclose(decision.executed, radius * last / np.linalg.norm(last), rtol=1e-9)
        counts.add(rejected)
    assert {0, SMALL.draws} < counts
    equal = replace(SPEC, constraint=lambda obs: Allocation(jnp.asarray(0.0), jnp.full(2, -1.0), jnp.full(2, 1.0)))
    decision = acted(fresh, equal, jnp.zeros(3), jax.random.key(0), jnp.asarray(0))
    draws, rejected = np.asarray(decision.extras["draws"]), int(decision.extras["rejected"])
    assert rejected == list(np.abs(draws.sum(axis=1)) <= 0.5).index(True)
    assert np.sum(decision.executed) == pytest.approx(0.0, abs=1e-9)


def test_draws_follow_the_policy_of_the_copy_s_preference(fresh: ARAMState) -> None:
    """mean + std * noise through tanh, the networks fed with the observation and that copy's preference."""
    obs, key = jnp.asarray([0.3, -1.0, 2.0]), jax.random.key(5)
    noise = np.asarray(jax.random.normal(key, (SMALL.draws, 2), jnp.float64))
    for copy in range(2):
        x = np.concatenate([obs, fresh.preferences[copy]])
        for layer in fresh.actor.layers:
            x = np.maximum(x @ np.asarray(layer.weight) + np.asarray(layer.bias), 0.0)
        mean, log_std = (x @ np.asarray(d.weight) + np.asarray(d.bias) for d in (fresh.actor.mean, fresh.actor.log_std))
        draws = acted(fresh, SPEC, obs, key, jnp.asarray(copy)).extras["draws"]
        np.testing.assert_allclose(draws, np.tanh(mean + np.exp(log_std) * noise), rtol=1e-9)


def test_buffers_are_those_of_a_plain_loop(fresh: ARAMState, filled: ARAMState) -> None:
    real, rejected = [], []
    for made in transitions(fresh):
        draws, count = np.asarray(made.decision.extras["draws"]), int(made.decision.extras["rejected"])
        for draw in draws[:count]:
            rejected.append(np.concatenate([made.obs, draw]))
        taken, failed = (draws[-1], 1.0) if count == SMALL.draws else (draws[count], 0.0)
        ends = [float(made.reward) / 4.0 + 0.5, failed, float(made.terminated)]
        real.append(np.concatenate([made.obs, taken, made.next_obs, ends]))
    assert len(rejected) > 16  # the ring has gone round
    assert any(row[-2] for row in real)
    for ring, rows in ((filled.replay.rows, real), (filled.rejected.rows, rejected)):
        places = np.zeros(ring.shape)
        for k, row in enumerate(rows):
            places[k % len(places)] = row
        np.testing.assert_allclose(ring, places, rtol=1e-12)
    assert int(filled.replay.count) == 20
    assert (int(filled.rejected.stored), int(filled.rejected.place)) == (16, len(rejected) % 16)


def test_a_preference_lasts_an_episode_of_its_copy(fresh: ARAMState) -> None:
    made = transitions(fresh)
    _, after = observed(fresh, stack(made))
    after = np.concatenate([np.asarray(fresh.preferences)[None], after])
    np.testing.assert_allclose(after.sum(axis=2), 1.0, rtol=1e-12)
    assert (after > 0).all()
    for k, transition in enumerate(made):
        mine, other = k % 2, 1 - k % 2
        ended = bool(transition.terminated | transition.truncated)
        assert (after[k + 1, mine, 0] != after[k, mine, 0]) == ended
        np.testing.assert_array_equal(after[k + 1, other], after[k, other])
    weights = after[:, :, 0].ravel()
    assert len(np.unique(weights)) == 2 + sum(bool(t.terminated | t.truncated) for t in made)


@eqx.filter_jit
def drawn(state: ARAMState, share: Array, stored: Array, key: Array) -> Mixed:
    rejected = eqx.tree_at(lambda r: r.stored, state.rejected, stored)
    return mixed(state.replay, rejected, 8, share, 0.2, key, SPEC)


@pytest.mark.parametrize(("share", "stored", "count"), [(0.25, 16, 2), (0.7, 16, 5), (0.7, 3, 3), (0.7, 0, 0)])
def test_batches_have_the_rows_of_each_buffer_that_they_should(
    filled: ARAMState, share: float, stored: int, count: int
) -> None:
    steps, draws = np.asarray(filled.replay.rows), np.asarray(filled.rejected.rows)
    for seed in range(5):
        batch = drawn(filled, jnp.asarray(share), jnp.asarray(stored, jnp.int32), jax.random.key(seed))
        np.testing.assert_array_equal(batch.rejected, np.arange(8) < count)
        for k in range(8):
            row = np.concatenate([batch.obs[k], batch.action[k]])
            if k < count:
                assert np.any(np.all(draws[:stored] == row, axis=1))
                assert (batch.reward[k].tolist(), float(batch.continues[k])) == ([0.0, -0.2], 1.0)
                np.testing.assert_array_equal(batch.next_obs[k], batch.obs[k])
            else:
                (place,) = np.flatnonzero(np.all(steps[:, :5] == row, axis=1))
                np.testing.assert_array_equal(batch.next_obs[k], steps[place, 5:8])
                reward, failed, terminated = steps[place, 8:]
                np.testing.assert_allclose(batch.reward[k], [reward, -0.2 * failed])
                assert float(batch.continues[k]) == 1.0 - terminated


def critic_values(critic: VectorCritic, *parts: NDArray) -> NDArray:
    x = np.concatenate(parts)
    for layer in critic.layers[:-1]:
        x = np.maximum(x @ np.asarray(layer.weight) + np.asarray(layer.bias), 0.0)
    return x @ np.asarray(critic.layers[-1].weight) + np.asarray(critic.layers[-1].bias)


ASKED = np.array([[0.3, 0.7], [0.8, 0.2]])


@eqx.filter_jit
def losses(state: ARAMState, batch: Mixed, keys: Array) -> tuple[Array, ...]:
    asked = jnp.asarray(ASKED)
    actor_loss, entropy = SMALL.actor_loss(state.actor, state, SPEC, batch, asked, keys)
    critic_loss = SMALL.critic_loss(state.critics, state, SPEC, batch, asked[0], keys)
    return critic_loss, actor_loss, entropy


@eqx.filter_jit
def sampled(state: ARAMState, obs: Array, keys: Array) -> tuple[Array, Array]:
    """The next action and the actor's draws with their densities, at all rows."""

    def one(obs: Array, key: Array) -> tuple[Array, Array]:
        return state.actor.sample(jnp.concatenate([obs, jnp.asarray(ASKED[0])]), key, SPEC.low, SPEC.high)

    return jax.vmap(one)(obs, keys)


@pytest.mark.parametrize("learned", [0, 3, 8])
def test_losses_are_those_of_a_plain_loop(filled: ARAMState, learned: int) -> None:
    """With none, one and two old critics that count; those are the present ones moved a little."""
    rng, preference = np.random.default_rng(learned), ASKED[0]
    moved = jax.tree.map(lambda leaf: np.stack([leaf + 0.3, leaf - 0.2]), filled.critics)
    target = jax.tree.map(lambda leaf: np.asarray(leaf) + 0.1 * rng.normal(size=leaf.shape), filled.critics)
    state = eqx.tree_at(
        lambda s: (s.old_critics, s.target_critics, s.learned), filled, (moved, target, np.asarray(learned, np.int32))
    )
    batch = drawn(filled, jnp.asarray(0.25), jnp.asarray(16, jnp.int32), jax.random.key(9))
    keys = jax.random.split(jax.random.key(7), 8)
    ours = [float(value) for value in losses(state, batch, keys)]
    next_actions, next_densities = map(np.asarray, sampled(state, batch.next_obs, keys))
    inner = jax.vmap(lambda key: jax.random.split(key, 3))(keys).reshape(-1)
    actions, densities = map(np.asarray, sampled(state, jnp.repeat(batch.obs, 3, axis=0), inner))
    rows = jax.tree.map(np.asarray, batch)
    critic_loss = 0.0
    for k in range(8):
        values = [critic_values(net, rows.next_obs[k], next_actions[k], preference) for net in state.target_critics]
        least = min(values, key=lambda value: preference @ value)
        y = rows.reward[k] + 0.99 * rows.continues[k] * (least - 0.2 * next_densities[k])
        for net in state.critics:
            critic_loss += preference @ (critic_values(net, rows.obs[k], rows.action[k], preference) - y) ** 2 / 8
    known = [state.critics, *(jax.tree.map(lambda leaf, j=j: leaf[j], moved) for j in range(min(learned // 3, 2)))]
    actor_loss = 0.0
    for k in range(24):
        best = max(
            min(preference @ critic_values(net, rows.obs[k // 3], actions[k], v) for net in pair)
            for pair in known
            for v in ASKED
        )
        actor_loss += (0.2 * densities[k] - best) / 24
    assert ours == pytest.approx([critic_loss, actor_loss, -densities.mean()], rel=1e-9)


def test_the_entropy_in_the_targets_has_no_unit(filled: ARAMState) -> None:
    """Where all values are zero they are the same in a hundredfold box."""
    nothing = jax.tree.map(jnp.zeros_like, filled.critics)
    state = eqx.tree_at(lambda s: s.target_critics, filled, nothing)
    batch = drawn(filled, jnp.asarray(0.25), jnp.asarray(16, jnp.int32), jax.random.key(9))
    keys, found = jax.random.split(jax.random.key(7), 8), []
    for unit in (1.0, 100.0):
        low, high = jnp.asarray(unit * LOW), jnp.asarray(unit * HIGH)
        spec = Spec(3, low, high, lambda obs, unit=unit: Ball(jnp.zeros(2), unit * RADIUS))
        loss = eqx.filter_jit(SMALL.critic_loss)
        found.append(float(loss(nothing, state, spec, batch, jnp.asarray(ASKED[0]), keys)))
    assert found[0] > 0
    assert found[1] == pytest.approx(found[0], rel=1e-9)


def test_old_critics_are_kept_at_intervals(fresh: ARAMState) -> None:
    """Every third update, in turns."""
    ring, turn = fresh.old_critics, jax.jit(kept, static_argnums=3)
    marks = []
    for learned in range(1, 10):
        now = jax.tree.map(lambda leaf, n=learned: np.full(leaf.shape, float(n)), fresh.critics)
        ring = turn(ring, now, jnp.asarray(learned, jnp.int32), 3)
        marks.append(np.asarray(jax.tree.leaves(ring)[0]).reshape(2, -1)[:, 0].tolist())
    assert marks == [[0, 0], [0, 0], [3, 0], [3, 0], [3, 0], [3, 6], [3, 6], [3, 6], [9, 6]]


def test_an_update_learns_and_the_share_falls_with_the_steps(filled: ARAMState) -> None:
    steps = eqx.tree_at(lambda s: s.replay.count, filled, jnp.asarray(1_000_000, jnp.int32))
    algorithm = replace(SMALL, augmented_share=0.9, updates=3, entropy_target=-2.0)
    update = eqx.filter_jit(lambda state: algorithm.update(state, SPEC, jax.random.key(1), frozenset({"networks"})))
    (after, metrics), (_, late) = update(filled), update(steps)
    assert float(metrics["critic/augmented_share"]) == 7 / 8
    assert float(late["critic/augmented_share"]) == np.floor(8 * 0.9 * 0.99**100) / 8
    assert all(np.isfinite(value) for value in metrics.values())
    assert int(after.learned) == 3
    assert not np.array_equal(after.actor.mean.bias, filled.actor.mean.bias)
    np.testing.assert_array_equal(after.rejected.rows, filled.rejected.rows)
    ring = after.old_critics
    assert ring is not None
    np.testing.assert_array_equal(ring[0].layers[0].weight[0], after.critics[0].layers[0].weight)


def test_warm_up_draws_from_the_box_with_rejection(fresh: ARAMState) -> None:
    decide = eqx.filter_jit(lambda key: SMALL.warmup_decision(SMALL.policy(fresh), SPEC, jnp.zeros(3), key))
    made = [decide(jax.random.key(k)) for k in range(60)]
    draws = np.concatenate([np.asarray(d.extras["draws"]) for d in made])
    assert np.abs(draws.mean(axis=0)).max() < 0.1
    np.testing.assert_allclose(np.mean(draws**2, axis=0), 1 / 3, atol=0.05)
    assert all(np.linalg.norm(d.executed) <= RADIUS + 1e-5 for d in made)


def test_too_small_a_buffer_is_named() -> None:
    with pytest.raises(ValueError, match=r"ARAM: augmented_size must be at least draws = 6, not 5\."):
        replace(SMALL, augmented_size=5).init(jax.random.key(0), SPEC)


def test_the_best_action_on_the_boundary_is_found() -> None:
    algorithm = ARAM(
        draws=8,
        augmented_size=1_000,
        entropy_weight=0.01,
        warmup=0,
        learning_starts=0,
        batch_size=32,
        replay_size=2_000,
        rate=3e-3,
        hidden_layers=(16,),
    )
    act = trained(algorithm, IN_BALL, 1_500)
    for radius in (0.25, 0.5, 0.75):
        executed = np.asarray(act(jnp.full(1, radius)))
        assert SLOPE @ executed > 0.9 * radius, (radius, executed)
