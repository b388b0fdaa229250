"""FWPO with a learned critic, and its two tabular baselines: one action a state, the states being bike allocations.

    for each step
        propose the table's action at the allocation, or with probability epsilon a uniform allocation; execute; store
        every `critic_interval` steps:  one Adam step on the temporal-difference error of a batch
        every `table_interval` steps:   every cell moves by the actor rule at its state (state-wise, equations (6), (7))
        every `target_interval` steps:  the target table becomes a copy of the table

| method               | rule               | the cell moves                                         |
|----------------------|--------------------|--------------------------------------------------------|
| `fwpo`               | `FrankWolfe(step)` | by the rule's direction itself: theta + alpha (c - theta) |
| `tabular-projection` | `PolicyGradient()` | by an Adam step along the critic's gradient            |
| `tabular-shaping`    | `PolicyGradient()` | likewise, with the shaped reward                       |

The critic sees the allocation and the action: demand is independent of the past and never seen in advance, and a time
limit is no part of the state, so Q depends on nothing else. Against the authors' code: it has the target critic follow
(theirs never moves), the target table lag (theirs is the table), and cells judged at their own allocation (theirs fills
the entries of demand and time with the index of the first station).
"""

from collections.abc import Mapping

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from feasible.algorithms.actor_rules import STATES, ActorRule, regression_loss
from feasible.algorithms.adam import adam_state, adam_step
from feasible.algorithms.base import Algorithm, Decision, Metrics, Spec, Transition
from feasible.algorithms.nets import Critic, blend
from feasible.algorithms.replay import Batch, Replay, draw, empty, store

CELLS = 10_000_000  # beyond which a table of allocations is not listed


class TableState(eqx.Module):
    table: Float[Array, "s n"]
    critic: Critic
    target_table: Float[Array, "s n"]
    target_critic: Critic
    table_optimiser: optax.OptState
    critic_optimiser: optax.OptState
    replay: Replay


class BikeTable(Algorithm[TableState]):
    """A table of actions over the integer allocations of `bikes` over stations holding `low` to `high` each."""

    rule: ActorRule
    bikes: int
    """Total number of bikes."""
    low: int
    """Fewest bikes at a station in a cell's allocation."""
    high: int
    """Most bikes at a station in a cell's allocation."""
    stations: int = 3
    """Stations."""
    table_rate: float | None = None
    """Adam's rate on the table. None: cells move by the rule's direction itself."""
    shaping: float = 0.0
    """Weight of the distance from the proposal to its projection, subtracted from the reward."""
    epsilon: float = 0.1
    """Probability of a uniform allocation as proposal."""
    warmup: int = 10_000
    """First steps, with actions drawn from the feasible sets."""
    batch_size: int = 64
    """Transitions in a batch."""
    replay_size: int = 10_000
    """Transitions kept."""
    discount: float = 0.9
    """gamma: what a reward one step later is worth."""
    critic_rate: float = 2e-3
    """Adam's rate of the critic."""
    target_ratio: float = 0.01
    """tau: share of the online critic that enters its target at each update."""
    critic_interval: int = 25
    """Steps between updates of the critic."""
    table_interval: int = 50
    """Steps between updates of the table."""
    target_interval: int = 100
    """Steps between copies of the table to the target table."""
    hidden_layers: tuple[int, ...] = (30,)
    """Units of the critic's hidden layers."""
    copies: int = 1
    """Copies of the environment that step together."""

    @property
    def intervals(self) -> Mapping[str, int]:
        return {"critic": self.critic_interval, "table": self.table_interval, "target_table": self.target_interval}

    @property
    def environments(self) -> int:
        return self.copies

    @property
    def allocations(self) -> Float[np.ndarray, "s n"]:
        """All states in the order of the table's cells; also all the actions that can be executed."""
        levels = np.arange(self.low, self.high + 1)
        grid = np.stack(np.meshgrid(*[levels] * self.stations, indexing="ij"), -1).reshape(-1, self.stations)
        return grid[grid.sum(1) == self.bikes].astype(np.float32)

    def cell(self, allocation: Float[Array, " n"]) -> Int[Array, ""]:
        """The cell of an allocation: the nearest one, which is the allocation itself."""
        apart = jnp.asarray(self.allocations) - allocation[None]
        return jnp.argmin(jnp.sum(apart * apart, axis=1))

    def init(self, key: PRNGKeyArray, spec: Spec) -> TableState:
        n, dtype = self.stations, spec.low.dtype
        if spec.observation_size != 2 * n + 1 or spec.action_size != n:
            raise ValueError(f"BikeTable: stations is {n}, but the task has actions of size {spec.action_size}.")
        if (self.high - self.low + 1) ** n > CELLS:
            raise ValueError(
                f"BikeTable: low {self.low} to high {self.high} would be a table of more than {CELLS} cells."
            )
        critic = self.network(key, spec)
        # As the authors start: as few bikes as possible at the first station, as many as fit elsewhere.
        rest = [min(self.high, self.bikes - self.low - self.high * k) for k in range(n - 1)]
        table = jnp.tile(jnp.asarray([self.low, *rest], dtype)[None], (len(self.allocations), 1))
        return TableState(
            table,
            critic,
            jnp.copy(table),
            jax.tree.map(jnp.copy, critic),
            adam_state(0.0 if self.table_rate is None else self.table_rate, table),
            adam_state(self.critic_rate, critic),
            empty(self.replay_size, spec),
        )

    def network(self, key: PRNGKeyArray, spec: Spec) -> Critic:
        """A new critic."""
        obs = jax.eval_shape(self.seen, jax.ShapeDtypeStruct((spec.observation_size,), spec.low.dtype))
        critic = Critic(obs.shape[0], self.stations, self.hidden_layers, "relu", key)
        return jax.tree.map(lambda leaf: leaf.astype(spec.low.dtype), critic)

    def seen(self, obs: Float[Array, " o"]) -> Float[Array, " c"]:
        """What the critic sees of an observation: the bikes at each station."""
        return self.bikes_of(obs)

    def judged_at(self, spec: Spec, bikes: Float[Array, " n"]) -> Float[Array, " o"]:
        """The observation at which the action of an allocation's cell is judged."""
        return jnp.zeros(spec.observation_size, bikes.dtype).at[self.stations : 2 * self.stations].set(bikes)

    def act(
        self, policy: Float[Array, "s n"], spec: Spec, obs: Float[Array, " o"], key: PRNGKeyArray, *, explore: bool
    ) -> Decision:
        intended = policy[self.cell(self.bikes_of(obs))]
        proposed = intended
        if explore:
            whether, which = jax.random.split(key)
            anywhere = jnp.asarray(self.allocations, intended.dtype)
            drawn = anywhere[jax.random.randint(which, (), 0, len(anywhere))]
            proposed = jnp.where(jax.random.uniform(whether) < self.epsilon, drawn, intended)
        return spec.decide(obs, proposed, intended)

    def observe(self, state: TableState, spec: Spec, transition: Transition) -> TableState:
        proposed = transition.decision.proposed
        nearest = spec.feasible_set(transition.obs).project(proposed)
        reward = transition.reward - self.shaping * jnp.linalg.norm(proposed - nearest)
        return eqx.tree_at(lambda s: s.replay, state, store(state.replay, transition, reward))

    def update(
        self, state: TableState, spec: Spec, key: PRNGKeyArray, due: frozenset[str]
    ) -> tuple[TableState, Metrics]:
        metrics: Metrics = {}
        table, table_optimiser, target_table = state.table, state.table_optimiser, state.target_table
        critic, critic_optimiser, target_critic = state.critic, state.critic_optimiser, state.target_critic
        if "table" in due:
            table, table_optimiser, seen = self._move_table(state, spec)
            metrics |= seen
        if "critic" in due:
            batch = self.batch(state.replay, spec, key)
            loss, grads = jax.value_and_grad(self.critic_loss)(critic, state, batch)
            critic, critic_optimiser = adam_step(self.critic_rate, grads, critic_optimiser, critic)
            target_critic = blend(target_critic, critic, self.target_ratio)
            metrics |= {"critic/loss": loss}
        if "target_table" in due:
            target_table = jnp.copy(table)
        return TableState(
            table, critic, target_table, target_critic, table_optimiser, critic_optimiser, state.replay
        ), metrics

    def batch(self, replay: Replay, spec: Spec, key: PRNGKeyArray) -> Batch:
        """The transitions of the critic's step."""
        return draw(replay, self.batch_size, key, spec)

    def critic_loss(self, critic: Critic, state: TableState, batch: Batch) -> Float[Array, ""]:
        """Mean squared temporal-difference error of the executed actions."""

        def next_value(obs: Array) -> Array:
            return state.target_critic(self.seen(obs), state.target_table[self.cell(self.bikes_of(obs))])

        target = batch.reward + self.discount * batch.continues * jax.vmap(next_value)(batch.next_obs)
        values = jax.vmap(critic)(jax.vmap(self.seen)(batch.obs), batch.executed)
        return jnp.mean(jnp.square(values - target))

    def policy(self, state: TableState, *, explore: bool = False) -> Float[Array, "s n"]:
        return state.table

    def _move_table(self, state: TableState, spec: Spec) -> tuple[Array, optax.OptState, Metrics]:
        allocations = jnp.asarray(self.allocations, state.table.dtype)

        def direction(bikes: Array, action: Array) -> tuple[Array, Metrics]:
            obs = self.judged_at(spec, bikes)
            gradient = jax.grad(state.critic, argnums=1)
            return self.rule.direction(spec.feasible_set(obs), action, lambda a: gradient(self.seen(obs), a))

        directions, metrics = jax.vmap(direction, axis_name=STATES)(allocations, state.table)
        optimiser = state.table_optimiser
        if self.table_rate is None:
            table = state.table + directions
        else:
            grads = jax.grad(regression_loss)(state.table, state.table + directions)
            table, optimiser = adam_step(self.table_rate, grads, optimiser, state.table)
        distance = jnp.sum(jnp.linalg.norm(jnp.round(table) - allocations, axis=1))
        return table, optimiser, {**jax.tree.map(jnp.mean, metrics), "policy/distance_to_optimal": distance}

    def bikes_of(self, obs: Float[Array, " o"]) -> Float[Array, " n"]:
        """The bikes at each station: the allocation that an observation shows."""
        return obs[self.stations : 2 * self.stations]
