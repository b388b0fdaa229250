"""What the field's tasks are worth without learning, and how much of their action boxes is infeasible.

    python -m benchmarks.tasks [--tasks NAME ...] [--random NAME ...] [--rules]

Each task is played by random feasible actions, by doing nothing and by a reference policy, all through the set; at the
states of the first and of the last, uniform actions of the box are tested for being outside. The reference is a rule
by hand where there is one: an arm that follows its Jacobian, fixed rates, bikes that stay where they are, a
portfolio that follows its signals. For robots that run it is a linear policy found by random search (augmented random
search, Mania et al. 2018: SEARCH says how long). The numbers are kept in `documentation/task_scores.json`, from which
the page is made; `--rules` measures what each correction of NSFNET's rules changes at fixed rates, and `--random` what
random feasible actions come to on tasks that are not in that table: the zero of the benchmark's scale.
"""

import argparse
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from feasible.catalogue.registry import PAPERS, TASKS, find_task
from feasible.constraints import ConstrainedVectorEnv
from feasible.envs.network import NSFNetVectorEnv, Rules
from feasible.paper.references import FOUND_RATES

KEPT = Path(__file__).parents[1] / "documentation" / "task_scores.json"
EPISODES, SHORT = 20, 50  # ten times as many where they have no more than so many steps
SEED = 10_000
LONGEST = 1_000_000  # steps of an episode: all of it
SEARCH = {"rounds": 100, "directions": 8, "best": 4, "step": 0.05, "noise": 0.05, "steps": 300}

SHORT_PATHS = [1, 5, 8, 12, 19]  # of the 20: one of each flow, of which no two share a link

Observations = Float[np.ndarray, "copies o"]
Actions = Float[np.ndarray, "copies n"]
Policy = Callable[[Observations], Actions]


def returns_of(
    env: ConstrainedVectorEnv, policy: Policy, seed: int, longest: int = LONGEST
) -> Float[np.ndarray, " copies"]:
    """The return of the first episode of each copy, cut off after `longest` steps."""
    obs, _ = env.reset(seed=seed)
    returns, running, steps = np.zeros(env.num_envs), np.ones(env.num_envs, bool), 0
    while running.any() and steps < longest:
        obs, rewards, terminated, truncated, _ = env.step(policy(np.asarray(obs)))
        returns += np.where(running, rewards, 0.0)
        running &= ~(terminated | truncated)
        steps += 1
    return returns


class Dice:
    """Random actions of a task at the states it is in, in two compiled calls."""

    def __init__(self, env: ConstrainedVectorEnv) -> None:
        space, constraint = env.single_action_space, env.constraint
        low, high = jnp.asarray(space.low), jnp.asarray(space.high)  # pyright: ignore[reportAttributeAccessIssue]

        def misses(obs: jax.Array, key: jax.Array) -> jax.Array:
            return ~constraint(obs).contains(jax.random.uniform(key, low.shape, minval=low, maxval=high))

        self._sample = jax.jit(jax.vmap(lambda obs, key: constraint(obs).sample(key)))
        self._misses = jax.jit(jax.vmap(misses))
        self._copies, self._key = env.num_envs, jax.random.key(0)
        self.missed: list[float] = []

    def watch(self, obs: Observations) -> None:
        """Note how many uniform actions of the box are outside, one for each copy."""
        self.missed.append(float(np.mean(self._misses(jnp.asarray(obs, jnp.float32), self._keys()))))

    def feasible(self, obs: Observations) -> Actions:
        """A random point of each copy's set."""
        self.watch(obs)
        return np.asarray(self._sample(jnp.asarray(obs, jnp.float32), self._keys()))

    def share(self) -> float:
        """Of the uniform actions since the last time it was asked for."""
        found, self.missed = float(np.mean(self.missed)), []
        return found

    def _keys(self) -> jax.Array:
        self._key, own = jax.random.split(self._key)
        return jax.random.split(own, self._copies)


def idle(name: str, env: ConstrainedVectorEnv) -> Policy:
    """Doing nothing: no torque, no packets, and of no bikes the nearest allocation; weights stay as they are."""
    n = find_task(name).action_size
    if name == "portfolio":
        return lambda obs: obs[:, :n].astype(np.float32)
    return lambda obs: np.zeros((env.num_envs, n), np.float32)


def reach(obs: Observations) -> Actions:
    """An arm of two links: its Jacobian's transpose brings the tip to the target, and its speed is damped."""
    cosines, sines, speeds, gap = obs[:, :2], obs[:, 2:4], obs[:, 6:8], obs[:, 8:10]
    both = np.stack(
        [
            cosines[:, 0] * cosines[:, 1] - sines[:, 0] * sines[:, 1],
            sines[:, 0] * cosines[:, 1] + cosines[:, 0] * sines[:, 1],
        ],
        axis=1,
    )
    outer = 0.11 * np.stack([-both[:, 1], both[:, 0]], axis=1)
    whole = 0.1 * np.stack([-sines[:, 0], cosines[:, 0]], axis=1) + outer
    pull = -np.stack([(whole * gap).sum(axis=1), (outer * gap).sum(axis=1)], axis=1)
    return np.clip(6.0 * pull - 0.012 * speeds, -1.0, 1.0).astype(np.float32)


def by_hand(name: str, env: ConstrainedVectorEnv) -> tuple[str, Policy]:
    """A rule, and what it is in words."""
    n, copies = find_task(name).action_size, env.num_envs
    if name.startswith("reacher"):
        return "Jacobian's transpose", reach
    if name.startswith("bss"):
        return "every bike stays", lambda obs: obs[:, n : 2 * n]
    if name == "portfolio":
        best = jax.jit(jax.vmap(lambda obs: env.constraint(obs).maximise_linear(obs[n : 2 * n])))
        return "best signals", lambda obs: np.asarray(best(jnp.asarray(obs, jnp.float32)))
    if name == "nsfnet-20":
        rates, words = np.zeros(n), "35 on one short path of each flow"
        rates[SHORT_PATHS] = 35.0
    else:
        rates, words = np.array(FOUND_RATES), "best fixed rates of `nsfnet`"
    return words, lambda obs: np.tile(rates, (copies, 1)).astype(np.float32)


def watched(
    act: Callable[..., Actions], gains: np.ndarray, norms: tuple[np.ndarray, np.ndarray], seen: list[np.ndarray]
) -> Policy:
    """The policies of these gains, which keep what they have seen."""

    def policy(obs: Observations) -> Actions:
        seen.append(obs)
        return act(gains, *norms, obs)

    return policy


def searched(name: str) -> tuple[str, Policy]:
    """A linear policy of normalised observations, by augmented random search."""
    task, rounds, directions = find_task(name), SEARCH["rounds"], int(SEARCH["directions"])
    env = task.copies(2 * directions, "project", threads=2)
    space = env.single_action_space
    high: np.ndarray = space.high  # pyright: ignore[reportAttributeAccessIssue]
    gains = np.zeros((len(high), task.observation_size))
    rng, count = np.random.default_rng(0), 1e-3
    mean, spread = np.zeros(task.observation_size), np.zeros(task.observation_size)
    kept, highest = (gains, mean, np.ones_like(mean)), -np.inf

    def act(gains: np.ndarray, mean: np.ndarray, scale: np.ndarray, obs: Observations) -> Actions:
        wanted = np.einsum("...no,...o->...n", gains, (obs - mean) / scale)
        return np.clip(high * wanted, -high, high).astype(np.float32)

    for round_ in range(int(rounds)):
        tried = rng.standard_normal((directions, *gains.shape))
        both = gains + SEARCH["noise"] * np.concatenate([tried, -tried])
        seen: list[np.ndarray] = []
        norms = mean, np.sqrt(np.maximum(spread / count, 1e-6))
        policy = watched(act, both, norms, seen)
        found = returns_of(env, policy, 1_000 * round_, int(SEARCH["steps"])).reshape(2, directions)
        if found.mean() > highest:  # of the policies around it
            kept, highest = (gains, *norms), float(found.mean())
        best = np.argsort(found.max(axis=0))[-int(SEARCH["best"]) :]
        scale = found[:, best].std() + 1e-6
        gains = gains + SEARCH["step"] / (len(best) * scale) * np.tensordot(
            found[0, best] - found[1, best], tried[best], 1
        )
        for obs in seen:  # as one pass over all that was seen so far
            for row in obs[:4]:
                count += 1
                change = row - mean
                mean = mean + change / count
                spread = spread + change * (row - mean)
    env.close()
    return f"linear, {rounds} rounds of random search", lambda obs: act(*kept, obs)


def measured(name: str) -> dict[str, object]:
    """The row of a task."""
    task = find_task(name)
    episodes = EPISODES if (task.episode_length or 0) > SHORT else 10 * EPISODES
    env = task.copies(episodes, "project", threads=2)
    dice = Dice(env)
    random, outside = returns_of(env, dice.feasible, SEED), dice.share()
    nothing = returns_of(env, idle(name, env), SEED)
    runner = name.split("-")[0] in ("halfcheetah", "hopper", "walker", "ant", "humanoid")
    words, policy = searched(name) if runner else by_hand(name, env)

    def sampled(obs: Observations) -> Actions:
        dice.watch(obs)
        return policy(obs)

    reference = returns_of(env, sampled, SEED)
    env.close()
    scores = {"random": random, "nothing": nothing, "reference": reference}
    told = {key: [float(found.mean()), float(found.std() / np.sqrt(len(found)))] for key, found in scores.items()}
    return {"outside": [outside, dice.share()], **told, "rule": words}


def random_measured(name: str) -> list[float]:
    """Mean return of random feasible actions, and its standard error."""
    task = find_task(name)
    env = task.copies(EPISODES if (task.episode_length or 0) > SHORT else 10 * EPISODES, "project", threads=2)
    found = returns_of(env, Dice(env).feasible, SEED)
    env.close()
    return [float(found.mean()), float(found.std() / np.sqrt(len(found)))]


def rules_measured() -> dict[str, object]:
    """Mean reward and loss per step of NSFNET at fixed rates, with each correction alone, all and none."""
    fields = ("emission", "first_step", "uncounted_packets", "drops_by", "own_service", "return_route")
    variants = {"recorded": Rules.recorded}
    variants |= {name: replace(Rules.recorded, **{name: getattr(Rules.corrected, name)}) for name in fields}
    variants["corrected"] = Rules.corrected
    best = np.array(FOUND_RATES)
    rates = {"10 on every path": np.full(9, 10.0), "the best fixed rates": best, "twice these": 2.0 * best}
    table: dict[str, object] = {}
    for name, rules in variants.items():
        row = []
        for values in rates.values():
            env = NSFNetVectorEnv(EPISODES, rules=rules, episode_length=200)
            env.reset(seed=SEED)
            total = sum(env.step(np.tile(values, (EPISODES, 1)))[1] for _ in range(200))  # pyright: ignore[reportArgumentType]
            row.append(float(np.mean(total) / 200.0))
            env.close()
        table[name] = row
    return {"rates": list(rates), "rules": table}


def kept() -> Mapping[str, dict]:
    return json.loads(KEPT.read_text()) if KEPT.exists() else {"tasks": {}, "rules": {}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="*", default=[name for name in TASKS if name not in PAPERS])
    parser.add_argument("--random", nargs="*", default=[], help="tasks to measure random feasible actions on, alone")
    parser.add_argument("--rules", action="store_true", help="also measure the corrections of NSFNET's rules")
    arguments = parser.parse_args()
    for name in arguments.tasks:
        row = measured(name)
        numbers = {**kept()}
        numbers["tasks"] = {**numbers["tasks"], name: row}
        KEPT.write_text(json.dumps(numbers, indent=1, sort_keys=True) + "\n")
        print(name, json.dumps(row), flush=True)
    for name in arguments.random:
        numbers = {**kept()}
        numbers["random"] = {**numbers.get("random", {}), name: random_measured(name)}
        KEPT.write_text(json.dumps(numbers, indent=1, sort_keys=True) + "\n")
        print(name, numbers["random"][name], flush=True)
    if arguments.rules:
        numbers = {**kept(), "rules": rules_measured()}
        KEPT.write_text(json.dumps(numbers, indent=1, sort_keys=True) + "\n")
        print(json.dumps(numbers["rules"]))


if __name__ == "__main__":
    main()
