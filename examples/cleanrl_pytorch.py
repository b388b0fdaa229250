"""PPO in one file of PyTorch, in the manner of CleanRL, with actions that are feasible by construction.

    pip install 'feasible[torch]'
    python examples/cleanrl_pytorch.py

Two lines differ from an unconstrained file: the Gaussian is a `MappedGaussian` of the constraint, and it is asked with
the observation. Its samples lie in the feasible set, and its log-probabilities are densities in that set.
"""

import sys

import gymnasium as gym
import jax
import jax.numpy as jnp

import feasible as fs

STEPS, ROLLOUT, EPOCHS, MINIBATCH, RATE, DISCOUNT, TRACE, CLIP = 4_000, 1_000, 10, 100, 1e-3, 0.95, 0.95, 0.2


def constraint(obs: jax.Array) -> fs.sets.ActionSet:
    """Pendulum's torque may be the smaller the faster it turns."""
    return fs.sets.Ball(jnp.zeros(1), 2.0 - 0.15 * jnp.abs(obs[2]))


if __name__ == "__main__":
    try:
        import torch  # pyright: ignore[reportMissingImports]
    except ModuleNotFoundError:
        sys.exit("This example needs PyTorch: pip install 'feasible[torch]'.")
    from torch import nn  # pyright: ignore[reportMissingImports]

    import feasible.torch as ft

    torch.manual_seed(0)
    # "raise" is the default: if the loop ever executed an infeasible action, the environment would say so.
    env = fs.constrain(gym.make("Pendulum-v1"), constraint)
    policy = ft.MappedGaussian(constraint, [-2.0], [2.0], map="radial")
    actor = nn.Sequential(nn.Linear(3, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
    critic = nn.Sequential(nn.Linear(3, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
    log_std = nn.Parameter(torch.full((1,), -0.5))
    optimiser = torch.optim.Adam([*actor.parameters(), *critic.parameters(), log_std], lr=RATE)

    obs = torch.as_tensor(env.reset(seed=0)[0])
    returns, largest, ratio = [0.0], 0.0, torch.ones(1)
    for _ in range(STEPS // ROLLOUT):
        rows = []
        for _ in range(ROLLOUT):
            with torch.no_grad():
                action, _ = policy.sample(actor(obs), log_std, obs)
                log_prob = policy.log_prob(action, actor(obs), log_std, obs)
            next_obs, reward, terminated, truncated, _ = env.step(action.numpy())
            largest = max(largest, float(env.constraint(obs.numpy()).violation(action.numpy())))
            next_obs = torch.as_tensor(next_obs)
            rows.append((obs, action, log_prob, torch.tensor(float(reward)), next_obs, torch.tensor(bool(truncated))))
            returns[-1] += float(reward)
            obs = next_obs
            if terminated or truncated:
                returns.append(0.0)
                obs = torch.as_tensor(env.reset()[0])
        seen, actions, before, rewards, after, ended = (torch.stack(column) for column in zip(*rows, strict=True))
        with torch.no_grad():
            values, next_values = critic(seen)[:, 0], critic(after)[:, 0]
            errors = rewards / 10 + DISCOUNT * next_values - values  # Pendulum never terminates
            advantages = torch.zeros(ROLLOUT)
            for k in reversed(range(ROLLOUT)):
                going_on = advantages[k + 1] if k + 1 < ROLLOUT and not ended[k] else 0.0
                advantages[k] = errors[k] + DISCOUNT * TRACE * going_on
            targets = advantages + values
        for _ in range(EPOCHS):
            for batch in torch.randperm(ROLLOUT).split(MINIBATCH):
                log_prob = policy.log_prob(actions[batch], actor(seen[batch]), log_std, seen[batch])
                ratio = (log_prob - before[batch]).exp()
                gain = (advantages[batch] - advantages[batch].mean()) / (advantages[batch].std() + 1e-8)
                actor_loss = -torch.min(ratio * gain, ratio.clamp(1 - CLIP, 1 + CLIP) * gain).mean()
                critic_loss = (critic(seen[batch])[:, 0] - targets[batch]).square().mean()
                optimiser.zero_grad()
                (actor_loss + 0.5 * critic_loss).backward()
                optimiser.step()
        print(
            f"step {len(returns[:-1]) * 200:5d}  mean return of the last five episodes {sum(returns[-6:-1]) / 5:8.1f}"
        )
    print(f"largest violation of an executed action: {largest:.1e}")
