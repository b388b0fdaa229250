"""What PPO, TRPO and FOCOPS share: a Gaussian policy under action constraints, its rollouts and its critics.

    for each step
        x = (s - mean) / deviation, by running statistics of the observations; the constraint sees s itself
        sample u ~ N(mean(x), diag(std^2)) in units of the action box; propose u clipped to the box,
        execute the feasible set's answer to it; record the step
        after every `horizon` steps: advantages from the critics, then an update of policy and critics

Log-densities are of the sample. With `capg` they are of the clipped sample (Fujita and Maeda, 2018), which needs
a box for a feasible set.

With `map="radial"` the proposal is `radial` of the sample, in d coordinates of the set's hull: feasible, and since the
map is one to one its derivative cancels in ratios of densities (the ray mask of Stolz et al., 2024). With
`map="truncated"` (PPO) the proposal is drawn from the Gaussian restricted to the set, its mean brought inside; the
rollout keeps raw observations, so that densities are those of the set of the state. The divergence that is reported is
then that of the Gaussians before they are restricted.
"""

from abc import abstractmethod
from typing import ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from feasible.algorithms.base import Decision, Spec, Transition
from feasible.algorithms.from_rollouts import Critics as Critics
from feasible.algorithms.from_rollouts import FromRollouts
from feasible.algorithms.gaussian import GaussianPolicy, Normal
from feasible.algorithms.maps import trouble_inside
from feasible.algorithms.nets import Perceptron
from feasible.algorithms.rollout import Rollout, Step, no_rollout, record, steps
from feasible.algorithms.statistics import Statistics, no_statistics
from feasible.algorithms.truncated import Frame, Truncated, check_truncated, spread_directions
from feasible.sets.box import Box

Policy = tuple[GaussianPolicy, Statistics]


class OnPolicyState(eqx.Module):
    """One critic for each gain: that of the reward first, then those of the costs, each with its multiplier."""

    actor: GaussianPolicy
    critics: Critics
    multipliers: Float[Array, " costs"]
    optimiser: optax.OptState
    statistics: Statistics
    rollout: Rollout


class Batch(eqx.Module):
    """Steps of a rollout, with what learning from them needs."""

    x: Float[Array, "b o"]
    sample: Float[Array, "b n"]
    clipped: Float[Array, "b n"]
    before: Normal
    """The policy that acted."""
    log_density: Float[Array, " b"]
    """Of the sample, under the policy that acted."""
    advantages: Float[Array, "b g"]
    targets: Float[Array, "b g"]
    frame: Frame | None = None
    """The feasible sets of the steps, where densities depend on them."""


class OnPolicy(FromRollouts[OnPolicyState]):
    """Learning from the steps of the present policy only."""

    restricts: ClassVar[bool] = False
    """Whether `map="truncated"` is known."""
    costs: ClassVar[int] = 0
    """1 where the constraint is relaxed to a cost, too: a proposal's worst residual, 0 or less if it is feasible."""

    log_std: float = 0.0
    """Logarithm of the first policy's spread, in units of half the action box."""
    bounded: bool = False
    """Pass the policy's mean through tanh, so that it lies in the action box."""
    capg: bool = False
    """Clipped-action policy gradient, for boxes: log-densities of the clipped samples."""
    map: Literal["projection", "radial", "truncated"] = "projection"
    """How the sample becomes a proposal (`feasible.algorithms.maps`); `truncated` for PPO only."""
    directions: int = 32
    """Rays from the mean by which `truncated` measures the set; an even number."""

    def trouble(self, spec: Spec, obs: Float[Array, " o"]) -> str | None:
        return None if self.map == "projection" else trouble_inside(spec.feasible_set(obs), self.map)

    @abstractmethod
    def optimiser(self, actor: GaussianPolicy, critics: Critics) -> optax.OptState:
        """The first state of Adam, over what it learns."""

    def init(self, key: PRNGKeyArray, spec: Spec) -> OnPolicyState:
        self.check(spec)
        actor_key, *critic_keys = jax.random.split(key, 2 + self.costs)
        o, n, dtype = spec.observation_size, self.sample_size(spec), spec.low.dtype
        policy = GaussianPolicy(
            o, n, self.hidden_layers, self.hidden, actor_key, log_std=self.log_std, bounded=self.bounded
        )
        critics = tuple(Perceptron(o, 1, self.hidden_layers, self.hidden, k) for k in critic_keys)
        actor, critics = jax.tree.map(lambda leaf: leaf.astype(dtype), (policy, critics))
        return OnPolicyState(
            actor,
            critics,
            jnp.zeros(self.costs, dtype),
            self.optimiser(actor, critics),
            no_statistics(o, dtype),
            no_rollout(self.horizon, o, n, 1 + self.costs, dtype, self.context_size(spec)),
        )

    def check(self, spec: Spec) -> None:
        """Refuse settings that do not go together, and sets whose samples are not clipped coordinate by coordinate."""
        name = type(self).__name__
        self.check_sizes()
        kind = type(spec.region)
        if self.capg and kind is not Box:
            raise ValueError(
                f"{name}: capg needs a Box for a feasible set, because it corrects for clipping, but this task has a "
                f"{kind.__name__}; leave capg out, or use nfwpo, which takes every set."
            )
        if self.capg and self.map != "projection":
            raise ValueError(f"{name}: capg corrects for clipping, so map must be 'projection', not {self.map!r}.")
        if self.map == "truncated":
            if not self.restricts:
                raise ValueError(f"{name}: map='truncated' is for PPO only; use map='radial' or 'projection'.")
            check_truncated(name, spec, self.directions)

    def sample_size(self, spec: Spec) -> int:
        return spec.action_size if self.map == "projection" else spec.region.hull_dim

    def context_size(self, spec: Spec) -> int:
        """What a rollout keeps beside: the raw observation, where densities depend on the feasible set."""
        return spec.observation_size if self.map == "truncated" else 0

    def act(self, policy: Policy, spec: Spec, obs: Float[Array, " o"], key: PRNGKeyArray, *, explore: bool) -> Decision:
        actor, statistics = policy
        x = self.seen(statistics, obs)
        normal = actor(x)
        if self.map != "projection":
            return self.act_inside(normal, spec, obs, x, key, explore=explore)
        sample = normal.sample(key) if explore else normal.mean
        centre, half = 0.5 * (spec.high + spec.low), 0.5 * (spec.high - spec.low)
        raw = centre + half * sample
        proposed = spec.clip(raw)
        executed = spec.feasible_set(obs).execute(proposed)
        # Where nothing was changed the sample stays as it is, to the last bit.
        clipped = jnp.where(executed == raw, sample, (executed - centre) / jnp.where(half > 0, half, 1.0))
        extras = {"x": x, "sample": sample, "clipped": clipped}
        return Decision(proposed, executed, spec.clip(centre + half * normal.mean), extras)

    def act_inside(
        self, normal: Normal, spec: Spec, obs: Float[Array, " o"], x: Array, key: PRNGKeyArray, *, explore: bool
    ) -> Decision:
        """The proposal of a map into the set. Samples are what densities are of: before `radial`, or inside."""
        frame = Frame.of(spec, spec.feasible_set(obs))
        sample, y = normal.mean, frame.mean(normal.mean) if self.map == "truncated" else frame.radial(normal.mean)
        intended = frame.hull.action(y)
        if explore and self.map == "radial":
            sample = normal.sample(key)
            y = frame.radial(sample)
        elif explore:
            ways_key, key = jax.random.split(key)
            y, _ = frame.truncated(normal, self._ways(ways_key, normal)).sample(key)
            sample = y
        proposed = frame.hull.action(y)
        extras = {"x": x, "sample": sample, "clipped": sample}
        return Decision(proposed, frame.region.execute(proposed), intended, extras)

    def _ways(self, key: PRNGKeyArray, normal: Normal) -> Float[Array, "k d"]:
        return spread_directions(key, self.directions, normal.mean.shape[-1], normal.mean.dtype)

    def observe(self, state: OnPolicyState, spec: Spec, transition: Transition) -> OnPolicyState:
        decision = transition.decision
        gains = [transition.reward]
        if self.costs:
            gains.append(spec.feasible_set(transition.obs).coupling(decision.proposed))
        step = Step(
            decision.extras["x"],
            decision.extras["sample"],
            decision.extras["clipped"],
            self.seen(state.statistics, transition.next_obs),
            jnp.stack(gains),
            transition.obs[: self.context_size(spec)],
            transition.terminated,
            transition.terminated | transition.truncated,
        )
        new = record(state.rollout, step), self.absorbed(state.statistics, transition.obs)
        return eqx.tree_at(lambda s: (s.rollout, s.statistics), state, new)

    def taken(self, state: OnPolicyState, spec: Spec) -> Step:
        """The steps of a full rollout, by time and copy."""
        sizes = spec.observation_size, self.sample_size(spec), self.context_size(spec)
        return steps(state.rollout, self.copies, *sizes)

    def batch(self, state: OnPolicyState, spec: Spec) -> Batch:
        """The whole rollout: every step with its standardised advantages and the critics' targets."""
        taken, estimates, targets = self.estimated(self.taken(state, spec), state.critics)
        before = jax.vmap(state.actor)(taken.x)
        frame = None
        if self.map == "truncated":
            frame = jax.vmap(lambda obs: Frame.of(spec, spec.feasible_set(obs)))(taken.context)
        return Batch(
            taken.x,
            taken.sample,
            taken.clipped,
            before,
            self.log_density(before, taken.sample, taken.clipped, frame),
            estimates,
            targets,
            frame,
        )

    def log_density(
        self, normal: Normal, sample: Float[Array, "b n"], clipped: Float[Array, "b n"], frame: Frame | None
    ) -> Float[Array, " b"]:
        """Of samples of the policy, or of what clipping made of them."""
        if frame is not None:
            return jax.vmap(lambda one, y: one.log_density(y))(self.restricted(normal, frame), sample)
        return normal.log_clipped(sample, clipped) if self.capg else normal.log_density(sample)

    def ratio(self, normal: Normal, batch: Batch) -> Float[Array, " b"]:
        """pi(u|x) / pi_before(u|x) for the policy's distributions at the batch's observations."""
        return jnp.exp(self.log_density(normal, batch.sample, batch.clipped, batch.frame) - batch.log_density)

    def entropies(self, normal: Normal, frame: Frame | None) -> Float[Array, " b"]:
        """Of the policies, or before a map is applied to them."""
        if frame is None:
            return normal.entropy()
        return jax.vmap(lambda one: one.entropy)(self.restricted(normal, frame))

    def restricted(self, normal: Normal, frame: Frame) -> Truncated:
        """The policies at a batch of states, by the same directions before and after a step of learning."""
        ways = self._ways(jax.random.key(0), normal)
        return jax.vmap(lambda one, part: part.truncated(one, ways))(normal, frame)

    def policy(self, state: OnPolicyState, *, explore: bool = False) -> Policy:
        return state.actor, state.statistics


def critic_loss(critics: Critics, batch: Batch) -> Float[Array, ""]:
    """Sum of the critics' mean squared errors."""
    errors = jnp.concatenate([jax.vmap(critic)(batch.x) for critic in critics], axis=-1) - batch.targets
    return jnp.sum(jnp.mean(jnp.square(errors), axis=0))
