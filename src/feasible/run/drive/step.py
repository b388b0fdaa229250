"""What one dispatch computes, as pure functions: of one agent here, jitted or vmapped by those who dispatch.

A dispatch stores the transition that the environment has just made, updates, chooses the next action and certifies
it. The host hands in one packet of numbers and gets one report back; everything else stays on the device, in a carry.
An algorithm with several copies of the environment gets their packets as rows, acts on all of them and observes one
after the other; all updates that their step numbers ask for then follow in the same dispatch.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree, UInt32

from feasible.algorithms.base import Algorithm, Decision, Metrics, Spec, State, Transition
from feasible.constraints.action_box import contained
from feasible.run.drive.schedule import Due, Loop, folded
from feasible.run.drive.wire import certificate, judged, report, wire_of
from feasible.solve.precision import full_precision


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


# The next carry, the judged rows of the copies and the metrics of the update, if there was one.
Result = tuple[Carry[State], Float[Array, "*c r"], Metrics]


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
        state = self.algorithm.broken_off(carry.algorithm)
        decision = self._choose(state, obs, act_key, warm=warm)
        return Carry(state, obs, decision, carry.key, carry.step), self._judge(obs, decision), {}

    @full_precision
    def advance(self, carry: Carry[State], packet: Float[Array, "*c packet"], *, due: Due, warm: bool) -> Result[State]:
        """The carry after the step that the packet tells of, and after the updates that are due."""
        next_obs, seen, reward, terminated, truncated = wire_of(self.spec).unpack(packet)
        transition = Transition(carry.obs, carry.decision, reward, next_obs, terminated, truncated)
        step = carry.step + self.algorithm.environments
        key = jax.random.wrap_key_data(carry.key)
        update_key, act_key = jax.random.split(jax.random.fold_in(key, step))
        state, metrics = self._observe(carry.algorithm, transition), {}
        if due and not self.rows:
            state, metrics = self.algorithm.update(state, self.spec, update_key, due[0])
        elif due:
            state, metrics = self._update(state, self._update_keys(key, step, len(due)), due)
        decision = self._choose(state, seen, act_key, warm=warm)
        return Carry(state, seen, decision, carry.key, step), self._judge(seen, decision), metrics

    def _observe(self, state: State, transition: Transition) -> State:
        if not self.rows:
            return self.algorithm.observe(state, self.spec, transition)

        def one(state: State, transition: Transition) -> tuple[State, None]:
            return self.algorithm.observe(state, self.spec, transition), None

        return jax.lax.scan(one, state, transition)[0]

    def _update_keys(self, key: PRNGKeyArray, step: Int[Array, ""], updates: int) -> PRNGKeyArray:
        """The keys of the updates of a round that ends with `step`: of each what a single step's would be."""
        numbers = step + jnp.arange(1 - self.algorithm.environments, 1)
        multiples = jnp.stack([numbers % every == 0 for every in self.algorithm.intervals.values()])
        due = multiples.any(axis=0) & (numbers > self.algorithm.updates_after)
        places = jnp.flatnonzero(due, size=updates)
        return jax.vmap(lambda number: jax.random.split(jax.random.fold_in(key, number))[0])(numbers[places])

    def _update(self, state: State, keys: PRNGKeyArray, due: Due) -> tuple[State, Metrics]:
        """The state after several updates, and of each metric the mean over those that report it."""
        state, told = self._in_order(state, folded(due), keys)
        by_name: defaultdict[str, list[Array]] = defaultdict(list)
        for metrics in told:
            for name, values in metrics.items():
                by_name[name].append(values.ravel())
        return state, {name: jnp.mean(jnp.concatenate(values)) for name, values in by_name.items()}

    def _in_order(
        self, state: State, parts: Sequence[frozenset[str] | Loop], keys: PRNGKeyArray
    ) -> tuple[State, list[Metrics]]:
        """The state after the updates, one with each key, and what they report; those of a loop stacked."""
        told: list[Metrics] = []
        for part in parts:
            if isinstance(part, Loop):
                own, keys = keys[: part.updates].reshape(part.times, -1), keys[part.updates :]
                body = part.body
                state, stacked = jax.lax.scan(lambda s, k, body=body: self._in_order(s, body, k), state, own)
                told += stacked
            else:
                state, metrics = self.algorithm.update(state, self.spec, keys[0], part)
                keys = keys[1:]
                told.append(metrics)
        return state, told

    def _choose(self, state: State, obs: Float[Array, "*c o"], key: PRNGKeyArray, *, warm: bool) -> Decision:
        copies = jnp.arange(self.algorithm.environments)
        if not self.rows:
            return self._choose_one(state, copies[0], obs, key, warm=warm)
        keys = jax.random.split(key, self.algorithm.environments)
        return jax.vmap(lambda *one: self._choose_one(state, *one, warm=warm))(copies, obs, keys)

    def _choose_one(
        self, state: State, copy: Int[Array, ""], obs: Float[Array, " o"], key: PRNGKeyArray, *, warm: bool
    ) -> Decision:
        policy = self.algorithm.acting(state, copy)
        if warm:
            return self._contained(self.algorithm.warmup_decision(policy, self.spec, obs, key))
        return self._contained(self.algorithm.act(policy, self.spec, obs, key, explore=True))

    def _contained(self, decision: Decision) -> Decision:
        """The decision with an executed action that the action space contains to the last bit."""
        executed = contained(self.spec.constraint, decision.executed, self.spec.low, self.spec.high)
        return eqx.tree_at(lambda d: d.executed, decision, executed)

    def _judge(self, obs: Float[Array, "*c o"], decision: Decision) -> Float[Array, "*c r"]:
        one = partial(judged, self.spec)
        return jax.vmap(one)(obs, decision) if self.rows else one(obs, decision)

    @full_precision
    def answer(self, policy: PyTree[Array], obs: Float[Array, " o"]) -> Float[Array, " n+2"]:
        """The certificate of what the policy does without exploration."""
        decision = self._contained(self.algorithm.act(policy, self.spec, obs, jax.random.key(0), explore=False))
        return certificate(self.spec, self.spec.feasible_set(obs), decision.executed)


def flat(result: Result[State]) -> tuple[list[Array], Float[Array, " r"]]:
    """The leaves of the next carry, and the report that the host gets."""
    carry, judged_rows, metrics = result
    return jax.tree.leaves(carry), report(judged_rows, metrics)
