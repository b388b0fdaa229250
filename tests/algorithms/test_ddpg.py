"""The actor-critic of NFWPO and the DDPG baselines against plain loops and a value that must be 1/(1 - gamma)."""

from dataclasses import replace
from functools import partial
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.typing import NDArray

from feasible.algorithms.actor_rules import ActorRule, FrankWolfe, PolicyGradient, ThroughProjection
from feasible.algorithms.base import Decision, Spec, Transition
from feasible.algorithms.ddpg import DDPG, DDPGState
from feasible.algorithms.nets import Critic, Twin
from feasible.algorithms.replay import Batch, draw
from feasible.sets import Ball
from tests.algorithms.plain import (
    actor_output,
    ball_task,
    critic_value,
    in_ball,
    new,
    radius,
    random_transition,
    stored,
)

SPEC = ball_task()
RULES = {"nfwpo": FrankWolfe(0.05), "plain": PolicyGradient(), "optlayer": ThroughProjection()}
BOTH = frozenset({"actor", "critic"})
drawn_from = jax.jit(draw, static_argnums=1)


def small(rule: ActorRule | None = None, **settings: object) -> DDPG:
    defaults = {"noise": 0.1, "hidden_layers": (8, 6), "replay_size": 64, "batch_size": 16, "discount": 0.8}
    return DDPG(rule=rule or FrankWolfe(0.05), **{**defaults, **settings})  # pyright: ignore[reportArgumentType]


def filled(algorithm: DDPG, spec: Spec = SPEC, count: int = 20) -> DDPGState:
    """A state whose targets are apart from its networks and whose replay holds every mix of endings."""
    same = small(twin=algorithm.twin, replay_size=algorithm.replay_size)  # nothing else matters to what is stored
    state, other = (new(same, spec, seed) for seed in (0, 9))
    state = eqx.tree_at(lambda s: (s.target_actor, s.target_critic), state, (other.actor, other.critic))
    rng = np.random.default_rng(0)
    made = [random_transition(rng, spec, terminated=i % 4 == 0, truncated=i % 3 == 0) for i in range(count)]
    return stored(same, spec, state, made)


@pytest.mark.parametrize("kind", RULES)
def test_the_critic_s_loss_is_that_of_a_plain_loop(kind: str) -> None:
    algorithm = small(RULES[kind])
    state = filled(algorithm)
    batch = drawn_from(state.replay, algorithm.batch_size, jax.random.key(1), SPEC)
    assert 0 < float(batch.continues.sum()) < 16
    low, high = np.asarray(SPEC.low), np.asarray(SPEC.high)
    errors, outside = [], 0
    for i in range(16):
        next_obs = np.asarray(batch.next_obs[i])
        action = actor_output(state.target_actor, next_obs, low, high)
        nearest = in_ball(action, radius(next_obs))
        outside += not np.array_equal(action, nearest)
        if kind == "optlayer":
            action = nearest
        future = critic_value(state.target_critic, next_obs, action)
        target = float(batch.reward[i]) + 0.8 * float(batch.continues[i]) * future
        errors.append(critic_value(state.critic, np.asarray(batch.obs[i]), np.asarray(batch.executed[i])) - target)
    assert outside > 3  # or the rules could not be told apart
    loss, metrics = jax.jit(algorithm.critic_loss)(state.critic, state, SPEC, batch, jax.random.key(2))
    assert float(loss) == pytest.approx(np.mean(np.square(errors)), rel=1e-9)
    assert set(metrics) == {"critic/value"}


@pytest.mark.parametrize("deviation", [0.3, (0.3, 0.4)])
def test_of_two_critics_the_target_takes_the_lesser_at_a_noisy_action(deviation: float | tuple[float, float]) -> None:
    algorithm = small(ThroughProjection(), twin=True, target_noise=deviation)
    state = filled(algorithm)
    batch = drawn_from(state.replay, algorithm.batch_size, jax.random.key(1), SPEC)
    # As large on average, so that now one and now the other is less.
    values = np.asarray(jax.jit(jax.vmap(state.target_critic.values))(batch.next_obs, batch.executed))
    level = np.mean(values[:, 0] - values[:, 1])
    state = eqx.tree_at(lambda s: s.target_critic.second.layers[-1].bias, state, replace_fn=lambda bias: bias + level)
    drawn = np.asarray(jax.random.normal(jax.random.key(231), batch.executed.shape, batch.executed.dtype))
    lasting = drawn[np.asarray(batch.continues) > 0]
    assert lasting.min() < -2.5 < 2.5 < lasting.max()  # the noise is clipped on both sides
    low, high = np.asarray(SPEC.low), np.asarray(SPEC.high)
    errors, lesser = [], []
    for i in range(16):
        obs, next_obs = np.asarray(batch.obs[i]), np.asarray(batch.next_obs[i])
        noise = np.array(deviation) * np.clip(drawn[i], -2.5, 2.5)
        noisy = actor_output(state.target_actor, next_obs, low, high) + noise
        action = in_ball(np.clip(noisy, low, high), radius(next_obs))
        assert isinstance(state.target_critic, Twin)
        assert isinstance(state.critic, Twin)
        futures = [critic_value(c, next_obs, action) for c in (state.target_critic, state.target_critic.second)]
        lesser.append(futures[0] < futures[1])
        target = float(batch.reward[i]) + 0.8 * float(batch.continues[i]) * min(futures)
        executed = np.asarray(batch.executed[i])
        errors.append([critic_value(c, obs, executed) - target for c in (state.critic, state.critic.second)])
    assert 0 < sum(lesser) < 16
    loss, _ = jax.jit(algorithm.critic_loss)(state.critic, state, SPEC, batch, jax.random.key(231))
    assert float(loss) == pytest.approx(np.square(errors).mean(axis=0).sum(), rel=1e-9)


def test_the_actor_follows_the_first_of_two_critics() -> None:
    plain, twin = small(PolicyGradient()), small(PolicyGradient(), twin=True)
    state = filled(twin)
    assert isinstance(state.critic, Twin)
    first = eqx.filter_eval_shape(Critic, 3, 2, (8, 6), "relu", jax.random.key(0))
    first = eqx.tree_at(lambda s: (s.layers, s.action_weight), first, (state.critic.layers, state.critic.action_weight))
    alone = eqx.tree_at(lambda s: s.critic, state, first)
    batch = drawn_from(state.replay, twin.batch_size, jax.random.key(1), SPEC)
    found, expected = (jax.jit(a.actor_gradient)(s, SPEC, batch)[0] for a, s in ((twin, state), (plain, alone)))
    for mine, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12)


def test_both_critics_and_their_targets_learn() -> None:
    algorithm = small(twin=True, target_noise=0.1)
    before = filled(algorithm)
    after, _ = jax.jit(algorithm.update, static_argnames="due")(before, SPEC, jax.random.key(6), due=BOTH)
    assert isinstance(after.critic, Twin)
    for part in ("critic", "target_critic"):
        one, other = getattr(before, part), getattr(after, part)
        assert not equal(one.layers, other.layers)
        assert not equal(one.second, other.second)


def test_an_averaged_policy_is_used_and_the_actor_explores() -> None:
    plain, averaged = small(), small(averaged=True)
    state = filled(plain)
    average = state.target_actor
    for step in range(4):
        state, _ = jax.jit(plain.update, static_argnames="due")(state, SPEC, jax.random.key(step), due=BOTH)
        average, actor = (jax.tree.map(np.asarray, net) for net in (average, state.actor))
        average = jax.tree.map(lambda old, new: old + plain.target_ratio * (new - old), average, actor)
    for mine, theirs in zip(jax.tree.leaves(averaged.policy(state)), jax.tree.leaves(average), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12)
    obs = jnp.asarray([0.3, -0.2, 0.5])

    def proposed(algorithm: DDPG, *, explore: bool) -> np.ndarray:
        policy = algorithm.policy(state, explore=explore)
        act = jax.jit(algorithm.act, static_argnames="explore")
        return np.asarray(act(policy, SPEC, obs, jax.random.key(9), explore=explore).proposed)

    np.testing.assert_array_equal(proposed(averaged, explore=True), proposed(plain, explore=True))
    low, high = np.asarray(SPEC.low), np.asarray(SPEC.high)
    used = np.clip(actor_output(average, np.asarray(obs), low, high), low, high)
    np.testing.assert_allclose(proposed(averaged, explore=False), used, rtol=1e-9)
    assert not np.allclose(proposed(plain, explore=False), used, rtol=1e-9)


def test_only_termination_is_stored() -> None:
    algorithm, rng = small(), np.random.default_rng(0)
    ends = [{"terminated": terminated, "truncated": limit} for terminated in (False, True) for limit in (False, True)]
    made = [random_transition(rng, SPEC, **end) for end in ends]
    state = stored(algorithm, SPEC, new(algorithm, SPEC), made)
    np.testing.assert_array_equal(state.replay.rows[:4, -1], [0, 0, 1, 1])


def test_a_time_limit_does_not_end_the_return() -> None:
    """Episodes of reward 1 a step that are cut off, never over, every 5 steps."""
    algorithm = small(actor_rate=1e-3, critic_rate=1e-2, target_ratio=0.05, batch_size=64, replay_size=200)
    rng = np.random.default_rng(2)
    observations, actions = jnp.asarray(rng.normal(size=(201, 3))), jnp.asarray(rng.uniform(-1, 1, (201, 2)))

    @jax.jit
    def learned(state: DDPGState, mistaken: jax.Array) -> jax.Array:
        """The mean of Q in the end; `mistaken`, the environment calls its limits terminations."""

        def store(state: DDPGState, step: jax.Array) -> tuple[DDPGState, None]:
            obs, action, limit = observations[step], actions[step], step % 5 == 4
            decision, ended = Decision(action, action, action), (limit & mistaken, limit & ~mistaken)
            transition = Transition(obs, decision, jnp.ones(()), observations[step + 1], *ended)
            return algorithm.observe(state, SPEC, transition), None

        def learn(state: DDPGState, key: jax.Array) -> tuple[DDPGState, None]:
            return algorithm.update(state, SPEC, key, BOTH)[0], None

        state, _ = jax.lax.scan(store, state, jnp.arange(200))
        state, _ = jax.lax.scan(learn, state, jax.random.split(jax.random.key(3), 3_000))
        return jnp.mean(jax.vmap(state.critic)(observations, actions))

    state = new(algorithm, SPEC, 2)
    assert float(learned(state, jnp.asarray(False))) == pytest.approx(1 / (1 - 0.8), abs=0.1)
    # With a fifth of the states worth 1 only, on average Q = 1 + 0.8 * (4/5) Q: far from 5.
    assert float(learned(state, jnp.asarray(True))) == pytest.approx(1 / (1 - 0.8 * 0.8), abs=0.3)


@pytest.mark.parametrize("weight", [0.0, 0.25, 3.0])
def test_shaping_takes_the_distance_to_the_projection_off_the_reward(weight: float) -> None:
    algorithm, rng = small(PolicyGradient(), shaping=weight), np.random.default_rng(4)
    state, observe = new(algorithm, SPEC), jax.jit(algorithm.observe)
    expected, distances = [], []
    for _ in range(10):
        transition = random_transition(rng, SPEC, terminated=False, truncated=False)
        proposed = np.asarray(transition.decision.proposed)
        distances.append(np.linalg.norm(proposed - in_ball(proposed, radius(np.asarray(transition.obs)))))
        expected.append(float(transition.reward) - weight * distances[-1])
        state = observe(state, SPEC, transition)
    assert max(distances) > 0.1
    np.testing.assert_allclose(state.replay.rows[:10, -2], expected, rtol=1e-9)


def leaves(tree: object) -> list[NDArray]:
    return [np.asarray(leaf) for leaf in jax.tree.leaves(tree)]


def equal(one: object, other: object) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(leaves(one), leaves(other), strict=True))


def test_targets_start_as_copies_that_share_no_memory() -> None:
    state = small().init(jax.random.key(5), SPEC)
    assert equal(state.actor, state.target_actor)
    assert equal(state.critic, state.target_critic)
    # The driver donates its state, and a buffer can be donated once.
    arrays = jax.tree.leaves(state)
    assert len({array.unsafe_buffer_pointer() for array in arrays if array.size}) == len(arrays)


class TestUpdate:
    """What one update changes, and from what."""

    algorithm = small(target_ratio=0.1)

    @pytest.fixture(scope="class")
    @classmethod
    def before(cls) -> DDPGState:
        return filled(cls.algorithm)

    @pytest.fixture(scope="class")
    @classmethod
    def after(cls, before: DDPGState) -> dict[str, DDPGState]:
        update = jax.jit(cls.algorithm.update, static_argnames="due")
        dues = {"both": BOTH, "actor": frozenset({"actor"}), "critic": frozenset({"critic"})}
        return {name: update(before, SPEC, jax.random.key(6), due=due)[0] for name, due in dues.items()}

    def test_actor_and_critic_move_from_the_same_snapshots(
        self, before: DDPGState, after: dict[str, DDPGState]
    ) -> None:
        # Up to how a compiler fuses; a step from the other's new weights would differ in the fourth digit.
        for alone, part in (("actor", "actor"), ("critic", "critic")):
            for x, y in zip(leaves(getattr(after["both"], part)), leaves(getattr(after[alone], part)), strict=True):
                np.testing.assert_allclose(x, y, rtol=1e-10)
            assert not equal(getattr(after["both"], part), getattr(before, part))

    def test_only_what_is_due_moves(self, before: DDPGState, after: dict[str, DDPGState]) -> None:
        for due, still in (("actor", "critic"), ("critic", "actor")):
            assert equal(getattr(after[due], still), getattr(before, still))
            assert equal(getattr(after[due], f"{still}_optimiser"), getattr(before, f"{still}_optimiser"))
            assert not equal(getattr(after[due], f"{due}_optimiser"), getattr(before, f"{due}_optimiser"))

    def test_targets_follow_by_the_ratio(self, before: DDPGState, after: dict[str, DDPGState]) -> None:
        for moved_on in after.values():
            for part in ("actor", "critic"):
                online, old, moved = (
                    leaves(net)
                    for net in (
                        getattr(moved_on, part),
                        *(getattr(s, f"target_{part}") for s in (before, moved_on)),
                    )
                )
                for o, t, m in zip(online, old, moved, strict=True):
                    np.testing.assert_allclose(m, 0.9 * t + 0.1 * o, rtol=1e-10)

    def test_the_replay_stays(self, before: DDPGState, after: dict[str, DDPGState]) -> None:
        assert all(equal(new.replay, before.replay) for new in after.values())

    def test_the_critic_s_step_is_adam_s_on_numeric_derivatives(
        self, before: DDPGState, after: dict[str, DDPGState]
    ) -> None:
        batch = drawn_from(before.replay, self.algorithm.batch_size, jax.random.key(6), SPEC)
        loss = jax.jit(lambda critic: self.algorithm.critic_loss(critic, before, SPEC, batch, jax.random.key(2))[0])
        where = lambda critic: critic.action_weight  # noqa: E731
        old, new = where(before.critic), np.asarray(where(after["critic"].critic))
        for entry in ((0, 0), (1, 3), (0, 5)):
            reach = jnp.zeros_like(old).at[entry].set(1e-6)
            ups, downs = (loss(eqx.tree_at(where, before.critic, old + sign * reach)) for sign in (1.0, -1.0))
            slope = float(ups - downs) / 2e-6
            step = new[entry] - float(old[entry])
            assert step == pytest.approx(-1e-3 * slope / (abs(slope) + 1e-8), abs=1e-8)


class TestActing:
    """Proposals are clipped, executed actions feasible, intentions free of noise."""

    algorithm = small(noise=(0.1, 2.0))
    spec = ball_task(bound=0.8)
    observations = np.random.default_rng(7).normal(size=(3_000, 3))

    @property
    def state(self) -> DDPGState:
        return new(self.algorithm, self.spec, 7)

    def decisions(self, spec: Spec, *, explore: bool) -> Decision:
        act = partial(self.algorithm.act, explore=explore)
        keys = jax.random.split(jax.random.key(8), len(self.observations))
        return jax.jit(jax.vmap(act, in_axes=(None, None, 0, 0)))(
            self.algorithm.policy(self.state), spec, self.observations, keys
        )

    def test_exploring(self) -> None:
        decision = self.decisions(self.spec, explore=True)
        proposed, executed, intended = (
            np.asarray(x) for x in (decision.proposed, decision.executed, decision.intended)
        )
        assert np.abs(proposed).max() == 0.8
        assert (np.abs(proposed[:, 1]) == 0.8).mean() > 0.3  # noise of 2 in a box of 0.8
        actor, low, high = self.state.actor, np.full(2, -0.8), np.full(2, 0.8)
        nearest = [in_ball(p, radius(obs)) for obs, p in zip(self.observations, proposed, strict=True)]
        np.testing.assert_allclose(executed, nearest, rtol=1e-9)
        np.testing.assert_allclose(intended, [actor_output(actor, obs, low, high) for obs in self.observations])

    def test_without_exploring(self) -> None:
        decision = self.decisions(self.spec, explore=False)
        np.testing.assert_array_equal(decision.proposed, decision.intended)
        nearest = [in_ball(p, radius(o)) for o, p in zip(self.observations, np.asarray(decision.proposed), strict=True)]
        np.testing.assert_allclose(decision.executed, nearest, rtol=1e-9)

    def test_noise_has_the_stated_deviations(self) -> None:
        decision = self.decisions(ball_task(bound=1e3), explore=True)
        noise = np.asarray(decision.proposed - decision.intended)
        np.testing.assert_allclose(noise.std(0), [0.1, 2.0], rtol=0.05)
        np.testing.assert_allclose(noise.mean(0), 0.0, atol=0.1)

    def test_intentions_of_unbounded_outputs_are_clipped_to_the_box(self) -> None:
        algorithm = small(output="leaky_relu")
        actor = algorithm.init(jax.random.key(7), self.spec).actor
        act = partial(algorithm.act, explore=False)
        wild = 100 * self.observations[:200]
        decision = jax.jit(jax.vmap(act, in_axes=(None, None, 0, None)))(actor, self.spec, wild, jax.random.key(0))
        for obs, proposed in zip(wild, np.asarray(decision.proposed), strict=True):
            outputs = actor_output(actor, obs, np.zeros(2), np.zeros(2))
            np.testing.assert_allclose(proposed, np.clip(outputs, -0.8, 0.8), rtol=1e-9)
        assert (np.abs(decision.proposed) == 0.8).any()


def test_the_rows_of_a_batch_reach_the_actor_and_the_critic() -> None:
    """The gradient of a batch is the mean of those of its rows."""
    algorithm = small(ThroughProjection())
    state = filled(algorithm)
    batch = drawn_from(state.replay, algorithm.batch_size, jax.random.key(10), SPEC)
    gradient = jax.jit(lambda rows: algorithm.actor_gradient(state, SPEC, rows)[0])

    def row(i: int) -> Batch:
        return jax.tree.map(lambda leaf: leaf[i : i + 1], batch)

    rows = [leaves(gradient(row(i))) for i in range(16)]
    for whole, parts in zip(leaves(gradient(batch)), zip(*rows, strict=True), strict=True):
        np.testing.assert_allclose(whole, np.mean(parts, axis=0), rtol=1e-9, atol=1e-14)


def test_td3_without_its_three_changes_is_ddpg_bit_for_bit() -> None:
    plain, changed = small(PolicyGradient()), small(PolicyGradient(), delayed_targets=True, target_noise=0.0)
    state = filled(plain)
    ours, theirs = (
        jax.jit(partial(a.update, spec=SPEC, due=BOTH))(state, key=jax.random.key(3))[0] for a in (plain, changed)
    )
    for one, other in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_array_equal(one, other)


def test_delayed_targets_follow_only_with_the_actor() -> None:
    algorithm = small(PolicyGradient(), delayed_targets=True)
    state = filled(algorithm)
    for due in (frozenset({"critic"}), BOTH):
        after, _ = jax.jit(partial(algorithm.update, spec=SPEC, due=due))(state, key=jax.random.key(3))
        moved = not np.array_equal(after.target_critic.layers[0].weight, state.target_critic.layers[0].weight)
        assert moved == ("actor" in due)
        assert not np.array_equal(after.critic.layers[0].weight, state.critic.layers[0].weight)


def test_a_critic_of_proposals_learns_from_them_and_from_the_target_s_output() -> None:
    algorithm = small(ThroughProjection(), critic_at="proposed")
    state = filled(algorithm)
    batch = drawn_from(state.replay, algorithm.batch_size, jax.random.key(1), SPEC)
    low, high = np.asarray(SPEC.low), np.asarray(SPEC.high)
    errors = []
    for i in range(16):
        next_obs = np.asarray(batch.next_obs[i])
        future = critic_value(state.target_critic, next_obs, actor_output(state.target_actor, next_obs, low, high))
        target = float(batch.reward[i]) + 0.8 * float(batch.continues[i]) * future
        errors.append(critic_value(state.critic, np.asarray(batch.obs[i]), np.asarray(batch.proposed[i])) - target)
    loss, _ = jax.jit(algorithm.critic_loss)(state.critic, state, SPEC, batch, jax.random.key(2))
    assert float(loss) == pytest.approx(np.mean(np.square(errors)), rel=1e-9)
    drawn = jax.vmap(partial(algorithm.warmup_proposal, SPEC, batch.obs[0]))(jax.random.split(jax.random.key(0), 200))
    assert np.mean(np.linalg.norm(drawn, axis=1) > radius(np.asarray(batch.obs[0]))) > 0.1  # also outside the set


@pytest.mark.parametrize("map", ["projection", "alpha", "radial"])
def test_with_critics_in_units_of_the_box_an_update_has_no_unit(map: Literal["projection", "alpha", "radial"]) -> None:
    """A box around 1500, a thousand wide on either side, instead of -1 to 1: the same networks learn the same."""
    known = []
    for middle, half in ((0.0, 1.0), (1500.0, 1000.0)):
        low, high = jnp.full(2, middle - half), jnp.full(2, middle + half)
        within = lambda obs, m=middle, h=half: Ball(jnp.full(2, m), h * (0.1 + 0.2 * obs[0] ** 2))  # noqa: E731
        spec = Spec(3, low, high, within)
        algorithm = small(
            PolicyGradient(),
            noise=0.1 * half,
            target_noise=0.2 * half,
            map=map,
            output="tanh" if map == "projection" else "linear",
            twin=True,
            critic_units="box",
        )
        rng, made = np.random.default_rng(0), []
        for _ in range(20):
            step = random_transition(rng, SPEC, terminated=False, truncated=False)
            proposed, executed = (middle + half * a for a in (step.decision.proposed, step.decision.executed))
            made.append(replace(step, decision=Decision(proposed, executed, proposed)))
        state, metrics = stored(algorithm, spec, new(algorithm, spec), made), {}
        update = jax.jit(lambda state, a=algorithm, s=spec: a.update(state, s, jax.random.key(1), BOTH))
        for _ in range(3):
            state, metrics = update(state)
        known.append(jax.tree.leaves((state.actor, state.critic, metrics["critic/loss"], metrics["critic/value"])))
    for one, other in zip(*known, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-9)


def test_in_a_box_of_minus_one_to_one_the_units_of_critics_are_the_same() -> None:
    """To the last bit, in float32."""
    one = jnp.ones(2, jnp.float32)
    spec, known = Spec(3, -one, one, lambda obs: Ball(jnp.zeros(2, jnp.float32), 0.6)), []
    rng = np.random.default_rng(0)
    made = [random_transition(rng, spec, terminated=False, truncated=False) for _ in range(20)]
    for units in ("action", "box"):
        algorithm = small(PolicyGradient(), twin=True, target_noise=0.2, map="radial", critic_units=units)
        state = stored(algorithm, spec, new(algorithm, spec), made)
        update = jax.jit(lambda state, a=algorithm: a.update(state, spec, jax.random.key(1), BOTH))
        known.append(jax.tree.leaves(update(update(state)[0])))
    for one, other in zip(*known, strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_penalty_is_the_mean_distance_of_outputs_from_their_sets() -> None:
    """Of the gradient with respect to the last bias, by differences of distances that NumPy knows."""
    plain, penalised = small(PolicyGradient(), output="linear"), small(PolicyGradient(), output="linear", penalty=0.7)
    state = filled(plain)
    state = eqx.tree_at(lambda s: s.actor, state, new(plain, SPEC, 4).actor)
    state = eqx.tree_at(lambda s: s.actor.layers[-1].bias, state, replace_fn=lambda bias: bias + 0.5)
    batch = drawn_from(state.replay, 16, jax.random.key(1), SPEC)
    grads = [jax.jit(a.actor_gradient, static_argnums=())(state, SPEC, batch)[0] for a in (plain, penalised)]
    found = (grads[1].layers[-1].bias - grads[0].layers[-1].bias) / 0.7
    obs = np.asarray(batch.obs)
    outputs = np.asarray(jax.vmap(lambda o: state.actor(o, SPEC.low, SPEC.high))(batch.obs))

    def distance(shift: NDArray) -> float:
        points = outputs + shift
        return float(np.mean([np.linalg.norm(p - in_ball(p, radius(o))) for p, o in zip(points, obs, strict=True)]))

    n = SPEC.action_size
    expected = [(distance(1e-6 * e) - distance(-1e-6 * e)) / 2e-6 for e in np.eye(n)]
    assert distance(np.zeros(n)) > 0.01
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("kind", ["alpha", "radial"])
def test_the_gradient_through_a_map_is_that_of_the_critic_s_mean_value(kind: str) -> None:
    """By differences in the last bias of the actor, through map and critic."""
    algorithm = small(PolicyGradient(), map=kind, output="linear")
    state = eqx.tree_at(lambda s: s.actor, filled(algorithm), new(algorithm, SPEC, 4).actor)
    state = eqx.tree_at(lambda s: s.actor.layers[-1].bias, state, replace_fn=lambda bias: bias + 0.3)
    batch = drawn_from(state.replay, 16, jax.random.key(1), SPEC)

    @jax.jit
    def value(shift: jax.Array) -> jax.Array:
        def one(obs: jax.Array) -> jax.Array:
            output = state.actor(obs, SPEC.low, SPEC.high) + shift
            middle, half = 0.5 * (SPEC.low + SPEC.high), 0.5 * (SPEC.high - SPEC.low)
            v = middle + half * output  # a ball around zero
            g = jnp.linalg.norm(v) / (0.1 + 0.2 * obs[0] ** 2)
            scale = 1 / jnp.maximum(g, 1.0) if kind == "alpha" else jnp.tanh(g) / g
            return state.critic(obs, scale * v)

        return jnp.mean(jax.vmap(one)(batch.obs))

    grads, _ = jax.jit(algorithm.actor_gradient)(state, SPEC, batch)
    eye = np.eye(SPEC.action_size)
    expected = [-float(value(1e-6 * e) - value(-1e-6 * e)) / 2e-6 for e in eye]
    np.testing.assert_allclose(grads.layers[-1].bias, expected, rtol=1e-5, atol=1e-8)
