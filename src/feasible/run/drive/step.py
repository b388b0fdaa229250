"""What one dispatch computes, as pure functions: of one agent here, jitted or vmapped by those who dispatch.

A dispatch stores the transition that the environment has just made, updates, chooses the next action and certifies
it. The host hands in one packet of numbers and gets one report back; everything else stays on the device, in a carry.
An algorithm with several copies of the environment gets their packets as rows, acts on all of them and observes one
after the other.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Generic, TypeVar, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray, UInt32
from numpy.typing import NDArray

from feasible.algorithms.base import Algorithm, Decision, Metrics, Spec, State, Transition
from feasible.constraints.action_box import certified

JUDGEMENTS = ("violation", "tolerance", "proposed_violates", "intended_violates")
Traced = TypeVar("Traced", bound=Callable)
Made = TypeVar("Made")


def full_precision(function: Traced) -> Traced:
    """Trace the function with products in full float32: XLA's default on recent GPUs rounds factors to 10 bits."""

    @wraps(function)
    def traced(*args: object, **kwargs: object) -> object:
        with jax.default_matmul_precision("highest"):
            return function(*args, **kwargs)

    return cast(Traced, traced)


class Carry(eqx.Module, Generic[State]):
    """All that training depends on, besides the environment."""

    algorithm: State
    obs: Float[Array, "*c o"]
    """What to act on, with a row for each copy where there are several; `decision` likewise."""
    decision: Decision
    key: UInt32[Array, " k"]
    """The run's key as plain numbers; each step folds its number into it."""
    step: Int[Array, ""]
    """Environment steps made so far."""


# The next carry, the report [executed | judgements] and the metrics of the update, if there was one.
Result = tuple[Carry[State], Float[Array, "*c r"], Metrics]


def pack(
    next_obs: NDArray, reward: float, terminated: bool, truncated: bool, seen: NDArray
) -> Float[np.ndarray, " packet"]:
    """What the host tells of one step; `seen` is the observation to act on: that of a reset where an episode ended."""
    size = len(next_obs)
    packet = np.empty(2 * size + 3, np.float32)
    packet[:size], packet[size : 2 * size] = next_obs, seen
    packet[2 * size :] = reward, terminated, truncated
    return packet


@dataclass(frozen=True)
class Step(Generic[State]):
    """The functions of one algorithm on one task."""

    algorithm: Algorithm[State]
    spec: Spec

    @property
    def rows(self) -> tuple[int, ...]:
        """Leading axis of observations, decisions and packets: none for one copy of the environment."""
        copies = self.algorithm.environments
        return () if copies == 1 else (copies,)

    @full_precision
    def first(self, key: PRNGKeyArray, obs: Float[Array, "*c o"]) -> Result[State]:
        """The carry of a new run at its first observation."""
        init_key, key = jax.random.split(key)
        state = self.algorithm.init(init_key, self.spec)
        step = jnp.zeros((), jnp.int32)
        decision = self._choose(state, obs, jax.random.fold_in(key, step), warm=self.algorithm.warmup > 0)
        return Carry(state, obs, decision, jax.random.key_data(key), step), self._judge(obs, decision), {}

    @full_precision
    def begin(self, carry: Carry[State], obs: Float[Array, "*c o"], *, warm: bool) -> Result[State]:
        """The carry at the first observation of an episode that no transition led to."""
        act_key = jax.random.fold_in(jax.random.wrap_key_data(carry.key), carry.step)
        decision = self._choose(carry.algorithm, obs, act_key, warm=warm)
        return Carry(carry.algorithm, obs, decision, carry.key, carry.step), self._judge(obs, decision), {}

    @full_precision
    def advance(
        self, carry: Carry[State], packet: Float[Array, "*c packet"], *, due: frozenset[str], warm: bool
    ) -> Result[State]:
        """The carry after the step that the packet tells of, and after the parts of the update that are due."""
        width = packet.shape[-1]
        next_obs, seen, outcome = jnp.split(packet, [width // 2 - 1, width - 3], axis=-1)
        reward, terminated, truncated = jnp.moveaxis(outcome, -1, 0)
        transition = Transition(carry.obs, carry.decision, reward, next_obs, terminated > 0, truncated > 0)
        step = carry.step + self.algorithm.environments
        update_key, act_key = jax.random.split(jax.random.fold_in(jax.random.wrap_key_data(carry.key), step))
        state, metrics = self._observe(carry.algorithm, transition), {}
        if due:
            state, metrics = self.algorithm.update(state, self.spec, update_key, due)
        decision = self._choose(state, seen, act_key, warm=warm)
        return Carry(state, seen, decision, carry.key, step), self._judge(seen, decision), metrics

    def _observe(self, state: State, transition: Transition) -> State:
        if not self.rows:
            return self.algorithm.observe(state, self.spec, transition)

        def one(state: State, transition: Transition) -> tuple[State, None]:
            return self.algorithm.observe(state, self.spec, transition), None

        return jax.lax.scan(one, state, transition)[0]

    def _choose(self, state: State, obs: Float[Array, "*c o"], key: PRNGKeyArray, *, warm: bool) -> Decision:
        if not self.rows:
            return self._choose_one(state, obs, key, warm=warm)
        keys = jax.random.split(key, self.algorithm.environments)
        return jax.vmap(lambda obs, key: self._choose_one(state, obs, key, warm=warm))(obs, keys)

    def _choose_one(self, state: State, obs: Float[Array, " o"], key: PRNGKeyArray, *, warm: bool) -> Decision:
        if not warm:
            return self._act(state, obs, key)
        proposed = self.algorithm.warmup_proposal(self.spec, obs, key)
        like = jax.eval_shape(self._act, state, obs, key)
        extras = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), like.extras)
        return eqx.tree_at(lambda d: d.extras, self.spec.decide(obs, proposed, proposed), extras)

    def _act(self, state: State, obs: Float[Array, " o"], key: PRNGKeyArray) -> Decision:
        policy = self.algorithm.policy(state, explore=True)
        return self.algorithm.act(policy, self.spec, obs, key, explore=True)

    def _judge(self, obs: Float[Array, "*c o"], decision: Decision) -> Float[Array, "*c r"]:
        return jax.vmap(self._judge_one)(obs, decision) if self.rows else self._judge_one(obs, decision)

    def _judge_one(self, obs: Float[Array, " o"], decision: Decision) -> Float[Array, " r"]:
        """[executed | violation and tolerance of it | whether the proposal, with and without noise, is infeasible]."""
        feasible_set = self.spec.feasible_set(obs)
        judgements = (
            *certified(self.spec.constraint, feasible_set, decision.executed),
            ~feasible_set.accepts(decision.proposed),
            ~feasible_set.accepts(decision.intended),
        )
        return jnp.concatenate([decision.executed, jnp.stack([x.astype(obs.dtype) for x in judgements])])


def due_after(algorithm: Algorithm, step: int) -> frozenset[str]:
    """The parts of the update that follow environment step `step` (counted from 1)."""
    if step <= algorithm.updates_after:
        return frozenset()
    return frozenset(part for part, every in algorithm.intervals.items() if step % every == 0)


class Schedule(Generic[Made]):
    """Which program follows a step: found anew while updates begin, then by the step's place in their period only."""

    def __init__(self, algorithms: Sequence[Algorithm], find: Callable[[int], Made]):
        self._find = find
        self._settled = max(max(a.warmup, a.updates_after) for a in algorithms)
        self._period = math.lcm(*(every for a in algorithms for every in a.intervals.values()))
        self._by_phase: dict[int, Made] = {}

    def program(self, step: int) -> Made:
        """The program that follows environment step `step`."""
        if step <= self._settled:
            return self._find(step)
        phase = step % self._period
        if phase not in self._by_phase:
            self._by_phase[phase] = self._find(step)
        return self._by_phase[phase]


def numbers_of(result: Result[State]) -> Float[Array, " r"]:
    """[executed | judgements | metrics by name]: what the host gets back."""
    _, report, metrics = result
    return jnp.concatenate(
        [report.ravel(), *(jnp.atleast_1d(metrics[name]).astype(report.dtype) for name in sorted(metrics))]
    )
