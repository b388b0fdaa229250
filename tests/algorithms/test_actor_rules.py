"""Actor rules: Proposition 3, feasible reference actions, gradients through and past the projection, and the paper's
example in which the gradient through it is zero."""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Float
from numpy.typing import NDArray

from feasible.algorithms.actor_rules import (
    STATES,
    ActorRule,
    FrankWolfe,
    PolicyGradient,
    ProjectedGradient,
    ThroughProjection,
    regression_loss,
)
from feasible.algorithms.adam import adam_state, adam_step
from feasible.algorithms.base import Spec
from feasible.algorithms.ddpg import DDPG
from feasible.algorithms.nets import Actor, Critic
from feasible.algorithms.replay import Batch
from feasible.sets import ActionSet, Ball, Box, IntegerAllocation, Polytope, WeightedL1Box
from tests.algorithms.plain import ball_task, new, radius
from tests.one_by_one import one_by_one

BATCH = 16


def batch_of(spec: Spec, seed: int = 0) -> Batch:
    obs = jnp.asarray(np.random.default_rng(seed).normal(size=(BATCH, spec.observation_size)))
    actions, numbers = jnp.zeros((BATCH, spec.action_size)), jnp.zeros(BATCH)
    return Batch(obs, actions, actions, obs, numbers, numbers)


def small(rule: ActorRule, **settings: object) -> DDPG:
    return DDPG(rule=rule, noise=0.1, hidden_layers=(8, 6), replay_size=4, **settings)  # pyright: ignore[reportArgumentType]


class TestProposition3:
    """Without constraints, regression to pi + eta grad Q is DDPG: gradients by eta, SGD steps, and Adam's nearly."""

    spec = ball_task()
    eta, rate = 0.05, 0.3

    @pytest.fixture(scope="class")
    @classmethod
    def gradients(cls) -> tuple[Actor, Actor, Actor]:
        """The actor, the gradient of the regression, and that of -mean Q(s, pi(s))."""
        spec, batch = cls.spec, batch_of(cls.spec)
        state = new(small(PolicyGradient()), spec, 1)
        actor, critic = state.actor, state.critic

        def actions(actor: Actor) -> Array:
            return jax.vmap(actor, in_axes=(0, None, None))(batch.obs, spec.low, spec.high)

        @jax.jit
        def both(actor: Actor, critic: Critic) -> tuple[Actor, Actor]:
            now = actions(actor)
            references = now + cls.eta * jax.vmap(jax.grad(critic, argnums=1))(batch.obs, now)
            regression = jax.grad(lambda actor: regression_loss(actions(actor), references))(actor)
            return regression, jax.grad(lambda actor: -jnp.mean(jax.vmap(critic)(batch.obs, actions(actor))))(actor)

        return actor, *both(actor, critic)

    def test_gradients_differ_by_eta(self, gradients: tuple[Actor, Actor, Actor]) -> None:
        _, regression, ddpg = gradients
        for mine, theirs in zip(jax.tree.leaves(regression), jax.tree.leaves(ddpg), strict=True):
            assert np.abs(theirs).max() > 1e-4
            np.testing.assert_allclose(mine, self.eta * np.asarray(theirs), rtol=1e-9, atol=1e-15)

    def test_sgd_steps_are_equal_at_a_rate_of_beta_eta(self, gradients: tuple[Actor, Actor, Actor]) -> None:
        actor, regression, ddpg = (jax.tree.leaves(tree) for tree in gradients)
        for leaf, mine, theirs in zip(actor, regression, ddpg, strict=True):
            np.testing.assert_allclose(leaf - self.rate * mine, leaf - self.rate * self.eta * theirs, rtol=1e-12)

    def test_adam_steps_are_equal_up_to_its_epsilon(self, gradients: tuple[Actor, Actor, Actor]) -> None:
        actor, regression, ddpg = gradients
        step = jax.jit(lambda g: adam_step(1e-3, g, adam_state(1e-3, actor), actor)[0])
        stepped = [step(g) for g in (regression, ddpg)]
        for leaf, g, mine, theirs in zip(*(jax.tree.leaves(t) for t in (actor, ddpg, *stepped)), strict=True):
            g = np.asarray(g)
            # Adam's first step is rate g / (|g| + epsilon).
            np.testing.assert_allclose(mine, leaf - 1e-3 * self.eta * g / (self.eta * np.abs(g) + 1e-8), atol=1e-12)
            large = np.abs(g) > 1e-4
            np.testing.assert_allclose(np.asarray(mine)[large], np.asarray(theirs)[large], atol=1e-3 * 1e-8 / 5e-6)

    def test_the_library_s_gradient_is_ddpg_s(self, gradients: tuple[Actor, Actor, Actor]) -> None:
        algorithm = small(PolicyGradient())
        state = new(algorithm, self.spec, 1)
        found, _ = jax.jit(algorithm.actor_gradient)(state, self.spec, batch_of(self.spec))
        for mine, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(gradients[2]), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-15)

    def test_projected_gradient_is_ddpg_where_no_constraint_binds(self, gradients: tuple[Actor, Actor, Actor]) -> None:
        wide = Spec(3, self.spec.low, self.spec.high, lambda obs: Ball(jnp.zeros(2), 100.0))
        algorithm, batch = small(ProjectedGradient(self.eta)), batch_of(self.spec)
        state = new(small(PolicyGradient()), self.spec, 1)
        found, metrics = jax.jit(algorithm.actor_gradient)(state, wide, batch)

        @jax.jit
        def slopes(actor: Actor, critic: Critic) -> Array:
            actions = jax.vmap(actor, in_axes=(0, None, None))(batch.obs, wide.low, wide.high)
            return jax.vmap(jax.grad(critic, argnums=1))(batch.obs, actions)

        norms = np.linalg.norm(slopes(state.actor, state.critic), axis=1)
        assert float(metrics["actor/grad_executed"]) == pytest.approx(norms.mean())
        for mine, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(gradients[2]), strict=True):
            np.testing.assert_allclose(mine, self.eta / norms.mean() * np.asarray(theirs), rtol=1e-9, atol=1e-15)


A = np.array([[1.0, 1.0, 0.0, 0.0, 1.0], [0.0, 1.0, 1.0, 1.0, 0.0], [1.0, 0.0, -1.0, 0.5, 0.0]])


class Family(NamedTuple):
    """Sets of one kind in five dimensions, from one vector of parameters, and by how much a point is outside."""

    build: Callable[[Array], ActionSet]
    excess: Callable[[NDArray, NDArray], float]
    scale: float


FAMILIES = {
    "ball": Family(
        lambda p: Ball(p, 0.05**0.5),
        lambda p, a: np.linalg.norm(a - p) - 0.05**0.5,
        1.0,
    ),
    "weighted_l1": Family(
        lambda p: WeightedL1Box(10.0 * p, 20.0, 1.0),
        lambda p, a: max(np.abs(10 * p * a).sum() - 20, np.abs(a).max() - 1),
        1.0,
    ),
    "allocation": Family(
        lambda p: IntegerAllocation(150.0, jnp.zeros(5), jnp.round(40.0 + p)),
        lambda p, a: max(abs(a.sum() - 150), -a.min(), (a - np.round(40 + p)).max()),
        40.0,
    ),
    "polytope": Family(
        lambda p: Polytope(A, 1.0 + jnp.abs(p[:3]), -2.0, 2.0),
        lambda p, a: max((A @ a - 1 - np.abs(p[:3])).max(), np.abs(a).max() - 2),
        2.0,
    ),
}
# The rules ask every set alike; the answers of polytopes take the longest to compile.
each_family = pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[pytest.mark.slow] if kind == "polytope" else []) for kind in FAMILIES]
)


@each_family
def test_reference_actions_of_frank_wolfe_are_feasible_and_no_worse_to_first_order(kind: str) -> None:
    family = FAMILIES[kind]
    rng = np.random.default_rng(7)
    parameters, gradients = rng.normal(size=(2, 300, 5))
    proposals = family.scale * 3 * rng.normal(size=(300, 5))

    @jax.jit
    @one_by_one
    def answer(p: Array, proposed: Array, g: Array) -> tuple[Array, Array, Array]:
        feasible_set = family.build(p)
        direction, metrics = FrankWolfe(0.05).direction(feasible_set, proposed, lambda a: g)
        return proposed + direction, feasible_set.project(proposed), metrics["actor/frank_wolfe_gap"]

    references, projected, gaps = (np.asarray(x) for x in answer(parameters, proposals, gradients))
    worst = max(family.excess(p, a) for p, a in zip(parameters, references, strict=True))
    assert worst < 1e-8 * family.scale
    # <g, reference - projection> is the step times the gap, and the gap is never negative.
    np.testing.assert_allclose(((references - projected) * gradients).sum(1), 0.05 * gaps, atol=1e-9 * family.scale)
    assert gaps.min() > -1e-9
    assert gaps.max() > 0.1


@pytest.mark.parametrize("kind", ["ball", "weighted_l1", pytest.param("polytope", marks=pytest.mark.slow)])
def test_through_projection_pulls_back_by_the_jacobian(kind: str) -> None:
    family, h = FAMILIES[kind], 1e-6
    rng = np.random.default_rng(11)
    parameters, gradients = rng.normal(size=(2, 20, 5))
    proposals = 2 * family.scale * rng.normal(size=(20, 5))

    @jax.jit
    @one_by_one
    def answer(p: Array, proposed: Array, weights: Array) -> tuple[Array, Array, Array]:
        """Of the critic Q(a) = sum w_i a_i^3 / 3, whose gradient depends on where it is taken."""
        rules = (ThroughProjection(), PolicyGradient())
        through, past = (r.direction(family.build(p), proposed, lambda a: weights * a**2)[0] for r in rules)
        moved = proposed[None] + h * jnp.concatenate([jnp.eye(5), -jnp.eye(5)])
        return through, past, one_by_one(family.build(p).project)(jnp.concatenate([proposed[None], moved]))

    for w, d, past, points in zip(gradients, *map(np.asarray, answer(parameters, proposals, gradients)), strict=True):
        jacobian = (points[1:6] - points[6:]).T / (2 * h)
        np.testing.assert_allclose(d, jacobian.T @ (w * points[0] ** 2), rtol=1e-5, atol=1e-6)
        assert np.abs(d - past).max() > 0.01  # these proposals are outside


@each_family
def test_reference_actions_of_projected_gradient_are_feasible_and_ascend(kind: str) -> None:
    family, step = FAMILIES[kind], 0.3
    rng = np.random.default_rng(8)
    parameters, gradients = rng.normal(size=(2, 300, 5))
    proposals = family.scale * 2 * rng.normal(size=(300, 5))

    @jax.jit
    def answer(p: Array, proposed: Array, g: Array) -> tuple[Array, Array]:
        def one(p: Array, proposed: Array, g: Array) -> tuple[Array, Array]:
            feasible_set = family.build(p)
            rule = ProjectedGradient(step * family.scale)
            return proposed + rule.direction(feasible_set, proposed, lambda a: g)[0], feasible_set.project(proposed)

        return jax.vmap(one, axis_name=STATES)(p, proposed, g)

    references, projected = (np.asarray(x) for x in answer(parameters, proposals, gradients))
    worst = max(family.excess(p, a) for p, a in zip(parameters, references, strict=True))
    assert worst < 1e-8 * family.scale
    moved = references - projected
    mean = np.linalg.norm(gradients, axis=1).mean()
    # What the projection of a step guarantees: <g, r - x> >= ||r - x||^2 m / step, and no step longer than its own.
    rises = (moved * gradients).sum(1) - (moved**2).sum(1) * mean / (step * family.scale)
    assert rises.min() > -1e-7 * family.scale
    lengths = step * family.scale * np.linalg.norm(gradients, axis=1) / mean
    assert (np.linalg.norm(moved, axis=1) <= lengths * (1 + 1e-9)).all()
    assert np.linalg.norm(moved, axis=1).max() > 0.1 * step * family.scale


def test_projected_gradient_stands_still_at_the_best_point_only() -> None:
    feasible_set, g = Ball(jnp.zeros(2), 1.0), jnp.array([3.0, 4.0])

    def moves(proposed: list[float]) -> Array:
        return move(jnp.array([proposed]))[0]

    @jax.jit
    def move(proposed: Array) -> Array:
        def one(proposed: Array) -> Array:
            return ProjectedGradient(0.1).direction(feasible_set, proposed, lambda a: g)[0]

        return jax.vmap(one, axis_name=STATES)(proposed)

    np.testing.assert_allclose(moves([0.6, 0.8]), 0.0, atol=1e-12)
    np.testing.assert_allclose(moves([0.0, 0.0]), [0.06, 0.08])
    assert jnp.linalg.norm(moves([1.0, 0.0])) > 0.01
    # From outside: back to the best point, which is the projection, and no further.
    np.testing.assert_allclose(moves([1.2, 1.6]), [-0.6, -0.8])


def test_by_direction_every_state_moves_as_far() -> None:
    gradients = jnp.array([[3.0, 4.0], [0.03, -0.04], [0.0, 0.0]])
    ball, rule = Ball(jnp.zeros(2), 1.0), ProjectedGradient(0.1, by="direction")

    def one(g: Array) -> Array:
        return rule.direction(ball, jnp.zeros(2), lambda a: g)[0]

    moves = jax.jit(jax.vmap(one, axis_name=STATES))(gradients)
    np.testing.assert_allclose(moves, [[0.06, 0.08], [0.06, -0.08], [0.0, 0.0]])


def test_a_margin_shrinks_the_set_for_references() -> None:
    low, high = np.array([-1.0, 0.0, -3.0]), np.array([1.0, 2.0, 3.0])
    proposals, gradients = np.random.default_rng(4).normal(size=(2, 200, 3)) * 2
    rule, box = ProjectedGradient(0.5, margin=0.2), Box(jnp.asarray(low), jnp.asarray(high))

    def one(z: Array, g: Array) -> Array:
        return z + rule.direction(box, z, lambda a: g)[0]

    answer = jax.jit(jax.vmap(one, axis_name=STATES))
    references = answer(jnp.asarray(proposals), jnp.asarray(gradients))
    middle, half = (low + high) / 2, 0.8 * (high - low) / 2
    ends = np.clip(proposals, low, high) + 0.5 * gradients / np.linalg.norm(gradients, axis=1).mean()
    expected = np.clip(ends, middle - half, middle + half)
    np.testing.assert_allclose(references, expected, atol=1e-12)
    assert (expected == ends).all(1).sum() > 10  # where it does not bind, nothing changes
    best = answer(jnp.array([[1.0, 2.0, 3.0]]), jnp.ones((1, 3)))
    np.testing.assert_allclose(best[0], [0.8, 1.8, 2.4])


def test_a_state_that_is_asked_about_alone_is_a_batch_of_one() -> None:
    g, proposed = np.array([3.0, 4.0]), np.array([0.1, 0.2])
    for rule in (ProjectedGradient(0.1), ThroughProjection(0.5), FrankWolfe(0.2, by="gap")):
        one = lambda z, rule=rule: rule.direction(Ball(np.zeros(2), 1.0), z, lambda a: jnp.asarray(g))[0]  # noqa: E731
        alone, batch = jax.jit(lambda z, one=one: (one(z), jax.vmap(one, axis_name=STATES)(z[None])[0]))(proposed)
        np.testing.assert_array_equal(alone, batch)


@pytest.mark.parametrize("rule", [FrankWolfe(0.05), ProjectedGradient(0.2)])
@pytest.mark.parametrize("weight", [0.0, 3.0])
def test_inside_weighs_the_way_back_alone(rule: FrankWolfe | ProjectedGradient, weight: float) -> None:
    feasible_set, g, proposed = Ball(jnp.zeros(2), 1.0), jnp.array([0.5, -1.0]), jnp.array([[3.0, 4.0]])

    def directions(rule: ActorRule) -> NDArray:
        one = lambda z: rule.direction(feasible_set, z, lambda a: g)[0]  # noqa: E731
        return np.asarray(jax.jit(jax.vmap(one, axis_name=STATES))(proposed)[0])

    back = np.array([0.6, 0.8]) - np.array([3.0, 4.0])
    np.testing.assert_allclose(directions(replace(rule, inside=weight)) - directions(rule), (weight - 1) * back)


def test_the_penalty_is_the_gradient_of_half_the_squared_distance() -> None:
    """d is the derivative of Q(P(z)) - w/2 ||z - P(z)||^2, w the penalty times the mean norm of the gradients."""
    box, h = Box(jnp.full(3, -1.0), jnp.full(3, 1.0)), 1e-6
    weights = np.array([0.3, -0.7, 0.2])
    proposals = np.random.default_rng(3).normal(size=(20, 3)) * 2

    def one(z: Array) -> tuple[Array, dict[str, Array]]:
        return ThroughProjection(0.5).direction(box, z, lambda a: jnp.asarray(weights) * a)

    directions, metrics = jax.jit(jax.vmap(one, axis_name=STATES))(jnp.asarray(proposals))
    weight = 0.5 * np.linalg.norm(weights * np.clip(proposals, -1, 1), axis=1).mean()
    np.testing.assert_allclose(metrics["actor/grad_executed"].mean() * 0.5, weight)

    def value(z: NDArray) -> float:
        nearest = np.clip(z, -1, 1)
        return (weights * nearest**2).sum() / 2 - weight / 2 * ((z - nearest) ** 2).sum()

    for z, d in zip(proposals, np.asarray(directions), strict=True):
        slopes = [(value(z + h * e) - value(z - h * e)) / (2 * h) for e in np.eye(3)]
        np.testing.assert_allclose(d, slopes, atol=1e-7)


TARGETS = [
    (PolicyGradient(), False),
    (ThroughProjection(), True),
    (ThroughProjection(project_target=False), False),
    (FrankWolfe(0.05), False),
    (FrankWolfe(0.05, project_target=True), True),
    (ProjectedGradient(0.1), True),
]


@pytest.mark.parametrize(("rule", "projected"), TARGETS)
def test_which_action_the_critic_s_target_takes(rule: ActorRule, projected: bool) -> None:
    target = rule.target_action(Ball(jnp.zeros(2), 1.0), jnp.array([3.0, 4.0]))
    np.testing.assert_allclose(target, [0.6, 0.8] if projected else [3.0, 4.0])


class OpaqueBall(Ball):
    """A ball whose projection has derivative zero."""

    def project(self, z: Float[Array, " n"]) -> Float[Array, " n"]:  # pyright: ignore[reportIncompatibleMethodOverride]
        return jax.lax.stop_gradient(super().project(z))


RULES_BY_DERIVATIVE = [(FrankWolfe(0.05), True), (ProjectedGradient(0.1), True), (ThroughProjection(), False)]


@pytest.mark.parametrize(("rule", "same"), RULES_BY_DERIVATIVE)
def test_whether_the_projection_is_differentiated(rule: ActorRule, same: bool) -> None:
    clear = ball_task()
    opaque = Spec(3, clear.low, clear.high, lambda obs: OpaqueBall(jnp.zeros(2), radius(obs)))  # pyright: ignore[reportArgumentType]
    algorithm = small(rule)
    state, batch = new(small(PolicyGradient()), clear, 2), batch_of(clear)
    first, second = (jax.jit(algorithm.actor_gradient)(state, spec, batch)[0] for spec in (clear, opaque))
    pairs = list(zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True))
    assert all(np.abs(a).max() > 0 for a, _ in pairs)
    if same:
        assert all(np.array_equal(a, b) for a, b in pairs)
    else:
        # Proposals inside the ball have the identity for Jacobian; here all are outside.
        assert all(not np.any(b) for _, b in pairs)


class KnownCritic(Critic):
    """Q(s, a) = -(a - 1)^2."""

    def __init__(self) -> None:
        self.layers, self.action_weight, self.hidden, self.joined = (), jnp.zeros((0, 0)), "relu", 1

    def __call__(self, obs: Float[Array, " o"], action: Float[Array, " n"]) -> Float[Array, ""]:
        return -jnp.sum((action - 1.0) ** 2)


class TestZeroGradient:
    """Section 1 of the paper: a scalar action must not be negative, and the policy proposes negative ones."""

    spec = Spec(1, jnp.full(1, -2.0), jnp.full(1, 2.0), lambda obs: Box(jnp.zeros(1), jnp.full(1, 2.0)))

    def trained(self, rule: ActorRule) -> tuple[Actor, Actor, NDArray]:
        """The actor before and after 1,500 updates, and its proposals after them."""
        algorithm = small(rule, actor_rate=1e-2)
        state = new(small(PolicyGradient()), self.spec, 3)
        bias = jnp.full(1, -1.0)  # tanh(-1) * 2 = -1.5
        state = eqx.tree_at(lambda s: (s.critic, s.actor.layers[-1].bias), state, (KnownCritic(), bias))
        batch = batch_of(self.spec)

        @jax.jit
        def propose(actor: Actor) -> Array:
            return jax.vmap(actor, in_axes=(0, None, None))(batch.obs, self.spec.low, self.spec.high)

        def update(carry: tuple, _: None) -> tuple[tuple, None]:
            actor, optimiser = carry
            grads = algorithm.actor_gradient(eqx.tree_at(lambda s: s.actor, state, actor), self.spec, batch)[0]
            return adam_step(algorithm.actor_rate, grads, optimiser, actor), None

        assert (propose(state.actor) < -0.5).all()
        run = jax.jit(lambda carry: jax.lax.scan(update, carry, None, length=1_500)[0])
        actor, _ = run((state.actor, state.actor_optimiser))
        return state.actor, actor, np.asarray(propose(actor))

    def test_the_direction_through_the_projection_is_exactly_zero(self) -> None:
        feasible_set = Box(jnp.zeros(1), jnp.full(1, 2.0))
        direction, metrics = ThroughProjection().direction(feasible_set, jnp.full(1, -0.7), lambda a: -2.0 * (a - 1.0))
        assert float(direction[0]) == 0.0
        assert float(metrics["actor/grad_proposed"]) == 0.0
        assert float(metrics["actor/grad_executed"]) == 2.0
        # Frank-Wolfe: from P(-0.7) = 0 a step of 0.05 towards the maximiser 2, and 0.7 to get to P(-0.7).
        direction, metrics = FrankWolfe(0.05).direction(feasible_set, jnp.full(1, -0.7), lambda a: -2.0 * (a - 1.0))
        assert float(direction[0]) == pytest.approx(0.7 + 0.05 * 2)
        assert float(metrics["actor/frank_wolfe_gap"]) == pytest.approx(2.0 * 2.0)

    def test_through_the_projection_the_actor_never_moves(self) -> None:
        before, after, proposals = self.trained(ThroughProjection())
        assert all(np.array_equal(a, b) for a, b in zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True))
        assert (proposals < 0).all()

    @pytest.mark.parametrize("rule", [FrankWolfe(0.05), ProjectedGradient(0.1), ThroughProjection(0.5)])
    def test_other_rules_reach_the_optimum(self, rule: ActorRule) -> None:
        _, _, proposals = self.trained(rule)
        np.testing.assert_allclose(proposals, 1.0, atol=0.05)
