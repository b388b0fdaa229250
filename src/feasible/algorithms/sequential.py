"""PPO, entry by entry (the idea of PASPO, NeurIPS 2024): actions are feasible before any projection.

    for each step
        x = (s - mean) / deviation, by running statistics of the observations; the constraint sees s itself
        for each entry i: z_i ~ Beta(alpha_i, beta_i) by x and z_1, ..., z_(i-1); a_i = least_i + width_i z_i, in the
            interval that the feasible set leaves for it after a_1, ..., a_(i-1)
        propose and execute a; record z and the widths
        after every `horizon` steps: PPO's update, as in `feasible.algorithms.ppo`, with densities of the z

The last entries are determined where equalities leave no room; they have no density. Without exploration each z_i is
the mean of its distribution. Densities in the action's space differ from those of z by the widths, which are the same
before and after a step of learning: they cancel in ratios, and updates solve nothing. The entropy's bonus counts the
logarithms of the widths; it is taken along the recorded draws, with no derivative by how other draws would have changed
the widths. Intervals: `feasible.algorithms.intervals`, in closed form or by two small linear programs an entry.

The first policy is about uniform on the set: each entry's Beta has the moments of 512 points of the feasible set at
the observation zero, drawn by hit-and-run (a box: exactly uniform; an entry without room there: Beta(1, 1)).

Against the authors' code: one network of features with a small head an entry instead of a network an entry, moments
instead of maximum likelihood on 100,000 points, boxes and budgets as well as allocations and polytopes, sets that
depend on the state, and the exact kernel of `feasible.solve.lp` inside the compiled step instead of a solver.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from feasible.algorithms.adam import adam_state
from feasible.algorithms.base import Decision, Metrics, Spec, Transition
from feasible.algorithms.betas import EDGE, Betas, SequentialPolicy, uniform_parameters
from feasible.algorithms.from_rollouts import FromRollouts
from feasible.algorithms.intervals import ends, has_intervals, placed, relaxed
from feasible.algorithms.nets import Perceptron
from feasible.algorithms.rollout import Rollout, Step, no_rollout, record, steps
from feasible.algorithms.statistics import Statistics, no_statistics
from feasible.sets.base import ActionSet

Policy = tuple[SequentialPolicy, Statistics]
Networks = tuple[SequentialPolicy, Perceptron]
POINTS = 512  # of the feasible set, for the first policy


class SequentialState(eqx.Module):
    actor: SequentialPolicy
    critic: Perceptron
    optimiser: optax.OptState
    statistics: Statistics
    rollout: Rollout
    """With the scaled draws for samples, and the widths of their intervals instead of what clipping makes."""


class SequentialBatch(eqx.Module):
    """Steps of a rollout, with what learning from them needs."""

    x: Float[Array, "b o"]
    z: Float[Array, "b n"]
    before: Betas
    """The policy that acted."""
    log_density: Float[Array, " b"]
    advantages: Float[Array, " b"]
    targets: Float[Array, " b"]


class SequentialPPO(FromRollouts[SequentialState]):
    """Proximal policy optimisation of a policy that draws entry by entry."""

    clip: float = 0.2
    """Clip ratios that differ from one by more than this."""
    entropy_weight: float = 0.0
    """Weight of the entropy in the loss."""
    head_units: int = 32
    """Units of the hidden layer of each entry's head."""

    def init(self, key: PRNGKeyArray, spec: Spec) -> SequentialState:
        self.check(spec)
        actor_key, critic_key, fit_key = jax.random.split(key, 3)
        o, n, dtype = spec.observation_size, spec.action_size, spec.low.dtype

        # Traced, so that a set that would be refused at the observation zero is not judged.
        @jax.jit
        def start(key: PRNGKeyArray) -> Float[Array, "n 2"]:
            return uniform_parameters(relaxed(spec.feasible_set(jnp.zeros(o, dtype))), key, POINTS)

        actor = SequentialPolicy(o, start(fit_key), self.hidden_layers, self.head_units, self.hidden, actor_key)
        critic = Perceptron(o, 1, self.hidden_layers, self.hidden, critic_key)
        actor, critic = jax.tree.map(lambda leaf: leaf.astype(dtype), (actor, critic))
        optimiser, rollout = adam_state(self.rate, (actor, critic)), no_rollout(self.horizon, o, n, 1, dtype)
        return SequentialState(actor, critic, optimiser, no_statistics(o, dtype), rollout)

    def check(self, spec: Spec) -> None:
        """Refuse settings that do not go together, and sets whose intervals are not known."""
        self.check_sizes()
        kind = type(spec.region)
        if not has_intervals(kind):
            raise ValueError(
                f"SequentialPPO: entries are drawn one after the other from a box, an allocation, a weighted budget or "
                f"a polytope, but this task has a {kind.__name__}; ppo-radial and ppo-projection take every set."
            )

    def act(self, policy: Policy, spec: Spec, obs: Float[Array, " o"], key: PRNGKeyArray, *, explore: bool) -> Decision:
        actor, statistics = policy
        x, region = self.seen(statistics, obs), spec.feasible_set(obs)
        features = actor.features(x)
        proposed, z, width = walk(actor, features, relaxed(region), key if explore else None)
        # What it would do without exploration is as feasible, and is not worth another walk.
        return Decision(proposed, region.execute(proposed), proposed, {"x": x, "z": z, "width": width})

    def observe(self, state: SequentialState, spec: Spec, transition: Transition) -> SequentialState:
        extras = transition.decision.extras
        step = Step(
            extras["x"],
            extras["z"],
            extras["width"],
            self.seen(state.statistics, transition.next_obs),
            transition.reward[None],
            transition.obs[:0],
            transition.terminated,
            transition.terminated | transition.truncated,
        )
        new = record(state.rollout, step), self.absorbed(state.statistics, transition.obs)
        return eqx.tree_at(lambda s: (s.rollout, s.statistics), state, new)

    def batch(self, state: SequentialState, spec: Spec) -> SequentialBatch:
        """The whole rollout."""
        taken = steps(state.rollout, self.copies, spec.observation_size, spec.action_size)
        taken, advantages, targets = self.estimated(taken, (state.critic,))
        before = jax.vmap(state.actor.given)(taken.x, taken.sample, taken.clipped)
        density = before.log_density(taken.sample)
        return SequentialBatch(taken.x, taken.sample, before, density, advantages[:, 0], targets[:, 0])

    def update(
        self, state: SequentialState, spec: Spec, key: PRNGKeyArray, due: frozenset[str]
    ) -> tuple[SequentialState, Metrics]:
        batch, keys = self.batch(state, spec), jax.random.split(key, self.epochs)
        networks = state.actor, state.critic
        (actor, critic), optimiser, metrics = self.learn(networks, state.optimiser, batch, keys, self.loss)
        return SequentialState(actor, critic, optimiser, state.statistics, state.rollout), metrics

    def loss(self, networks: Networks, batch: SequentialBatch) -> tuple[Array, Metrics]:
        actor, critic = networks
        now = jax.vmap(actor.given)(batch.x, batch.z, batch.before.width)
        ratio = jnp.exp(now.log_density(batch.z) - batch.log_density)
        near = jnp.clip(ratio, 1.0 - self.clip, 1.0 + self.clip)
        surrogate = jnp.mean(jnp.minimum(ratio * batch.advantages, near * batch.advantages))
        entropy = jnp.mean(now.entropy())
        errors = jnp.mean(jnp.square(jax.vmap(critic)(batch.x)[:, 0] - batch.targets))
        metrics = {
            "actor/loss": -surrogate,
            "actor/entropy": entropy,
            "actor/divergence": jnp.mean(batch.before.divergence(now)),
            "actor/clipped_share": jnp.mean((jnp.abs(ratio - 1.0) > self.clip).astype(ratio.dtype)),
            "critic/loss": errors,
        }
        return errors - surrogate - self.entropy_weight * entropy, metrics

    def policy(self, state: SequentialState, *, explore: bool = False) -> Policy:
        return state.actor, state.statistics


def walk(
    actor: SequentialPolicy, features: Float[Array, " f"], region: ActionSet, key: PRNGKeyArray | None
) -> tuple[Float[Array, " n"], Float[Array, " n"], Float[Array, " n"]]:
    """An action of the set, its scaled entries and the widths of their intervals; means of entries without a key."""
    n = region.dim
    keys = jax.random.split(jax.random.key(0) if key is None else key, n)

    def draw(now: tuple[Array, Array], at: tuple[Array, PRNGKeyArray]) -> tuple[tuple[Array, Array], Array]:
        (point, z), (entry, own) = now, at
        alpha, beta = actor.entry(features, z, entry)
        share = alpha / (alpha + beta) if key is None else jax.random.beta(own, alpha, beta, dtype=z.dtype)
        share = jnp.clip(share, EDGE, 1.0 - EDGE)
        least, most = ends(region, entry, point)
        point = least + share * (most - least)
        kept, width = placed(region, point[entry], least[entry], most[entry])
        share = jnp.where(width > 0, share, kept)
        return (point, jnp.where(jnp.arange(n) == entry, share, z)), width

    start = region.centre(), jnp.full(n, 0.5, region.dtype)
    (point, z), widths = jax.lax.scan(draw, start, (jnp.arange(n), keys))
    return point, z, widths
