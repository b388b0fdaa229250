"""What policies reach that learn nothing: the reference lines of the tables and figures.

    python -m feasible.paper.references

Bike sharing: staying put, the allocation as it is. NSFNET: the same rate on every path, and the best fixed rates that
a search finds. The search is the cross-entropy method: rates are drawn from a normal law, projected on the feasible set
and played, and the law moves to the best of them; all candidates of a generation meet the same seeds. It is scored on
episodes that it has not seen. Costs two minutes on one core.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Float64

from feasible.catalogue import registry

EPISODES = 200
SEED = 10_000  # of the first scored episode: none that a search has seen
CANDIDATES, KEPT, GENERATIONS, TRIALS = 32, 8, 20, 3
UNIFORM_RATE = 10.0
FOUND_RATES = (11.4, 7.91, 13.5, 6.92, 7.82, 18.24, 9.33, 24.27, 4.68)
"""What the search came to, by path."""

Observations = Float[np.ndarray, "copies o"]
Actions = Float[np.ndarray, "copies n"]


@dataclass(frozen=True)
class Score:
    """Mean return of some episodes, and its standard error."""

    mean: float
    error: float

    def __str__(self) -> str:
        return f"{self.mean:,.1f} +- {self.error:.1f}"


def play(task: str, act: Callable[[Observations], Actions], seeds: Sequence[int]) -> Float64[np.ndarray, " copies"]:
    """The returns of one episode for each seed."""
    env = registry.make_vec(task, len(seeds))
    obs, _ = env.reset(seed=list(seeds))  # pyright: ignore[reportArgumentType]
    returns = np.zeros(len(seeds))
    for _ in range(registry.find_task(task).episode_length or 0):
        obs, rewards, *_ = env.step(act(np.asarray(obs)))
        returns += rewards
    env.close()
    return returns


def score(returns: Float64[np.ndarray, " copies"]) -> Score:
    return Score(float(returns.mean()), float(returns.std(ddof=1) / np.sqrt(len(returns))))


def stay(obs: Observations) -> Actions:
    """Leave the bikes where they are; an observation is [demand | bikes | time]."""
    return obs[:, obs.shape[1] // 2 : -1]


def at_rates(rates: Float[np.ndarray, " n"]) -> Callable[[Observations], Actions]:
    """Send at the same rates in every state."""
    return lambda obs: np.tile(rates, (len(obs), 1))


def staying_put(task: str, episodes: int = EPISODES) -> Score:
    """Of a bike-sharing task."""
    return score(play(task, stay, range(SEED, SEED + episodes)))


def fixed_rates(rates: Float[np.ndarray, " n"], episodes: int = EPISODES) -> Score:
    """The same rates on the paths of NSFNET at every step."""
    return score(play("nsfnet", at_rates(rates), range(SEED, SEED + episodes)))


def searched_rates(generations: int = GENERATIONS, seed: int = 0) -> Float64[np.ndarray, " n"]:
    """The centre of the law after so many generations, feasible."""
    task = registry.find_task("nsfnet")
    env = registry.make(task.name)
    feasible_set = env.constraint(jnp.zeros(task.observation_size))
    env.close()
    project = jax.jit(jax.vmap(feasible_set.project))
    rng = np.random.default_rng(seed)
    centre, spread = np.full(task.action_size, UNIFORM_RATE), np.full(task.action_size, UNIFORM_RATE)
    for generation in range(generations):
        drawn = centre + spread * rng.standard_normal((CANDIDATES, task.action_size))
        candidates = np.asarray(project(jnp.asarray(drawn, jnp.float32)), np.float64)
        trials = range(generation * TRIALS, (generation + 1) * TRIALS)
        returns = np.mean([play(task.name, lambda _: candidates, [trial] * CANDIDATES) for trial in trials], axis=0)  # noqa: B023
        best = candidates[np.argsort(returns)[-KEPT:]]
        centre, spread = best.mean(axis=0), best.std(axis=0)
    return np.asarray(project(jnp.asarray(centre[None], jnp.float32)), np.float64)[0]


def main() -> None:
    for task in ("bss-3", "bss-5"):
        print(f"{task}, staying put: {staying_put(task)} over {EPISODES} episodes")
    uniform = fixed_rates(np.full(9, UNIFORM_RATE))
    print(f"nsfnet, {UNIFORM_RATE:g} on every path: {uniform}")
    rates = searched_rates()
    print(f"nsfnet, best fixed rates found {np.round(rates, 2).tolist()}: {fixed_rates(rates)}")


if __name__ == "__main__":
    main()
