"""A probe with a known answer, for every method: the best action lies on the boundary, which moves with the state.

One step an episode, reward <c, a>, actions in a ball around zero whose radius the observation tells: the best action is
radius * c / |c|. For the clipped-action gradient a box takes the ball's place, and its corner is best.
"""

import math
from collections.abc import Callable
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from feasible.algorithms.actor_rules import ActorRule, FrankWolfe, PolicyGradient, ProjectedGradient, ThroughProjection
from feasible.algorithms.base import Algorithm, Spec, Transition
from feasible.algorithms.ddpg import DDPG
from feasible.algorithms.focops import FOCOPS
from feasible.algorithms.ppo import PPO
from feasible.algorithms.sac import SAC
from feasible.algorithms.trpo import TRPO
from feasible.sets import Ball, Box

SLOPE = np.array([0.6, 0.8])
LOW, HIGH = jnp.full(2, -1.0), jnp.full(2, 1.0)
IN_BALL = Spec(1, LOW, HIGH, lambda obs: Ball(jnp.zeros(2), obs[0]))
IN_BOX = Spec(1, LOW, HIGH, lambda obs: Box(-obs[0] * jnp.ones(2), obs[0] * jnp.ones(2)))
ROLLOUTS = {"horizon": 256, "minibatch": 64, "epochs": 10, "hidden_layers": (16,)}


def ddpg(rule: ActorRule, shaping: float = 0.0, **settings: object) -> DDPG:
    return DDPG(
        rule=rule,
        **settings,  # pyright: ignore[reportArgumentType]
        noise=0.2,
        shaping=shaping,
        warmup=0,
        batch_size=32,
        replay_size=2_000,
        hidden_layers=(16, 16),
        actor_rate=3e-3,
        critic_rate=3e-3,
    )


SOFT = SAC(
    entropy_weight=0.01,
    warmup=0,
    learning_starts=0,
    interval=1,
    updates=1,
    batch_size=32,
    replay_size=2_000,
    rate=3e-3,
    hidden_layers=(16,),
)
TD3 = {"twin": True, "target_noise": 0.1, "actor_interval": 2, "delayed_targets": True, "target_ratio": 0.01}
METHODS: dict[str, tuple[Algorithm, Spec, int]] = {
    "nfwpo": (ddpg(FrankWolfe(0.1)), IN_BALL, 2_000),
    "ddpg-projection": (ddpg(PolicyGradient()), IN_BALL, 2_000),
    "ddpg-shaping": (ddpg(PolicyGradient(), shaping=0.5), IN_BALL, 2_000),
    "ddpg-optlayer": (ddpg(ThroughProjection()), IN_BALL, 2_000),
    "sac-projection": (SOFT, IN_BALL, 2_000),
    "ppo-projection": (PPO(**ROLLOUTS, rate=3e-3), IN_BALL, 8_000),
    "trpo-projection": (TRPO(**ROLLOUTS, divergence=0.05), IN_BALL, 16_000),
    "focops-projection": (FOCOPS(**ROLLOUTS, rate=3e-3, divergence=0.1, reach=0.1), IN_BALL, 8_000),
    "td3-projection": (ddpg(PolicyGradient(), **TD3), IN_BALL, 3_000),
    "td3-proposed": (ddpg(PolicyGradient(), **TD3, critic_at="proposed"), IN_BALL, 3_000),
    "td3-optlayer": (ddpg(ThroughProjection(), **TD3), IN_BALL, 3_000),
    "td3-nfwpo": (ddpg(FrankWolfe(0.1), **TD3), IN_BALL, 3_000),
    "td3-projected-gradient": (ddpg(ProjectedGradient(0.1), **TD3), IN_BALL, 3_000),
    "td3-alpha": (ddpg(PolicyGradient(), **TD3, map="alpha", output="linear"), IN_BALL, 3_000),
    "td3-radial": (ddpg(PolicyGradient(), **TD3, map="radial", output="linear"), IN_BALL, 3_000),
    "sac-proposed": (replace(SOFT, critic_at="proposed"), IN_BALL, 2_000),
    "sac-alpha": (replace(SOFT, map="alpha"), IN_BALL, 2_000),
    "sac-radial": (replace(SOFT, map="radial"), IN_BALL, 2_000),
    "sac-truncated": (replace(SOFT, map="truncated", directions=16, entropy_weight=0.05), IN_BALL, 2_000),
    "ppo-radial": (PPO(**ROLLOUTS, rate=3e-3, map="radial"), IN_BALL, 8_000),
    "ppo-truncated": (PPO(**ROLLOUTS, rate=3e-3, map="truncated", directions=16), IN_BALL, 8_000),
    "ppo-capg": (PPO(**ROLLOUTS, rate=3e-3, capg=True), IN_BOX, 8_000),
    "trpo-capg": (TRPO(**ROLLOUTS, divergence=0.05, capg=True), IN_BOX, 16_000),
}


def trained(algorithm: Algorithm, spec: Spec, steps: int, scale: float = 1.0) -> Callable[[jax.Array], jax.Array]:
    """What the algorithm executes, without exploration, after so many steps on the probe: one program.

    The observation is `scale` times the radius.
    """
    due, period = frozenset(algorithm.intervals), math.lcm(*algorithm.intervals.values())

    def observed(key: jax.Array) -> jax.Array:
        return scale * jax.random.uniform(key, (1,), jnp.float64, 0.2, 0.8)

    def step(state, key: jax.Array):
        obs_key, act_key, next_key = jax.random.split(key, 3)
        obs = observed(obs_key)
        decision = algorithm.act(algorithm.policy(state), spec, obs, act_key, explore=True)
        reward = jnp.asarray(SLOPE) @ decision.executed
        ends = jnp.asarray(True), jnp.asarray(False)
        return algorithm.observe(state, spec, Transition(obs, decision, reward, observed(next_key), *ends)), None

    def learn(state, key: jax.Array):
        step_key, update_key = jax.random.split(key)
        state, _ = jax.lax.scan(step, state, jax.random.split(step_key, period))
        return algorithm.update(state, spec, update_key, due)[0], None

    @jax.jit
    def train(key: jax.Array):
        init_key, key = jax.random.split(key)
        state = algorithm.init(init_key, spec)
        return jax.lax.scan(learn, state, jax.random.split(key, steps // period))[0]

    state = train(jax.random.key(0))
    return jax.jit(
        lambda obs: algorithm.act(algorithm.policy(state), spec, obs, jax.random.key(0), explore=False).executed
    )


# By default one of each kind; the others are the same code with other factors. SAC without a density of its own learns
# a probe in test_sac.py and test_normalised.py.
LONGER = (
    *("ddpg-shaping", "td3-projection", "td3-proposed", "td3-optlayer", "td3-nfwpo", "sac-proposed", "sac-alpha"),
    *("ppo-radial", "ppo-truncated", "trpo-capg", "sac-projection", "td3-radial"),
    *("ddpg-projection", "ddpg-optlayer", "ppo-projection", "sac-radial", "td3-projected-gradient"),
)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in LONGER else name for name in METHODS]
)
def test_the_best_action_on_the_boundary_is_found(name: str) -> None:
    algorithm, spec, steps = METHODS[name]
    act = trained(algorithm, spec, steps)
    for radius in (0.25, 0.5, 0.75):
        best = radius * (np.ones(2) if spec is IN_BOX else SLOPE)
        executed = np.asarray(act(jnp.full(1, radius)))
        # By the reward. FOCOPS also keeps its mean cost at the limit, so inside.
        assert SLOPE @ executed > 0.9 * (SLOPE @ best), (name, radius, executed)
