"""The programs of a training run: each is one compiled dispatch per environment step.

A dispatch stores the transition that the environment has just made, updates, chooses the next action and certifies
it. The host hands in one packet of numbers and gets one report back; everything else stays on the device, in a carry
that is donated from one dispatch to the next. An algorithm with several copies of the environment gets their packets
as rows, acts on all of them and observes one after the other.
"""

import math
from dataclasses import dataclass
from functools import partial
from typing import Generic

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray, UInt32
from numpy.typing import NDArray

from feasible.algorithms.base import Algorithm, Decision, Metrics, Spec, State, Transition, through

JUDGEMENTS = ("violation", "tolerance", "proposed_violates", "intended_violates")


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
class Program:
    """A compiled `advance` for one set of due updates."""

    function: "jax.stages.Wrapped"
    metrics: tuple[str, ...]


class Programs(Generic[State]):
    """The programs of one algorithm on one task, made when first needed.

    Carries travel as lists of leaves: pytrees of modules cost more to take apart than some steps take.
    """

    def __init__(self, algorithm: Algorithm[State], spec: Spec):
        self.algorithm = algorithm
        self.spec = spec
        self.traces = 0
        self.made: dict[tuple[frozenset[str], bool], Program] = {}
        # After so many steps, which program follows depends on the step's place in this period only.
        self._settled = max(algorithm.warmup, algorithm.updates_after)
        self._period = math.lcm(*algorithm.intervals.values())
        self._by_phase: dict[int, Program] = {}
        self._copies = algorithm.environments
        self._rows = () if self._copies == 1 else (self._copies,)
        obs = jax.ShapeDtypeStruct((*self._rows, spec.observation_size), spec.low.dtype)
        self.shape: Carry[State] = jax.eval_shape(self._first, jax.random.key(0), obs)[0]
        self.structure = jax.tree.structure(self.shape)
        self.first = jax.jit(lambda key, obs: _flat(self._first(key, obs)))
        self.begin = jax.jit(
            lambda leaves, obs, warm: _flat(self._begin(self.carry(leaves), obs, warm)),
            donate_argnums=0,
            static_argnums=2,
        )

    def due(self, step: int) -> frozenset[str]:
        """The parts of the update that follow environment step `step` (counted from 1)."""
        if step <= self.algorithm.updates_after:
            return frozenset()
        return frozenset(part for part, every in self.algorithm.intervals.items() if step % every == 0)

    def program(self, step: int) -> Program:
        """The program that follows environment step `step`."""
        if step <= self._settled:
            return self._find(step)
        phase = step % self._period
        if phase not in self._by_phase:
            self._by_phase[phase] = self._find(step)
        return self._by_phase[phase]

    def _find(self, step: int) -> Program:
        wanted = self.due(step), step < self.algorithm.warmup
        if wanted not in self.made:
            self.made[wanted] = self._make(*wanted)
        return self.made[wanted]

    def carry(self, leaves: list[Array]) -> Carry[State]:
        return jax.tree.unflatten(self.structure, leaves)

    def _make(self, due: frozenset[str], warm: bool) -> Program:
        advance = partial(self._advance, due=due, warm=warm)
        packet = jax.ShapeDtypeStruct((*self._rows, 2 * self.spec.observation_size + 3), self.spec.low.dtype)
        metrics = jax.eval_shape(advance, self.shape, packet)[2]

        def program(leaves: list[Array], packet: Float[Array, "*c packet"]) -> tuple[list[Array], Float[Array, " r"]]:
            self.traces += 1
            return _flat(advance(self.carry(leaves), packet))

        return Program(jax.jit(program, donate_argnums=0), tuple(sorted(metrics)))

    def _first(self, key: PRNGKeyArray, obs: Float[Array, "*c o"]) -> tuple[Carry[State], Array, Metrics]:
        init_key, key = jax.random.split(key)
        state = self.algorithm.init(init_key, self.spec)
        step = jnp.zeros((), jnp.int32)
        decision = self._choose(state, obs, jax.random.fold_in(key, step), warm=self.algorithm.warmup > 0)
        return Carry(state, obs, decision, jax.random.key_data(key), step), self._judge(obs, decision), {}

    def _begin(self, carry: Carry[State], obs: Float[Array, "*c o"], warm: bool) -> tuple[Carry[State], Array, Metrics]:
        """The carry at the first observation of an episode that no transition led to."""
        act_key = jax.random.fold_in(jax.random.wrap_key_data(carry.key), carry.step)
        decision = self._choose(carry.algorithm, obs, act_key, warm=warm)
        return Carry(carry.algorithm, obs, decision, carry.key, carry.step), self._judge(obs, decision), {}

    def _advance(
        self, carry: Carry[State], packet: Float[Array, "*c packet"], *, due: frozenset[str], warm: bool
    ) -> tuple[Carry[State], Array, Metrics]:
        width = packet.shape[-1]
        next_obs, seen, outcome = jnp.split(packet, [width // 2 - 1, width - 3], axis=-1)
        reward, terminated, truncated = jnp.moveaxis(outcome, -1, 0)
        transition = Transition(carry.obs, carry.decision, reward, next_obs, terminated > 0, truncated > 0)
        step = carry.step + self._copies
        update_key, act_key = jax.random.split(jax.random.fold_in(jax.random.wrap_key_data(carry.key), step))
        state, metrics = self._observe(carry.algorithm, transition), {}
        if due:
            state, metrics = self.algorithm.update(state, self.spec, update_key, due)
        decision = self._choose(state, seen, act_key, warm=warm)
        return Carry(state, seen, decision, carry.key, step), self._judge(seen, decision), metrics

    def _observe(self, state: State, transition: Transition) -> State:
        if not self._rows:
            return self.algorithm.observe(state, self.spec, transition)

        def one(state: State, transition: Transition) -> tuple[State, None]:
            return self.algorithm.observe(state, self.spec, transition), None

        return jax.lax.scan(one, state, transition)[0]

    def _choose(self, state: State, obs: Float[Array, "*c o"], key: PRNGKeyArray, *, warm: bool) -> Decision:
        if not self._rows:
            return self._choose_one(state, obs, key, warm=warm)
        keys = jax.random.split(key, self._copies)
        return jax.vmap(lambda obs, key: self._choose_one(state, obs, key, warm=warm))(obs, keys)

    def _choose_one(self, state: State, obs: Float[Array, " o"], key: PRNGKeyArray, *, warm: bool) -> Decision:
        if not warm:
            return self.algorithm.act(state, self.spec, obs, key, explore=True)
        proposed = self.algorithm.warmup_proposal(self.spec, obs, key)
        like = jax.eval_shape(partial(self.algorithm.act, explore=True), state, self.spec, obs, key)
        extras = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), like.extras)
        return eqx.tree_at(lambda d: d.extras, through(self.spec.feasible_set(obs), proposed, proposed), extras)

    def _judge(self, obs: Float[Array, "*c o"], decision: Decision) -> Float[Array, "*c r"]:
        return jax.vmap(self._judge_one)(obs, decision) if self._rows else self._judge_one(obs, decision)

    def _judge_one(self, obs: Float[Array, " o"], decision: Decision) -> Float[Array, " r"]:
        """[executed | violation and tolerance of it | whether the proposal, with and without noise, is infeasible]."""
        feasible_set = self.spec.feasible_set(obs)
        judgements = (
            feasible_set.violation(decision.executed),
            feasible_set.tolerance,
            ~feasible_set.accepts(decision.proposed),
            ~feasible_set.accepts(decision.intended),
        )
        return jnp.concatenate([decision.executed, jnp.stack([x.astype(obs.dtype) for x in judgements])])


def _flat(result: tuple[Carry[State], Array, Metrics]) -> tuple[list[Array], Float[Array, " r"]]:
    carry, report, metrics = result
    numbers = [report.ravel(), *(jnp.atleast_1d(metrics[name]).astype(report.dtype) for name in sorted(metrics))]
    return jax.tree.leaves(carry), jnp.concatenate(numbers)
