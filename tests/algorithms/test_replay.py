"""Replay against a ring in plain Python: what is kept, what is drawn, and what a million transitions weigh."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import chisquare

from feasible.algorithms.base import Spec, Transition
from feasible.algorithms.replay import draw, empty, store
from feasible.sets import Box
from tests.algorithms.plain import ball_task, random_transition

CAPACITY = 7


def transitions(spec: Spec, count: int) -> list[Transition]:
    rng = np.random.default_rng(count)
    ends = [(i % 3 == 0, i % 2 == 0) for i in range(count)]
    return [random_transition(rng, spec, terminated=end, truncated=limit) for end, limit in ends]


@pytest.mark.parametrize("count", [1, 6, 7, 17])
def test_a_ring_keeps_the_last_and_batches_are_whole_transitions(count: int) -> None:
    spec = ball_task()
    replay, ring = empty(CAPACITY, spec), {}
    for number, transition in enumerate(transitions(spec, count)):
        shaped = transition.reward - 0.5
        replay = store(replay, transition, shaped)
        ring[number % CAPACITY] = (transition, shaped)
    known = list(ring.values())
    batch = draw(replay, 200, jax.random.key(0), spec)
    seen = set()
    for row in range(200):
        # Rewards are distinct numbers, so they say which transition a row claims to be.
        (which,) = [i for i, (_, reward) in enumerate(known) if float(reward) == float(batch.reward[row])]
        transition, _ = known[which]
        seen.add(which)
        np.testing.assert_array_equal(batch.obs[row], transition.obs)
        np.testing.assert_array_equal(batch.proposed[row], transition.decision.proposed)
        np.testing.assert_array_equal(batch.executed[row], transition.decision.executed)
        np.testing.assert_array_equal(batch.next_obs[row], transition.next_obs)
        assert float(batch.continues[row]) == (0.0 if bool(transition.terminated) else 1.0)
    assert seen == set(range(len(known)))
    assert int(replay.count) == count


@pytest.mark.parametrize("count", [5, 7, 16])
def test_draws_are_uniform_over_what_is_stored(count: int) -> None:
    spec = ball_task()
    replay = empty(CAPACITY, spec)
    for transition in transitions(spec, count):
        replay = store(replay, transition, transition.reward)
    stored = np.asarray(replay.rows)[: min(count, CAPACITY), -2]
    rewards = np.asarray(draw(replay, 20_000, jax.random.key(1), spec).reward)
    counts = [(rewards == reward).sum() for reward in stored]
    assert sum(counts) == 20_000  # nothing that was never stored
    assert chisquare(counts).pvalue > 1e-3


def test_a_million_transitions_of_halfcheetah_fit_in_200_megabytes() -> None:
    bounds = jnp.ones(6, jnp.float32)
    spec = Spec(17, -bounds, bounds, lambda obs: Box(-bounds, bounds))
    replay = jax.eval_shape(lambda: empty(1_000_000, spec))
    size = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(replay))
    assert size <= 200e6
    # Two observations, two actions, a reward and a flag, four bytes each.
    assert size == 1_000_000 * 4 * (17 + 6 + 6 + 17 + 1 + 1) + 4


def test_rows_have_the_precision_of_the_task() -> None:
    spec = ball_task()
    assert empty(2, spec).rows.dtype == jnp.float64
    bounds = jnp.ones(2, jnp.float32)
    assert empty(2, Spec(3, -bounds, bounds, spec.constraint)).rows.dtype == jnp.float32
