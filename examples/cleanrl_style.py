"""A training loop in one file, over the pure functions that an algorithm consists of.

    python examples/cleanrl_style.py

The agents of this library are thin: `init`, `act`, `observe` and `update` do the work, and this is what drives them.
Copy it to change the loop: other replay, several environments, your own logging. (`fs.NFWPO(env).learn(...)` does the
same in one dispatch a step and with checks at every step, and is what one uses unless the loop itself is the matter.)
"""

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np

import feasible as fs
from feasible.algorithms.actor_rules import FrankWolfe
from feasible.algorithms.base import Spec, Transition
from feasible.algorithms.ddpg import DDPG

STEPS, WARMUP, SEED = 1_000, 200, 0


def constraint(obs: jax.Array) -> fs.sets.ActionSet:
    """Pendulum's torque may be the smaller the faster it turns."""
    return fs.sets.Ball(jnp.zeros(1), 2.0 - 0.15 * jnp.abs(obs[2]))


if __name__ == "__main__":
    # "raise" is the default: if the loop ever executed an infeasible action, the environment would say so.
    env = fs.constrain(gym.make("Pendulum-v1"), constraint)
    spec = Spec(3, jnp.array([-2.0]), jnp.array([2.0]), constraint, 200)
    algorithm = DDPG(
        rule=FrankWolfe(0.05),  # NFWPO; PolicyGradient() makes it DDPG with projection
        noise=0.2,
        warmup=WARMUP,
        replay_size=STEPS,
        hidden_layers=(32, 32),
        actor_rate=1e-3,
    )

    # Spec and algorithm are constants of the programs; the state goes in and out.
    act = jax.jit(lambda state, obs, key: algorithm.act(algorithm.policy(state), spec, obs, key, explore=True))
    observe = jax.jit(lambda state, transition: algorithm.observe(state, spec, transition))
    update = jax.jit(lambda state, key: algorithm.update(state, spec, key, frozenset(algorithm.intervals)))
    warmup = jax.jit(lambda obs, key: spec.feasible_set(obs).sample(key))
    accepts = jax.jit(lambda obs, proposed: spec.feasible_set(obs).accepts(proposed))

    key, init_key = jax.random.split(jax.random.key(SEED))
    state = jax.jit(lambda key: algorithm.init(key, spec))(init_key)
    obs, _ = env.reset(seed=SEED)
    returns, metrics, infeasible = [0.0], {}, 0
    for step in range(STEPS):
        act_key, update_key = jax.random.split(jax.random.fold_in(key, step))
        decision = act(state, obs, act_key)
        if step < WARMUP:
            sample = warmup(obs, act_key)
            decision = type(decision)(sample, sample, sample, decision.extras)
        infeasible += not bool(accepts(obs, decision.proposed))
        next_obs, reward, terminated, truncated, _ = env.step(np.asarray(decision.executed))
        transition = Transition(
            jnp.asarray(obs),
            decision,
            jnp.float32(reward),
            jnp.asarray(next_obs),
            jnp.bool(terminated),
            jnp.bool(truncated),
        )
        state = observe(state, transition)
        if step >= WARMUP:
            state, metrics = update(state, update_key)
        returns[-1] += float(reward)
        obs = next_obs
        if terminated or truncated:
            print(f"step {step + 1:5d}  return {returns[-1]:8.1f}")
            returns.append(0.0)
            obs, _ = env.reset()
    print("last update:", {name: round(float(value), 4) for name, value in metrics.items()})
    print(f"proposals outside the feasible set: {infeasible} of {STEPS}; executed: 0, or the environment had refused")
